"""k-means: scikit-learn's, quiet about repeated samples, and a quick one for two."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

_POWER_STEPS, _MAX_MOVES = 10, 30


def kmeans_labels(
    rows: NDArray[np.floating], n_clusters: int, seed: int, starts: int
) -> NDArray[np.int64]:
    """Labels 0 … C − 1 of rows (n, d). With fewer distinct rows some stay unused."""
    kmeans = KMeans(n_clusters, n_init=starts, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Number of distinct", ConvergenceWarning)
        labels: NDArray[np.int64] = kmeans.fit_predict(rows).astype(np.int64)
    return labels


def halved(rows: Tensor) -> Tensor:
    """Which rows of (n, d) are in the second of two clusters: 2-means, (n,) of bool.

    From a cut across the direction in which rows differ most, so without chance, and
    many times as fast as scikit-learn's on the few samples of one cluster. None where
    all rows are alike.
    """
    centred = rows - rows.mean(dim=0)
    direction = centred[centred.square().sum(dim=1).argmax()]
    for _ in range(_POWER_STEPS):
        direction = (centred @ direction) @ centred
        direction = direction / direction.norm().clamp_min(1e-30)
    side = centred @ direction > 0
    for _ in range(_MAX_MOVES):
        if side.all() or not side.any():
            break
        first, second = centred[~side].mean(dim=0), centred[side].mean(dim=0)
        middle = (second + first) / 2
        moved = (centred - middle) @ (second - first) > 0
        if torch.equal(moved, side):
            break
        side = moved
    return side
