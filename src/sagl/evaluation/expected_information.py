"""The mutual information that two clusterings share by chance.

If the samples are dealt out at random, a class of ``a`` samples and a cluster of ``b``
share ``n`` of all ``N`` with hypergeometric probability ``P(n)`` and mean
``m = a b / N``. The expected mutual information is the sum over all classes and
clusters of

    1/N  sum_n  P(n) (n log(n / m) - n + m)

The part ``m - n`` adds nothing on average, and keeps every term from being negative,
so that nothing cancels. The inner sum depends on the two sizes only and is done once
for each pair of sizes that occurs.

Reference: Vinh, Epps and Bailey, "Information theoretic measures for clusterings
comparison", JMLR 11, 2010.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlog1py

Float = NDArray[np.float64]

# Sizes of classes by sizes of clusters that are worked on at once: the arrays of one
# tile (128 KiB each) stay in the processor's cache.
_TILE = 128

# Each sum ends at terms this much less likely than the most likely one. Probabilities
# fall off ever faster, so all that is left out is less than 1e-20.
_NEGLIGIBLE = 1e-25


def expected_information(class_sizes: ArrayLike, cluster_sizes: ArrayLike) -> float:
    """Mean mutual information (in nats) of two random clusterings of given sizes.

    Parameters
    ----------
    class_sizes, cluster_sizes : array-like of positive whole numbers
        How many samples each class and each cluster holds; both have the same sum.

    Examples
    --------
    >>> from sagl.evaluation.expected_information import expected_information
    >>> round(expected_information([2, 2], [2, 2]), 6)
    0.231049
    """
    a, a_counts = _distinct(class_sizes)
    b, b_counts = _distinct(cluster_sizes)
    n_samples = int(a @ a_counts)
    total = 0.0
    # Sizes are sorted, so the sums within a tile are about equally long.
    for i in range(0, len(a), _TILE):
        rows = slice(i, i + _TILE)
        for j in range(0, len(b), _TILE):
            columns = slice(j, j + _TILE)
            terms = _expected_divergence(a[rows, None], b[columns], n_samples)
            total += float(a_counts[rows] @ terms @ b_counts[columns])
    return total / n_samples


def _distinct(sizes: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    return np.unique(np.asarray(sizes, dtype=np.int64), return_counts=True)


def _expected_divergence(
    a: NDArray[np.int64], b: NDArray[np.int64], n_samples: int
) -> Float:
    """Mean of ``n log(n / m) - n + m`` for each pair of sizes, (rows, 1) by (columns,).

    Probabilities are relative to that of the mode and divided by their sum at the end.
    """
    mean = a * b / n_samples
    mode = (a + 1) * (b + 1) // (n_samples + 2)
    # The two-by-two table of "in the class" and "in the cluster" at the mode.
    both, neither = mode, mode + n_samples - a - b
    only_a, only_b = a - mode, b - mode
    mass = np.ones_like(mean)
    divergence = _divergence(mode, mean)
    for shrinking, growing, step in (
        ((only_a, only_b), (both, neither), 1),
        ((both, neither), (only_a, only_b), -1),
    ):
        # P(n + 1) / P(n) = (a - n) (b - n) / ((n + 1) (N - a - b + n + 1)): the cells
        # that lose a sample over those that gain one. For n - 1 they change places.
        u, v = (cell.astype(np.float64) for cell in shrinking)
        s, t = (cell.astype(np.float64) for cell in growing)
        n = mode.astype(np.float64)
        p = np.ones_like(mean)
        while p.max() > _NEGLIGIBLE:
            s += 1
            t += 1
            n += step
            p *= u * v / (s * t)
            u -= 1
            v -= 1
            mass += p
            # Where the range of n has ended p is zero and n may be negative.
            divergence += p * _divergence(np.maximum(n, 0), mean)
    return divergence / mass


def _divergence(n: NDArray[Any], mean: Float) -> Float:
    """``n log(n / m) - n + m``, also exact where n and m are large and close."""
    excess = n - mean
    result: Float = xlog1py(n, excess / mean) - excess
    return result
