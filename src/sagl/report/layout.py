"""Where the points of the explorer go, from whatever a run has to offer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from sagl.report.embedding import embed_all

_COMPONENTS = 30
_GOLDEN_ANGLE = np.pi * (3 - 5**0.5)


class Layout(NamedTuple):
    """Places of all samples in a plane, and what they show."""

    points: NDArray[np.float64]  # (n, 2)
    words: str


def lay_out(
    labels: NDArray[np.int64],
    confidence: NDArray[np.float64],
    representations: NDArray[np.float32] | None,
    graph: csr_matrix | None,
    seed: int = 0,
) -> Layout:
    """t-SNE of the representations, else of the graph, else a disc per cluster."""
    if representations is not None:
        points = embed_all(representations, labels, seed=seed)
        words = "Near points have similar representations (t-SNE)."
        return Layout(points, words)
    if graph is not None and len(labels) > _COMPONENTS:
        points = embed_all(graph_features(graph, seed), labels, seed=seed)
        words = "Near points have similar neighbours in the graph (t-SNE)."
        return Layout(points, words)
    words = (
        "Each cluster is a disc with its most confident samples in the middle; how "
        "clusters lie to each other means nothing."
    )
    return Layout(discs(labels, confidence), words)


def graph_features(graph: csr_matrix, seed: int = 0) -> NDArray[np.float32]:
    """The main directions of the graph's rows: whose neighbours are alike is near."""
    from sklearn.decomposition import TruncatedSVD

    both = (graph + graph.T).tocsr() / 2
    reduce = TruncatedSVD(_COMPONENTS, random_state=seed)
    features: NDArray[np.float32] = reduce.fit_transform(both).astype(np.float32)
    return features


def discs(
    labels: NDArray[np.int64], confidence: NDArray[np.float64]
) -> NDArray[np.float64]:
    """A disc per cluster, areas in proportion, the most confident in the middle."""
    clusters, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    columns = int(np.ceil(np.sqrt(len(clusters))))
    radius = np.sqrt(sizes / sizes.max())
    centres = (
        np.stack(
            [
                np.arange(len(clusters)) % columns,
                -(np.arange(len(clusters)) // columns),
            ],
            axis=1,
        )
        * 2.4
    )
    order = np.lexsort((-confidence, codes))
    rank = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    # A sunflower: equal area for each sample.
    distance = np.sqrt((rank + 0.5) / sizes[codes[order]]) * radius[codes[order]]
    turn = rank * _GOLDEN_ANGLE
    points = np.empty((len(labels), 2))
    points[order] = (
        centres[codes[order]]
        + np.stack([np.cos(turn), np.sin(turn)], axis=1) * distance[:, None]
    )
    return points
