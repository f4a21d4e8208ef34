"""Where samples go in a plane: t-SNE, UMAP, or a disc per cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.utils import check_array

from sagl.environment import optional_module
from sagl.estimator import SAGL
from sagl.nn.inference import anchor_features
from sagl.views import Views

Points = NDArray[np.float64]  # (n, 2)
Method = Literal["tsne", "umap"]
_Place = Callable[[NDArray[np.float64]], Points]  # of samples beside those laid out

SAMPLE = 5_000  # samples that t-SNE lays out itself; more make the picture no clearer
LEVELS = ("original features", "linear features", "representations")
_PERPLEXITY = 30
_FEW = 12  # fewer samples than this have no neighbourhoods to keep
_COMPONENTS = 50  # wide features are first reduced to so many, as is usual
_GRAPH_COMPONENTS = 30
_GOLDEN_ANGLE = np.pi * (3 - 5**0.5)
_NEIGHBOURS = 10  # sampled neighbours that place a sample outside the sample
_UMAP_NEIGHBOURS = 15  # its own default
_WORDS = {"tsne": "t-SNE", "umap": "UMAP"}
_LIBRARIES = {"tsne": ("openTSNE", "report"), "umap": ("umap", "peers")}


def stratified_rows(
    labels: ArrayLike, size: int = SAMPLE, seed: int = 0
) -> NDArray[np.int64]:
    """Positions of at most ``size`` samples, every cluster by its share, in order.

    A cluster too small for a share of its own keeps one sample as long as there is
    room, so that none disappears from a picture.
    """
    labels = np.asarray(labels)
    if labels.ndim != 1 or not len(labels) or size < 1:
        raise ValueError(
            f"expected labels of shape (n,) and a size of at least 1; got shape "
            f"{labels.shape} and size {size}"
        )
    n = len(labels)
    if n <= size:
        return np.arange(n)
    order = np.random.default_rng(seed).permutation(n)
    order = order[np.argsort(labels[order], kind="stable")]
    _, counts = np.unique(labels, return_counts=True)
    # The r-th of a cluster's samples is wanted r/count deep into it: taking the
    # least deep ones first takes shares, and everybody's first before any second.
    depth = np.concatenate([np.arange(count) / count for count in counts])
    return np.sort(order[np.argsort(depth, kind="stable")[:size]])


def check_method(method: str) -> None:
    """Refuse an embedding that is not known, or whose library is missing."""
    if method not in _FITS:
        raise ValueError(f"there is no embedding {method!r}; choose tsne or umap")
    optional_module(*_LIBRARIES[method])


def embed(
    features: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    method: Method = "tsne",
    sample: int = SAMPLE,
    seed: int = 0,
) -> Points:
    """Places in the plane, (n, 2), also of hundreds of thousands of rows.

    At most ``sample`` rows, stratified by ``labels`` where given, are laid out; every
    other row finds its place among these. The same seed gives the same places.
    ``method`` is "tsne" (openTSNE) or "umap" (umap-learn, of the extra ``peers``).
    """
    check_method(method)
    X: NDArray[np.float64] = check_array(features, np.float64, input_name="features")
    if X.shape[1] == 1:
        X = np.hstack([X, np.zeros_like(X)])  # openTSNE starts from two directions
    elif min(X.shape) > _COMPONENTS:
        X = PCA(_COMPONENTS, svd_solver="randomized", random_state=seed).fit_transform(
            X
        )
    rows = stratified_rows(np.zeros(len(X)) if labels is None else labels, sample, seed)
    if (X[0] == X).all():
        return np.zeros((len(X), 2))
    if len(rows) < _FEW or (X[rows] == X[rows[0]]).all():
        flat: Points = PCA(2, svd_solver="full").fit_transform(X)
        return flat
    points = np.empty((len(X), 2))
    rest = np.setdiff1d(np.arange(len(X)), rows)
    fitted, place = _FITS[method](X[rows], seed)
    if len(rest):
        points[rest] = place(X[rest])
    points[rows] = fitted  # after the others, who may shift it to the middle
    return points


def _fit_tsne(X: NDArray[np.float64], seed: int) -> tuple[Points, _Place]:
    """openTSNE; others go where their nearest neighbours are, and find their place."""
    method = optional_module(*_LIBRARIES["tsne"]).TSNE(
        perplexity=min(_PERPLEXITY, (len(X) - 1) / 3),
        initialization="pca",
        random_state=seed,
        n_jobs=1,  # threads would change the order of sums
    )
    fitted = method.fit(X)
    near = {"k": _NEIGHBOURS, "exaggeration": 1, "n_iter": 25}
    return fitted, lambda others: fitted.transform(others, **near)


def _fit_umap(X: NDArray[np.float64], seed: int) -> tuple[Points, _Place]:
    umap = optional_module(*_LIBRARIES["umap"])
    near = min(_UMAP_NEIGHBOURS, len(X) - 1)
    method = umap.UMAP(n_neighbors=near, random_state=seed, n_jobs=1)
    return method.fit_transform(X), method.transform


_FITS: dict[str, Callable[[NDArray[np.float64], int], tuple[Points, _Place]]] = {
    "tsne": _fit_tsne,
    "umap": _fit_umap,
}


def three_levels(
    model: SAGL, views: Views, rows: NDArray[np.int64] | None = None
) -> dict[str, dict[str, NDArray[Any]]]:
    """Per view: features as given, after the linear map (z), and as represented (p).

    What a sample misses are rows of NaN.
    """
    chosen = model.check_views(views if rows is None else views[np.sort(rows)])
    originals = chosen.take(np.arange(len(chosen)))
    linear = anchor_features(model.network_, [torch.from_numpy(h) for h in originals])
    final = np.split(model.transform(chosen), len(chosen.names), axis=1)
    if chosen.present is not None:
        for there, p in zip(chosen.present.T, final, strict=True):
            p[~there] = np.nan
    return {
        name: dict(zip(LEVELS, (h, z.cpu().numpy(), p), strict=True))
        for name, h, z, p in zip(chosen.names, originals, linear, final, strict=True)
    }


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
    method: Method = "tsne",
) -> Layout:
    """An embedding of the representations, else of the graph, else discs."""
    near = f"Near points have similar {{}} ({_WORDS[method]})."
    if representations is not None:
        points = embed(representations, labels, method=method, seed=seed)
        return Layout(points, near.format("representations"))
    if graph is not None and len(labels) > _GRAPH_COMPONENTS:
        features = graph_features(graph, seed)
        points = embed(features, labels, method=method, seed=seed)
        return Layout(points, near.format("neighbours in the graph"))
    return Layout(
        discs(labels, confidence),
        "Each cluster is a disc with its most confident samples in the middle; how "
        "clusters lie to each other means nothing.",
    )


def lay_out_views(
    views: Views, labels: NDArray[np.int64], method: Method = "tsne"
) -> dict[str, Layout]:
    """A map per view, of its features as they were given.

    Samples that miss the view are all at its lower left corner.
    """
    near = f"Near points have similar features of {{}} ({_WORDS[method]})"
    layouts = {}
    for i, (name, array) in enumerate(views.items()):
        there = np.ones(len(views), dtype=bool)
        if views.present is not None:
            there = views.present[:, i]
        found = embed(np.asarray(array[there]), labels[there], method=method)
        points, words = np.empty((len(views), 2)), near.format(name)
        points[there] = found
        if not there.all():
            points[~there] = found.min(axis=0)
            words += "; samples that miss it are at the lower left corner"
        layouts[name] = Layout(points, f"{words}.")
    return layouts


def graph_features(graph: csr_matrix, seed: int = 0) -> NDArray[np.float32]:
    """The main directions of the graph's rows: whose neighbours are alike is near."""
    both = (graph + graph.T).tocsr() / 2
    reduce = TruncatedSVD(_GRAPH_COMPONENTS, random_state=seed)
    features: NDArray[np.float32] = reduce.fit_transform(both).astype(np.float32)
    return features


def discs(
    labels: NDArray[np.int64], confidence: NDArray[np.float64]
) -> NDArray[np.float64]:
    """A disc per cluster, areas in proportion, the most confident in the middle."""
    clusters, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    in_a_row = int(np.ceil(len(clusters) ** 0.5))
    row, column = np.divmod(np.arange(len(clusters)), in_a_row)
    centres = 2.4 * np.stack([column, -row], axis=1)
    order = np.lexsort((-confidence, codes))
    disc = codes[order]
    rank = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    # A sunflower: equal area for each sample.
    distance = np.sqrt((rank + 0.5) / sizes.max())
    turn = rank * _GOLDEN_ANGLE
    spiral = np.stack([np.cos(turn), np.sin(turn)], axis=1) * distance[:, None]
    points = np.empty((len(labels), 2))
    points[order] = centres[disc] + spiral
    return points
