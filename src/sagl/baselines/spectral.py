"""Spectral clustering of the nearest-neighbour graph."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import SpectralClustering

from sagl.baselines.base import usable_neighbours, whole
from sagl.baselines.transductive import Transductive


@dataclass(eq=False, repr=False, kw_only=True)
class Spectral(Transductive):
    """scikit-learn's spectral clustering.

    A new sample gets the cluster of the nearest training samples. ``neighbours`` count
    the sample itself.
    """

    neighbours: int = whole(10, least=2)

    def _cluster(self, x: NDArray[np.float32], seed: int) -> NDArray[Any]:
        C = self.n_clusters
        method = SpectralClustering(
            C,
            affinity="nearest_neighbors",
            n_neighbors=1 + usable_neighbours(self.neighbours - 1, len(x), C),
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Graph is not fully connected")
            labels: NDArray[Any] = method.fit_predict(x)
        return labels
