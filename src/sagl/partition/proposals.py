"""Partitions to start from: spectral clusters of the graph, consensus of several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags, hstack
from scipy.sparse.linalg import ArpackError, eigsh, lobpcg
from sklearn.cluster import KMeans
from torch import Tensor

from sagl.partition.space import Space

_KMEANS_STARTS = 3
_DENSE_ROWS = 500


def spectral_labels(space: Space, n_clusters: int, seed: int) -> Tensor:
    """k-means on the leading eigenvectors of D^-½ A D^-½, A the affinity."""
    A = space.affinity
    parts = tuple(part.cpu().numpy() for part in (A.entries, A.cols, A.crow))
    matrix = csr_matrix(parts, shape=A.shape).astype(np.float64)
    scale = diags(np.asarray(matrix.sum(axis=1)).ravel() ** -0.5)
    vectors = _leading_eigenvectors(scale @ matrix @ scale, n_clusters)
    return _cluster_directions(vectors, n_clusters, seed, space)


def consensus(
    space: Space, partitions: Sequence[Tensor], n_clusters: int, seed: int
) -> Tensor:
    """One partition from several: samples that share many clusters belong together."""
    blocks = [_indicator(labels.cpu().numpy(), n_clusters) for labels in partitions]
    members = hstack(blocks).tocsr()
    # Left singular vectors times values, from the small Gram matrix of the clusters.
    _, vectors = np.linalg.eigh((members.T @ members).toarray())
    leading = members @ vectors[:, -n_clusters:]
    return _cluster_directions(leading, n_clusters, seed, space)


def _leading_eigenvectors(matrix: csr_matrix, count: int) -> NDArray[np.float64]:
    n = matrix.shape[0]
    if n <= _DENSE_ROWS or 4 * count >= n:
        return np.linalg.eigh(matrix.toarray())[1][:, -count:]
    start = np.random.default_rng(0).normal(size=n)  # else ARPACK draws its own
    try:
        _, vectors = eigsh(matrix, k=count, which="LA", v0=start, ncv=3 * count + 20)
    except ArpackError:  # a graph in many pieces has many equal eigenvalues
        _, vectors = lobpcg(matrix, _random_block(n, count), largest=True)
    return np.asarray(vectors)


def _random_block(n: int, count: int) -> NDArray[np.float64]:
    return np.random.default_rng(0).normal(size=(n, count))


def _indicator(labels: NDArray[np.int64], n_clusters: int) -> csr_matrix:
    """One row per sample with 1/√(size of its cluster) in the cluster's column."""
    sizes = np.bincount(labels, minlength=n_clusters).clip(min=1)
    n = len(labels)
    return csr_matrix(
        (sizes[labels] ** -0.5, labels, np.arange(n + 1)), shape=(n, n_clusters)
    )


def _cluster_directions(
    rows: NDArray[np.float64], n_clusters: int, seed: int, space: Space
) -> Tensor:
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(min=1e-12)
    kmeans = KMeans(n_clusters, n_init=_KMEANS_STARTS, random_state=seed)
    labels = kmeans.fit_predict(rows).astype(np.int64)
    return torch.from_numpy(labels).to(space.views[0].device)
