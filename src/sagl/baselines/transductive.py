"""What methods share that label the samples they are given and know no others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sagl.baselines.base import Baseline, State, new_seed, side_by_side
from sagl.training.feed import Normalization
from sagl.views import Views

_VOTERS = 10
# Entries of rows of length one are rounded to multiples of 2^-24. Products are then
# multiples of 2^-48 that sum to at most the number of views: float64 holds every
# partial sum exactly (up to 32 views), so that no order, and no company, can matter.
_GRID = 2.0**24
# Added to squared distances: a training sample outvotes its neighbours about itself.
_NEARLY_ZERO = 1e-9


@dataclass(eq=False, repr=False, kw_only=True)
class Transductive(Baseline):
    """Base of methods that have no answer for new samples, and may leave some out.

    A subclass implements ``_cluster``. A sample that it left out, or never saw, gets
    the cluster of the nearest ten of those it labelled, weighed by the inverse squared
    distance. Views are taken side by side, rows of each of length one.

    Attributes
    ----------
    covered_ : array of shape (n_samples,)
        Which training samples the method labelled itself.
    n_clusters_ : int
        How many clusters there are, which need not be ``n_clusters``.

    Examples
    --------
    >>> from sagl.baselines import Transductive
    >>> class Signs(Transductive):  # by the sign of the first column
    ...     def _cluster(self, x, seed):
    ...         return (x[:, 0] > 0).astype(int)
    >>> X = np.array([[-1.0, 0.5], [-2.0, 0.4], [1.0, 0.3], [3.0, 0.5]])
    >>> Signs(n_clusters=2).fit({"all": X}).labels_
    array([0, 0, 1, 1])
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
        x = side_by_side(self._standardised(views, self.normalize))
        clusters = self._cluster(x.numpy(), new_seed(generator))
        covered = clusters >= 0
        # Where all are left out, all are one cluster.
        voters = covered if covered.any() else ~covered
        numbers = np.unique(clusters[voters], return_inverse=True)[1]
        return {
            "covered": torch.from_numpy(covered),
            "rows": on_grid(x[voters]),
            "clusters": torch.from_numpy(numbers),
        }

    def _scores(self, features: list[Tensor]) -> Tensor:
        """The share of each cluster in the votes of the nearest."""
        state = self.state_
        x = on_grid(side_by_side(features))
        rows = state["rows"].double()
        squares = x.square().sum(dim=1, keepdim=True) + rows.square().sum(dim=1)
        distances = squares - 2 * x @ rows.T
        nearest = distances.topk(min(_VOTERS, len(rows)), dim=1, largest=False)
        weights = 1 / (nearest.values + _NEARLY_ZERO)
        votes = torch.zeros(len(x), self.n_clusters_, dtype=x.dtype)
        votes.scatter_add_(1, state["clusters"][nearest.indices], weights)
        return votes / weights.sum(dim=1, keepdim=True)


def on_grid(x: Tensor) -> Tensor:
    """Entries between −1 and 1 as multiples of 2^-24, which float32 holds, too."""
    return (x.double() * _GRID).round().div(_GRID).to(x.dtype)
