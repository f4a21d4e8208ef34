"""k-means on the views side by side, or on one of them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from sklearn.cluster import KMeans as SklearnKMeans
from torch import Tensor

from sagl.baselines.base import Baseline, State, new_seed, resident, side_by_side
from sagl.nn.inference import exact_matmul
from sagl.views import Views


@dataclass(eq=False, repr=False, kw_only=True)
class KMeans(Baseline):
    """scikit-learn's k-means, ten starts, on rows of length one.

    This is also how backbones that refine representations for clustering, such as
    MIM-Refiner, are evaluated: k-means on their features.

    Parameters
    ----------
    view : str, optional
        Use this view alone; by default all views side by side.
    """

    view: str | None = None
    n_init: int = 10

    def _fit(self, views: Views, generator: torch.Generator) -> State:
        if self.view is not None and self.view not in views.names:
            raise ValueError(
                f"no view {self.view!r}; there are {', '.join(views.names)}"
            )
        x = self._joined(resident(views)).numpy()
        kmeans = SklearnKMeans(
            self.n_clusters, n_init=self.n_init, random_state=new_seed(generator)
        )
        return {"centres": torch.from_numpy(kmeans.fit(x).cluster_centers_)}

    def _scores(self, features: list[Tensor]) -> Tensor:
        centres = self.state_["centres"].double()
        # −‖x − c‖² without ‖x‖², which is the same for all centres.
        products = exact_matmul(self._joined(features), centres.T)
        return 2 * products - centres.square().sum(dim=1)

    def _joined(self, features: list[Tensor]) -> Tensor:
        named = zip(self.view_names_, features, strict=True)
        return side_by_side([h for name, h in named if self.view in (None, name)])
