"""Measures of a sparse graph: how sparse it is and how well it respects classes.

The graph is a SciPy sparse matrix, samples x samples; entry (i, j) is how much sample i
leans on sample j. Zeros that are stored are no edges, and the diagonal is no neighbour.
:func:`graph_measures` takes all measures at once. Those that need labels are for
evaluation alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import norm
from sklearn.cluster import SpectralClustering

from sagl.evaluation.metrics import clustering_accuracy, coded

__all__ = [
    "GraphMeasures",
    "asymmetry",
    "components",
    "components_per_class",
    "edges_inside",
    "entries",
    "graph_measures",
    "neighbour_counts",
    "propagation_accuracy",
    "row_weight_inside",
    "sparsity_ratio",
    "spectral_accuracy",
    "square_csr",
    "weight_inside",
]

_Index = NDArray[np.integer[Any]]

# Entries looked at together: memory stays bounded however large the graph is.
_CHUNK = 1 << 22
_SPREAD = 0.9  # share of a sample's label that comes from its neighbours
# From this share of non-zeros on, dense matrices are quicker, up to so many rows.
_DENSE_SHARE = 0.1
_DENSE_ROWS = 8_000
# Larger graphs take too long, and a sample has hardly any of a row's few neighbours.
_SPECTRAL_ROWS = 20_000


class GraphMeasures(NamedTuple):
    """What :func:`graph_measures` returns; the last six are None without labels.

    Attributes
    ----------
    neighbours, neighbours_p5, neighbours_p95 : float
        Per row: mean, 5th and 95th percentile.
    no_neighbour : int
        Rows without a neighbour.
    sparsity, asymmetry, components
        As the functions of these names have them.
    inside, inside_off_diagonal : float or None
        :func:`row_weight_inside` with and without the diagonal.
    edges_inside : float or None
    components_per_class : float or None
        Mean over the classes.
    propagation, spectral : float or None
        :func:`propagation_accuracy` and :func:`spectral_accuracy`, the second up to
        20,000 samples.
    """

    samples: int
    neighbours: float
    neighbours_p5: float
    neighbours_p95: float
    no_neighbour: int
    sparsity: float
    asymmetry: float
    components: int
    inside: float | None = None
    inside_off_diagonal: float | None = None
    edges_inside: float | None = None
    components_per_class: float | None = None
    propagation: float | None = None
    spectral: float | None = None

    def as_dict(self) -> dict[str, int | float | None]:
        """Name and value of each measure, as JSON can hold them."""
        return self._asdict()


def graph_measures(
    graph: Any, labels: ArrayLike | None = None, *, known: float = 0.1, seed: int = 0
) -> GraphMeasures:
    """All measures of a graph whose weights are finite and not negative.

    ``known`` and ``seed`` are those of :func:`propagation_accuracy`.

    Examples
    --------
    >>> graph = csr_array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]])
    >>> measures = graph_measures(graph, ["cat", "cat", "dog", "dog"])
    >>> measures.neighbours, measures.components, measures.inside
    (1.0, 2, 1.0)
    >>> graph_measures(graph).as_dict()["sparsity"]
    0.25
    """
    graph = square_csr(graph)
    bad = ~np.isfinite(graph.data) | (graph.data < 0)
    if bad.any():
        raise ValueError(
            f"the graph holds a weight of {graph.data[bad][0]}; weights must be finite "
            "and not negative: take the absolute values of coefficients"
        )
    counts = neighbour_counts(graph)
    low, high = np.percentile(counts, [5, 95])
    measures = GraphMeasures(
        samples=len(counts),
        neighbours=float(counts.mean()),
        neighbours_p5=float(low),
        neighbours_p95=float(high),
        no_neighbour=int((counts == 0).sum()),
        sparsity=sparsity_ratio(graph),
        asymmetry=asymmetry(graph),
        components=components(graph),
    )
    if labels is None:
        return measures
    small = len(counts) <= _SPECTRAL_ROWS
    return measures._replace(
        inside=row_weight_inside(graph, labels),
        inside_off_diagonal=row_weight_inside(graph, labels, diagonal=False),
        edges_inside=edges_inside(graph, labels),
        components_per_class=float(components_per_class(graph, labels).mean()),
        propagation=propagation_accuracy(graph, labels, known=known, seed=seed),
        spectral=spectral_accuracy(graph, labels) if small else None,
    )


def neighbour_counts(graph: Any) -> NDArray[np.int64]:
    """How many neighbours each row has, (n,)."""
    return np.diff(_edges(graph).indptr).astype(np.int64)  # type: ignore[no-any-return]


def sparsity_ratio(graph: Any) -> float:
    """Non-zeros over all entries, as in the paper."""
    graph = square_csr(graph)
    n: int = graph.shape[0]
    return float(np.count_nonzero(graph.data)) / n**2


def asymmetry(graph: Any) -> float:
    """‖A − Aᵀ‖ / ‖A + Aᵀ‖ (Frobenius) off the diagonal; 0 where there are no edges.

    0 is symmetric; 1 is a graph in which no edge is returned.
    """
    edges = _edges(graph)
    both = float(norm(edges + edges.T))
    return float(norm(edges - edges.T)) / both if both else 0.0


def components(graph: Any) -> int:
    """Connected components, whichever way the edges point."""
    return int(connected_components(_edges(graph), directed=False)[0])


def weight_inside(graph: Any, labels: ArrayLike) -> float:
    """Share of all weight that links samples of a cluster: 1 if block-diagonal."""
    inside, total = _row_weights(square_csr(graph), labels)
    return float(inside.sum() / total.sum()) if total.any() else 0.0


def row_weight_inside(graph: Any, labels: ArrayLike, *, diagonal: bool = True) -> float:
    """Share of a row's weight that stays in the row's class, mean over the rows.

    Rows without weight are left out; a graph without any weight has 0. Without the
    ``diagonal`` only the weight on other samples counts.
    """
    graph = square_csr(graph) if diagonal else _edges(graph)
    inside, total = _row_weights(graph, labels)
    held = total > 0
    return float((inside[held] / total[held]).mean()) if held.any() else 0.0


def edges_inside(graph: Any, labels: ArrayLike) -> float:
    """Share of the edges that link two samples of one class; 0 where there are none."""
    edges = _edges(graph)
    edges.data[:] = 1
    return weight_inside(edges, labels)


def components_per_class(graph: Any, labels: ArrayLike) -> NDArray[np.int64]:
    """Pieces into which each class falls when only edges inside it count; 1 is best.

    One number per class, in the order of ``numpy.unique(labels)``.
    """
    edges = _edges(graph).tocoo()
    codes = _codes(labels, edges)
    inside = codes[edges.row] == codes[edges.col]
    kept = csr_array((inside, (edges.row, edges.col)), shape=edges.shape)
    kept.eliminate_zeros()
    # Each piece lies in one class: that of its first sample.
    piece = connected_components(kept, directed=False)[1]
    first = np.unique(piece, return_index=True)[1]
    return np.bincount(codes[first], minlength=int(codes.max()) + 1)


def propagation_accuracy(
    graph: Any, labels: ArrayLike, *, known: float = 0.1, seed: int = 0
) -> float:
    """Share of samples whose class label propagation finds from a few known ones.

    Labels spread over S = D^-½ W D^-½, where W = (A + Aᵀ) / 2 without its diagonal:
    F ← 0.9 S F + 0.1 Y until it no longer changes (Zhou et al., 2004). The labels of a
    share ``known`` of each class, at least one, are given; ``seed`` draws them. The
    other samples are scored, and those that no label reaches count as wrong. Where all
    are known there is nothing to find: 1. scikit-learn's ``LabelSpreading`` takes 1.7
    times as long for nearly the same (20,000 samples with 15 neighbours, one thread).
    """
    if not 0 < known <= 1:
        raise ValueError(f"known must be above 0 and at most 1; got {known!r}")
    W = _symmetrised(graph)
    codes = _codes(labels, W)
    given = _known_rows(codes, known, seed)
    n = len(codes)
    if len(given) == n:
        return 1.0
    degree = W.sum(axis=1)
    scale = np.divide(1, np.sqrt(degree), out=np.zeros(n), where=degree > 0)
    S = _dense_if_quicker(csr_array(W.multiply(scale[:, None]).multiply(scale)))
    Y = np.zeros((n, int(codes.max()) + 1))
    Y[given, codes[given]] = 1
    F, change = Y, 1.0
    while change > 1e-4:  # falls by a tenth each time
        spread = _SPREAD * (S @ F) + (1 - _SPREAD) * Y
        change, F = float(np.abs(spread - F).max()), spread
    right = (F.argmax(axis=1) == codes) & (F.max(axis=1) > 0)
    return float(np.delete(right, given).mean())


def spectral_accuracy(graph: Any, labels: ArrayLike) -> float:
    """Accuracy of spectral clustering of the graph into as many clusters as classes.

    scikit-learn's, on (A + Aᵀ) / 2 without its diagonal; clusters are matched to
    classes one to one. One class, or one per sample, cannot be missed: 1.
    """
    W = _symmetrised(graph)
    codes = _codes(labels, W)
    n_classes = int(codes.max()) + 1
    if n_classes in (1, len(codes)):
        return 1.0
    method = SpectralClustering(
        n_classes,
        affinity="precomputed",
        assign_labels="cluster_qr",
        eigen_solver="arpack",
        random_state=0,  # ARPACK's start
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Graph is not fully connected")
        return clustering_accuracy(codes, method.fit_predict(_dense_if_quicker(W)))


def _row_weights(
    graph: csr_array, labels: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weight of each row inside its class, and in all, (n,) each."""
    codes = _codes(labels, graph)
    inside, total = np.zeros((2, len(codes)))
    for rows, columns, weights in entries(graph):
        same = codes[rows] == codes[columns]
        inside += np.bincount(rows[same], weights[same], minlength=len(codes))
        total += np.bincount(rows, weights, minlength=len(codes))
    return inside, total


