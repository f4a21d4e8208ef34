"""Doubt: which samples keep their cluster when the search starts somewhere else.

The stability of a sample is the share of other partitions that put it into the same
cluster. Nobody checked those either, but a sample that lands here today and there
tomorrow is one to ask a person about.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from torch import Tensor

_POINTS = 50
_BISECTIONS = 40
_MAX_SHARPENING = 20.0


class DoubtCurve(NamedTuple):
    """What is left, and how stable it is, when samples below a confidence are left out.

    Attributes
    ----------
    confidence : tuple of float
        Thresholds, rising; the first leaves nothing out.
    kept : tuple of float
        The share of samples at or above each.
    agreement : tuple of float
        The mean stability of those.
    """

    confidence: tuple[float, ...]
    kept: tuple[float, ...]
    agreement: tuple[float, ...]

    def as_dict(self) -> dict[str, Any]:
        return self._asdict()

    def threshold(self, agreement: float) -> float:
        """The lowest confidence from which on samples agree so much on average.

        Above all confidences, so that every sample is doubtful, where none do.
        """
        reached = [
            t
            for t, a in zip(self.confidence, self.agreement, strict=True)
            if a >= agreement
        ]
        return min(reached, default=float(np.nextafter(1.0, 2.0)))


def stability(
    labels: NDArray[np.int64], others: Sequence[NDArray[np.int64]], n_clusters: int
) -> NDArray[np.float64]:
    """The share of the other partitions that agree about each sample, (n,).

    Clusters of each of them are first matched, one to one, to those of ``labels``.
    """
    same = [labels == _renamed(other, labels, n_clusters) for other in others]
    share: NDArray[np.float64] = np.mean(same, axis=0)
    return share


def _renamed(
    other: NDArray[np.int64], labels: NDArray[np.int64], n_clusters: int
) -> NDArray[np.int64]:
    shared = np.zeros((n_clusters, n_clusters))
    np.add.at(shared, (other, labels), 1)
    theirs, ours = linear_sum_assignment(shared, maximize=True)
    names = np.empty(n_clusters, dtype=np.int64)
    names[theirs] = ours
    return names[other]


def doubt_curve(
    confidence: NDArray[np.float64], stable: NDArray[np.float64]
) -> DoubtCurve:
    """The curve of some samples, at evenly spaced quantiles of their confidence.

    The first threshold is 0: a sample less sure than all of these is not left out if
    none of them is.
    """
    quantiles = np.linspace(0, 1, _POINTS, endpoint=False)
    thresholds = np.unique(np.quantile(confidence, quantiles, method="lower"))
    thresholds[0] = 0
    kept = [confidence >= t for t in thresholds]
    return DoubtCurve(
        tuple(thresholds.tolist()),
        tuple(float(rows.mean()) for rows in kept),
        tuple(float(stable[rows].mean()) for rows in kept),
    )


def inverse_temperature(p: Tensor, mean_confidence: float) -> float:
    """The factor on representations p, (n, C), that brings about a confidence.

    The nearest that can be had, where the confidence cannot be had.
    """
    low, high = 0.0, _MAX_SHARPENING
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        q = torch.softmax(middle * p, dim=-1)
        if float(q.amax(dim=1).mean()) < mean_confidence:
            low = middle
        else:
            high = middle
    return max((low + high) / 2, 1e-3)
