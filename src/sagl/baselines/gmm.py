"""A mixture of Gaussians on principal components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from torch import Tensor

from sagl.baselines.base import Baseline, State, new_seed, side_by_side, whole
from sagl.checks import check_choice
from sagl.nn.inference import exact_matmul
from sagl.views import Views

Covariance = Literal["full", "diag"]


@dataclass(eq=False, repr=False, kw_only=True)
class GMM(Baseline):
    """scikit-learn's Gaussian mixture on the leading principal components.

    Views are standardised, then taken side by side with rows of length one.

    Parameters
    ----------
    dimension : int, default=50
        Principal components, at most; covariances of more need more samples than most
        sets have.
    covariance : {"diag", "full"}, default="diag"
        Whether components vary together within a cluster.
    n_init : int, default=5
        Starts, by k-means; the likeliest result is kept.
    """

    dimension: int = whole(50)
    covariance: Covariance = "diag"
    n_init: int = whole(5)

    def _fit(self, views: Views, generator: torch.Generator) -> State:
        check_choice("covariance", self.covariance, Covariance)
        x = side_by_side(self._standardised(views, "standard")).double().numpy()
        seed = new_seed(generator)
        components = PCA(min(self.dimension, *x.shape), random_state=seed).fit(x)
        # Of unit variance in all, so that the least variance allowed means the same.
        size = components.explained_variance_.sum() ** -0.5
        mixture = GaussianMixture(
            self.n_clusters,
            covariance_type=self.covariance,
            n_init=self.n_init,
            random_state=seed,
        ).fit(size * components.transform(x))
        directions = torch.from_numpy(size * components.components_)
        precision = torch.from_numpy(mixture.precisions_cholesky_)
        if self.covariance == "diag":
            precision = torch.diag_embed(precision)
        return {
            "directions": directions,
            "offset": directions @ torch.from_numpy(components.mean_),
            "centres": torch.from_numpy(mixture.means_),
            "precision": precision,  # (C, k, k): z · precision has unit covariance
            "log_weight": torch.from_numpy(mixture.weights_).log(),
        }

    def _scores(self, features: list[Tensor]) -> Tensor:
        """Log of weight times density, but for what all clusters have in common."""
        state = self.state_
        z = exact_matmul(side_by_side(features), state["directions"].T)
        z = z - state["offset"]
        scores = []
        for centre, precision in zip(state["centres"], state["precision"], strict=True):
            distance = exact_matmul(z - centre, precision).square().sum(dim=1)
            scores.append(precision.diagonal().log().sum() - distance / 2)
        return torch.stack(scores, dim=1) + state["log_weight"]