def entries(graph: csr_array) -> Iterator[tuple[_Index, _Index, NDArray[Any]]]:
    """Rows, columns and weights of the stored entries, some millions at a time."""
    indptr = graph.indptr
    for start in range(0, graph.nnz, _CHUNK):
        stop = min(start + _CHUNK, graph.nnz)
        first = int(np.searchsorted(indptr, start, side="right")) - 1
        last = int(np.searchsorted(indptr, stop, side="left"))
        edges = np.clip(indptr[first : last + 1], start, stop)
        rows = np.repeat(np.arange(first, last), np.diff(edges))
        yield rows, graph.indices[start:stop], graph.data[start:stop]


def square_csr(graph: Any) -> csr_array:
    """The graph in row form, refused unless it is a square sparse matrix."""
    if not hasattr(graph, "tocsr"):
        raise ValueError(
            f"the graph is a {type(graph).__name__}; give a SciPy sparse matrix"
        )
    rows, shape = graph.tocsr(), graph.shape
    if shape[0] != shape[1] or not shape[0]:
        raise ValueError(f"the graph has shape {shape}; expected samples x samples")
    return rows


def _edges(graph: Any) -> csr_array:
    """The non-zero entries off the diagonal, in double precision."""
    pairs = square_csr(graph).tocoo()
    kept = (pairs.row != pairs.col) & (pairs.data != 0)
    where, weights = (pairs.row[kept], pairs.col[kept]), pairs.data[kept]
    return csr_array((weights.astype(np.float64), where), shape=pairs.shape)


