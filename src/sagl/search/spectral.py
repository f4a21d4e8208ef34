"""k-means, and leading eigenvectors of an affinity to run it on."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import identity, issparse
from scipy.sparse.linalg import ArpackError, eigsh
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import randomized_range_finder

_DENSE_ROWS = 500
# More eigenvectors than this are found together, to the precision that k-means needs:
# one by one, 400 of 8,000 samples take minutes.
_ONE_BY_ONE = 100
_SPARE, _POWERS = 20, 8


def leading_eigenvectors(affinity: Any, count: int) -> NDArray[np.float64]:
    """Of D^-½ A D^-½ for a symmetric A, dense or sparse, as columns, largest first.

    Very many of a large sparse matrix are those of its image of a random subspace.
    """
    n = affinity.shape[0]
    degrees = np.asarray(affinity.sum(axis=1)).ravel()
    scale = degrees.clip(min=np.finfo(np.float64).tiny) ** -0.5  # some may be alone
    matrix = scaled_both_ways(affinity, scale)
    if n <= _DENSE_ROWS or 4 * count >= n:
        whole = matrix.toarray() if issparse(matrix) else matrix
        return np.ascontiguousarray(np.linalg.eigh(whole)[1][:, ::-1][:, :count])
    if count > _ONE_BY_ONE:
        return _by_subspace(matrix, count)
    rng = np.random.default_rng(0)  # else ARPACK draws its own
    start = rng.normal(size=n)
    try:
        values, vectors = eigsh(
            matrix, k=count, which="LA", v0=start, ncv=3 * count + 20
        )
    except ArpackError:  # a graph in many pieces has many equal eigenvalues
        return _by_subspace(matrix, count)
    return np.ascontiguousarray(vectors[:, np.argsort(-values)])


def _by_subspace(matrix: Any, count: int) -> NDArray[np.float64]:
    """Powers of M + 1, whose eigenvalues are none below 0, bring the largest forth."""
    n = matrix.shape[0]
    one = identity(n, format="csr") if issparse(matrix) else np.eye(n)
    basis = randomized_range_finder(
        matrix + one,
        size=count + _SPARE,
        n_iter=_POWERS,
        power_iteration_normalizer="QR",
        random_state=0,
    )
    _, vectors = np.linalg.eigh(basis.T @ (matrix @ basis))
    return np.ascontiguousarray(basis @ vectors[:, ::-1][:, :count])


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
