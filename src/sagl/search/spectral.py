"""k-means, and leading eigenvectors of an affinity to run it on."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.sparse.linalg import ArpackError, eigsh, lobpcg
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

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


def kmeans_labels(
    rows: NDArray[np.floating], n_clusters: int, seed: int, starts: int
) -> NDArray[np.int64]:
    """Labels 0 … C − 1 of rows (n, d). With fewer distinct rows some stay unused."""
    kmeans = KMeans(n_clusters, n_init=starts, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Number of distinct", ConvergenceWarning)
        labels: NDArray[np.int64] = kmeans.fit_predict(rows).astype(np.int64)
    return labels
