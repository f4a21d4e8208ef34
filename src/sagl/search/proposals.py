"""Partitions to start from: of k-means, of the graph, the consensus of several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from torch import Tensor

from sagl.search.space import Space
from sagl.search.spectral import (
    cluster_directions,
    kmeans_labels,
    leading_eigenvectors,
)

_KMEANS_STARTS = 3
_DIRECTIONS = 64  # of each view, for k-means: the rest costs most and tells least


def centre_labels(space: Space, n_clusters: int, seed: int) -> Tensor:
    """k-means on the leading directions of the views side by side, one start."""
    parts = [spectrum.projected(_DIRECTIONS) for spectrum in space.spectra]
    x = space.side_by_side(parts).cpu().numpy()
    labels = kmeans_labels(x, n_clusters, seed, starts=1)
    return torch.from_numpy(labels).to(space.views[0].device)


def spectral_labels(space: Space, n_clusters: int, seed: int) -> Tensor:
    """k-means on the leading eigenvectors of D^-½ A D^-½, A the affinity."""
    A = space.affinity
    parts = tuple(part.cpu().numpy() for part in (A.entries, A.cols, A.crow))
    matrix = csr_matrix(parts, shape=A.shape).astype(np.float64)
    vectors = leading_eigenvectors(matrix, n_clusters)
    return _clusters(vectors, n_clusters, seed, space)


def consensus(
    space: Space, partitions: Sequence[Tensor], n_clusters: int, seed: int
) -> Tensor:
    """One partition from several: samples that share many clusters belong together."""
    blocks = [_indicator(labels.cpu().numpy(), n_clusters) for labels in partitions]
    leading = leading_images(hstack(blocks).tocsr(), n_clusters)
    return _clusters(leading, n_clusters, seed, space)


def leading_images(members: csr_matrix, count: int) -> NDArray[np.float64]:
    """Left singular vectors times values, by the smaller Gram matrix: (n, count).

    That of the clusters, but of very many, each of few samples, that of the samples.
    """
    n, columns = members.shape
    images: NDArray[np.float64]
    if n < columns:
        squares, vectors = np.linalg.eigh((members @ members.T).toarray())
        images = vectors[:, -count:] * np.sqrt(squares[-count:].clip(min=0))
    else:
        _, vectors = np.linalg.eigh((members.T @ members).toarray())
        images = members @ vectors[:, -count:]
    return images


def _indicator(labels: NDArray[np.int64], n_clusters: int) -> csr_matrix:
    """One row per sample with 1/√(size of its cluster) in the cluster's column."""
    sizes = np.bincount(labels, minlength=n_clusters).clip(min=1)
    n = len(labels)
    return csr_matrix(
        (sizes[labels] ** -0.5, labels, np.arange(n + 1)), shape=(n, n_clusters)
    )


def _clusters(
    rows: NDArray[np.float64], n_clusters: int, seed: int, space: Space
) -> Tensor:
    labels = cluster_directions(rows, n_clusters, seed, _KMEANS_STARTS)
    return torch.from_numpy(labels).to(space.views[0].device)
