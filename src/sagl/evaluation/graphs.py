"""Measures of a sparse graph: how sparse it is and how well it respects clusters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from sagl.evaluation.labels import coded

_Index = NDArray[np.integer[Any]]

# Entries looked at together: memory stays bounded however large the graph is.
_CHUNK = 1 << 22


def sparsity_ratio(graph: Any) -> float:
    """Non-zeros over all entries, as in the paper.

    Examples
    --------
    >>> from scipy.sparse import identity
    >>> from sagl.evaluation.graphs import sparsity_ratio
    >>> sparsity_ratio(identity(4))
    0.25
    """
    graph = square_csr(graph)
    n: int = graph.shape[0]
    return float(np.count_nonzero(graph.data)) / n**2


def weight_inside(graph: Any, labels: ArrayLike) -> float:
    """Share of all weight that links samples of the same cluster: 1 if block-diagonal.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from sagl.evaluation.graphs import weight_inside
    >>> weight_inside(csr_array([[0.5, 0.5], [0.0, 1.0]]), [0, 1])
    0.75
    """
    graph = square_csr(graph)
    codes = coded(labels, "labels").codes
    if len(codes) != graph.shape[0]:
        raise ValueError(
            f"{len(codes)} labels for a graph of {graph.shape[0]} samples; there must "
            "be one label per sample"
        )
    inside = total = 0.0
    for rows, columns, weights in entries(graph):
        inside += float(weights[codes[rows] == codes[columns]].sum(dtype=np.float64))
        total += float(weights.sum(dtype=np.float64))
    return inside / total if total else 0.0


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
    found = graph.tocsr()
    if found.shape[0] != found.shape[1] or not found.shape[0]:
        raise ValueError(
            f"the graph has shape {found.shape}; expected samples x samples"
        )
    return found
