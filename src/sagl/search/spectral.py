"""Leading eigenvectors of an affinity, and clusters among their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.sparse.linalg import ArpackError, eigsh, lobpcg

from sagl.search.centres import kmeans_labels

_DENSE_ROWS = 500


def leading_eigenvectors(affinity: Any, count: int) -> NDArray[np.float64]:
    """Of D^-½ A D^-½ for a symmetric A, dense or sparse, as columns, largest first."""
    n = affinity.shape[0]
    scale = np.asarray(affinity.sum(axis=1)).ravel() ** -0.5
    matrix = scaled_both_ways(affinity, scale)
    if n <= _DENSE_ROWS or 4 * count >= n:
        whole = matrix.toarray() if issparse(matrix) else matrix
        return np.ascontiguousarray(np.linalg.eigh(whole)[1][:, ::-1][:, :count])
    rng = np.random.default_rng(0)  # else ARPACK draws its own
    start = rng.normal(size=n)
    try:
        values, vectors = eigsh(
            matrix, k=count, which="LA", v0=start, ncv=3 * count + 20
        )
    except ArpackError:  # a graph in many pieces has many equal eigenvalues
        values, vectors = lobpcg(matrix, rng.normal(size=(n, count)), largest=True)
    return np.ascontiguousarray(vectors[:, np.argsort(-values)])


def scaled_both_ways(matrix: Any, scale: NDArray[np.float64]) -> Any:
    """diag(scale) · matrix · diag(scale)."""
    if issparse(matrix):
        return matrix.multiply(scale[:, None]).multiply(scale).tocsr()
    return matrix * (scale[:, None] * scale)


def cluster_directions(
    rows: NDArray[np.float64], n_clusters: int, seed: int, starts: int
) -> NDArray[np.int64]:
    """k-means on the directions of rows."""
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(min=1e-12)
    return kmeans_labels(rows, n_clusters, seed, starts)
