"""HDBSCAN on a UMAP embedding, as it is done for topics. Extra ``peers``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN

from sagl.baselines.base import whole
from sagl.baselines.transductive import Transductive
from sagl.environment import optional_module

_SIZES_TRIED = 12
_LEAST_SIZE = 3


@dataclass(eq=False, repr=False, kw_only=True)
class UMAPHDBSCAN(Transductive):
    """UMAP to a few dimensions, then HDBSCAN, which leaves samples out.

    Settings of UMAP are those of BERTopic. Needs ``pip install "sagl[peers]"``. See
    ``covered_`` for the samples that HDBSCAN put into a cluster; all others get that of
    the nearest of them.

    Parameters
    ----------
    min_cluster_size : int, optional
        Of HDBSCAN, which then finds its own number of clusters. By default, of a dozen
        sizes up to n / C, the one whose number of clusters is nearest to
        ``n_clusters``.
    """

    min_cluster_size: int | None = whole(None, least=2)
    neighbours: int = whole(15, least=2)
    dimension: int = whole(5)

    def _cluster(self, x: NDArray[np.float32], seed: int) -> NDArray[Any]:
        umap = optional_module("umap", "peers")
        n = len(x)
        method = umap.UMAP(
            n_neighbors=max(2, min(self.neighbours, n - 1)),
            n_components=self.dimension,
            init="spectral" if n > self.dimension + 1 else "random",
            min_dist=0.0,
            metric="cosine",
            random_state=seed,
            n_jobs=1,
        )
        embedding = method.fit_transform(x)
        if self.min_cluster_size is not None:
            return hdbscan_labels(embedding, self.min_cluster_size)
        return labels_of_about(embedding, self.n_clusters)


def labels_of_about(embedding: NDArray[Any], n_clusters: int) -> NDArray[Any]:
    """HDBSCAN's labels by the ``min_cluster_size`` that gives the best number.

    Of several, the one that leaves fewest samples out.
    """
    largest = max(_LEAST_SIZE, len(embedding) // n_clusters)
    sizes = np.geomspace(_LEAST_SIZE, largest, _SIZES_TRIED).round().astype(int)
    tried = [hdbscan_labels(embedding, size) for size in np.unique(sizes)]
    return min(tried, key=lambda t: (abs(t.max() + 1 - n_clusters), (t < 0).sum()))


def hdbscan_labels(embedding: NDArray[Any], min_cluster_size: int) -> NDArray[Any]:
    """The cluster of each row; −1 for noise."""
    size = min(int(min_cluster_size), len(embedding))
    labels: NDArray[Any] = HDBSCAN(size, copy=True).fit_predict(embedding)
    return labels
