"""What there is to say about each cluster: its size, its samples, its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix

_NEIGHBOURS = 3
_LEAST_SHARE = 0.001  # of a cluster's weight, to count as a neighbour
# Confidences that differ by less are equally typical; then the graph decides.
_CONFIDENCE_STEP = 0.01


@dataclass(frozen=True)
class Cluster:
    """One cluster of a run.

    Attributes
    ----------
    number, size : int
    confidence : float
        Mean over its samples.
    typical, doubtful : ndarray of int
        Rows of samples, the most typical and the most doubtful first; none is both.
    neighbours : tuple of (int, float)
        Other clusters, and the share of this cluster's graph weight that goes there.
    """

    number: int
    size: int
    confidence: float
    typical: NDArray[np.int64]
    doubtful: NDArray[np.int64]
    neighbours: tuple[tuple[int, float], ...]


def describe_clusters(
    labels: NDArray[np.int64],
    confidence: NDArray[np.float64],
    n_clusters: int,
    graph: csr_matrix | None = None,
    examples: int = 6,
) -> list[Cluster]:
    """Every cluster that holds samples, by number.

    Typical samples are those of the highest confidence and, among these, those that
    most of their cluster attend to; doubtful ones have the lowest confidence.
    """
    sizes = np.bincount(labels, minlength=n_clusters)
    attention = np.zeros(len(labels)) if graph is None else attended(graph, labels)
    beside = np.zeros((0, 0)) if graph is None else weight_between(graph, labels, sizes)
    by_cluster = np.argsort(labels, kind="stable")
    starts = np.cumsum(sizes) - sizes
    found = []
    for k in np.flatnonzero(sizes):
        rows = by_cluster[starts[k] : starts[k] + sizes[k]]
        sure = np.round(confidence[rows] / _CONFIDENCE_STEP)
        best = rows[np.lexsort((rows, -attention[rows], -sure))]
        typical = best[: min(examples, max(1, sizes[k] // 2))]
        rest = np.setdiff1d(rows, typical)
        worst = rest[np.lexsort((rest, confidence[rest]))]
        found.append(
            Cluster(
                int(k),
                int(sizes[k]),
                float(confidence[rows].mean()),
                typical,
                worst[:examples],
                _neighbours(beside, int(k)),
            )
        )
    return found


def attended(graph: csr_matrix, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """How much weight each sample gets from the others of its cluster."""
    entries = graph.tocoo()
    own = labels[entries.row] == labels[entries.col]
    others = own & (entries.row != entries.col)
    weights = entries.data[others].astype(np.float64)
    total = np.bincount(entries.col[others], weights, minlength=len(labels))
    return total.astype(np.float64)


def weight_between(
    graph: csr_matrix, labels: NDArray[np.int64], sizes: NDArray[Any]
) -> NDArray[np.float64]:
    """Share of cluster a's weight that goes to cluster b, (C, C); rows sum to one."""
    n = len(labels)
    member = csr_array((np.ones(n), (np.arange(n), labels)), shape=(n, len(sizes)))
    mass = np.asarray((member.T @ csr_array(graph) @ member).todense(), np.float64)
    total = mass.sum(axis=1, keepdims=True)
    share: NDArray[np.float64] = mass / np.where(total > 0, total, 1)
    return share


def _neighbours(
    share: NDArray[np.float64], cluster: int
) -> tuple[tuple[int, float], ...]:
    if not share.size:
        return ()
    row = share[cluster].copy()
    row[cluster] = 0
    best = np.argsort(-row, kind="stable")[:_NEIGHBOURS]
    return tuple((int(k), float(row[k])) for k in best if row[k] >= _LEAST_SHARE)
