"""What methods share that label the samples they are given and know no others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sagl.baselines.base import Baseline, State, scaled, side_by_side, standardized
from sagl.nn.inference import exact_matmul
from sagl.training.feed import Normalization
from sagl.views import Views

_VOTERS = 10
# Added to squared distances, which are this exact for rows of length one: a sample that
# is itself among the training samples outvotes its neighbours.
_ROUNDING = 1e-5


@dataclass(eq=False, repr=False, kw_only=True)
class Transductive(Baseline):
    """Base of methods that have no answer for new samples, and may leave some out.

    A subclass implements ``_cluster``. A sample that it left out, or never saw, gets
    the cluster of the nearest ten of those it labelled, weighed by the inverse squared
    distance. Views are taken side by side, rows of each of length one.

    Parameters
    ----------
    n_clusters : int
    normalize : {"standard", "center", "none"}, default="standard"
        What is done to the columns of each view before.

    Attributes
    ----------
    covered_ : array of shape (n_samples,)
        Which training samples the method labelled itself.
    n_clusters_ : int
        How many clusters there are, which need not be ``n_clusters``.
    """

    normalize: Normalization = "standard"

    def _cluster(self, x: NDArray[np.float32], seed: int) -> NDArray[Any]:
        """The cluster of each row of x, (n, d); −1 where it is left out."""
        raise NotImplementedError

    @property
    def covered_(self) -> NDArray[np.bool_]:
        covered: NDArray[np.bool_] = self.state_["covered"].numpy()
        return covered

    @property
    def n_clusters_(self) -> int:
        return int(self.state_["clusters"].max()) + 1

    def _fit(self, views: Views, generator: torch.Generator) -> State:
        features, scale = scaled(views, self.normalize, torch.device("cpu"))
        x = side_by_side(features)
        seed = int(torch.randint(1 << 31, (), generator=generator))
        clusters = self._cluster(x.numpy(), seed)
        covered = clusters >= 0
        # Where all are left out, all are one cluster.
        voters = covered if covered.any() else ~covered
        numbers = np.unique(clusters[voters], return_inverse=True)[1]
        return scale | {
            "covered": torch.from_numpy(covered),
            "rows": x[voters],
            "clusters": torch.from_numpy(numbers),
        }

    def _scores(self, features: list[Tensor]) -> Tensor:
        """The share of each cluster in the votes of the nearest."""
        state = self.state_
        x, rows = side_by_side(standardized(features, state)), state["rows"].double()
        squares = x.square().sum(dim=1, keepdim=True) + rows.square().sum(dim=1)
        distances = squares - 2 * exact_matmul(x, rows.T)
        nearest = distances.topk(min(_VOTERS, len(rows)), dim=1, largest=False)
        weights = 1 / (nearest.values.clamp(min=0) + _ROUNDING)
        votes = torch.zeros(len(x), self.n_clusters_, dtype=x.dtype)
        votes.scatter_add_(1, state["clusters"][nearest.indices], weights)
        return votes / weights.sum(dim=1, keepdim=True)
