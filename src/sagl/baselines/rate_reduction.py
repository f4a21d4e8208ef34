"""The maths of rate reduction: coding rates, memberships and clusters in them.

The coding rate of features is about the number of nats per sample that it takes to
write them down up to an error ε, were they Gaussian. Features of many kinds together
have a high rate; those of one kind, near a subspace of few dimensions, a low one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sagl.partition.spectral import cluster_directions, leading_eigenvectors


def coding_rate(z: Tensor, epsilon_squared: float) -> Tensor:
    """R(Z) = ½ log det(I + d/(n ε²) ZᵀZ) for n features z of d dimensions, (n, d)."""
    n, d = z.shape
    return _log_det_of_identity_plus(z.T @ z * (d / (n * epsilon_squared))) / 2


def group_rate(z: Tensor, membership: Tensor, epsilon_squared: float) -> Tensor:
    """R_c(Z, Π) = Σ_j n_j/(2n) log det(I + d/(n_j ε²) Zᵀ diag(π_j) Z).

    Column π_j of ``membership``, (n, m), says to what extent each sample belongs to
    group j; n_j is its sum.
    """
    n, d = z.shape
    sizes = membership.sum(dim=0)
    weights = (membership * (d / epsilon_squared / sizes)).T  # (m, n)
    # One large product for all groups: Σ_i w_ji z_i z_iᵀ.
    outer = (z[:, :, None] * z[:, None, :]).flatten(1)  # (n, d²)
    log_dets = _log_det_of_identity_plus((weights @ outer).view(-1, d, d))
    return sizes @ log_dets / (2 * n)


def doubly_stochastic(
    similarity: Tensor, temperature: float, half_steps: int = 5
) -> Tensor:
    """Π ≥ 0 whose rows and columns sum to one, large where ``similarity`` is large.

    It maximises ⟨similarity, Π⟩ + temperature · entropy(Π). Sinkhorn's iteration scales
    the rows and the columns of exp(similarity / temperature) in turn, rows first: after
    an odd number of half steps rows sum to one exactly, columns nearly.

    The largest similarity must be on the diagonal, each entry of which must be about
    as large, as for unit vectors and themselves: no row of the kernel is then lost to
    underflow.
    """
    kernel = torch.exp((similarity - similarity.max()) / temperature)
    right = torch.ones_like(kernel[0])
    for half_step in range(half_steps):
        if half_step % 2 == 0:
            left = 1 / (kernel @ right)
        else:
            right = 1 / (left @ kernel)
    return left[:, None] * kernel * right


def spectral_embedding(membership: Tensor, dimensions: int) -> NDArray[np.float64]:
    """Leading eigenvectors of D^-½ (Π + Πᵀ) D^-½ as columns, the first one first."""
    affinity = (membership + membership.T).cpu().double().numpy()
    return leading_eigenvectors(affinity, min(dimensions, len(affinity) - 1))


def spectral_labels(
    embedding: NDArray[np.float64], n_clusters: int, seed: int = 0
) -> NDArray[np.int64]:
    """k-means on the directions of the rows of the leading eigenvectors."""
    return cluster_directions(embedding[:, :n_clusters], n_clusters, seed, starts=10)


def coding_length(z: Tensor, labels: Tensor, epsilon_squared: float) -> float:
    """Nats for all of z, (n, d), cluster by cluster, and for who is in which cluster.

    Σ_k (n_k + d)/2 · log det(I + d/(n_k ε²) Z_kᵀ Z_k) − n_k log(n_k / n).
    """
    n, d = z.shape
    total = 0.0
    for k in torch.unique(labels):
        members = z[labels == k]
        rate = coding_rate(members, epsilon_squared).item()
        total += (len(members) + d) * rate - len(members) * math.log(len(members) / n)
    return total


def _log_det_of_identity_plus(gram: Tensor) -> Tensor:
    """log det(I + A) for positive semidefinite matrices A, (..., d, d)."""
    identity = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    log_det: Tensor = _LogDet.apply(gram + identity)  # type: ignore[no-untyped-call]
    return log_det


class _LogDet(torch.autograd.Function):
    """log det of positive definite matrices, with the inverse as its gradient.

    One Cholesky factor serves both, which takes a third of the time of torch's own
    ``logdet`` and its gradient by way of LU.
    """

    @staticmethod
    def forward(ctx: Any, matrix: Tensor) -> Tensor:
        factor: Tensor = torch.linalg.cholesky(matrix)
        ctx.save_for_backward(factor)
        return 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (factor,) = ctx.saved_tensors
        inverse = torch.cholesky_inverse(factor)
        return gradient[..., None, None] * inverse