def _symmetrised(graph: Any) -> csr_array:
    """(A + Aᵀ) / 2 without its diagonal, in the types that scikit-learn takes."""
    edges = _edges(graph)
    both = csr_array((edges + edges.T) / 2)
    parts = both.data, both.indices.astype(np.int32), both.indptr.astype(np.int32)
    return csr_array(parts, shape=both.shape)


def _dense_if_quicker(graph: csr_array) -> Any:
    n = graph.shape[0]
    dense = n <= _DENSE_ROWS and graph.nnz > _DENSE_SHARE * n**2
    return graph.toarray() if dense else graph


def _codes(labels: ArrayLike, graph: Any) -> NDArray[np.intp]:
    """Labels as 0 … C − 1, refused unless there is one per sample."""
    codes = coded(labels, "labels").codes
    if len(codes) != graph.shape[0]:
        raise ValueError(
            f"{len(codes)} labels for a graph of {graph.shape[0]} samples; there must "
            "be one label per sample"
        )
    return codes


def _known_rows(codes: NDArray[np.intp], share: float, seed: int) -> NDArray[np.intp]:
    """A share of each class at random, at least one sample of each."""
    order = np.random.default_rng(seed).permutation(len(codes))
    of_class = [order[codes[order] == k] for k in range(int(codes.max()) + 1)]
    return np.concatenate([r[: max(1, round(share * len(r)))] for r in of_class])
