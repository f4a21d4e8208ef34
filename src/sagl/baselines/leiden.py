"""Leiden communities of the nearest-neighbour graph. Extra ``peers``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sagl.baselines.base import real, usable_neighbours, whole
from sagl.baselines.transductive import Transductive
from sagl.environment import optional_module
from sagl.nn.neighbours import nearest_neighbours

_TRIALS = 20
_RESOLUTIONS = (1e-3, 1e3)


@dataclass(eq=False, repr=False, kw_only=True)
class Leiden(Transductive):
    """Communities of largest modularity among nearest neighbours, as in single cells.

    Traag, Waltman and van Eck, "From Louvain to Leiden: guaranteeing well-connected
    communities", 2019, by the package ``leidenalg``. Samples are linked to their
    nearest neighbours, by cosine; links count alike. Needs
    ``pip install "sagl[peers]"``.

    Parameters
    ----------
    resolution : float, optional
        The higher, the more clusters; 1 is modularity. By default it is searched for,
        until there are ``n_clusters`` or as near to it as comes.
    """

    resolution: float | None = real(None, strict=True)
    neighbours: int = whole(15)

    def _cluster(self, x: NDArray[np.float32], seed: int) -> NDArray[Any]:
        leidenalg = optional_module("leidenalg", "peers")
        count = usable_neighbours(self.neighbours, len(x), self.n_clusters)
        neighbours, _ = nearest_neighbours(torch.from_numpy(x), count)
        pairs = np.column_stack(
            [np.repeat(np.arange(len(x)), count), neighbours.numpy().ravel()]
        )
        edges = np.unique(np.sort(pairs, axis=1), axis=0)
        graph = optional_module("igraph", "peers").Graph(n=len(x), edges=edges)

        def communities(resolution: float) -> NDArray[Any]:
            partition = leidenalg.find_partition(
                graph,
                leidenalg.RBConfigurationVertexPartition,
                resolution_parameter=resolution,
                seed=seed,
            )
            return np.array(partition.membership)

        if self.resolution is not None:
            return communities(self.resolution)
        low, high = _RESOLUTIONS
        resolution, tried = 1.0, []
        for _ in range(_TRIALS):
            labels = communities(resolution)
            tried.append(labels)
            missing = self.n_clusters - (labels.max() + 1)
            if missing == 0:
                break
            low, high = (resolution, high) if missing > 0 else (low, resolution)
            resolution = math.sqrt(low * high)
        return min(tried, key=lambda labels: abs(labels.max() + 1 - self.n_clusters))
