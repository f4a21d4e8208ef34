"""The supervised ceiling: logistic regression with the true labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from sagl.baselines.base import Baseline, resident
from sagl.nn.inference import exact_matmul
from sagl.views import Views


@dataclass(eq=False, repr=False, kw_only=True)
class LinearProbe(Baseline):
    """Logistic regression on the standardised views side by side. **Uses labels.**

    It is no competitor: it says what a linear map of these features could reach if the
    labels were known, and every table sets it apart.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the L2 penalty.

    Attributes
    ----------
    classes_ : array of shape (n_clusters,)
        The true label that each predicted number stands for.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sagl.baselines import LinearProbe
    >>> X, y = make_blobs(90, n_features=6, centers=3, random_state=0)
    >>> probe = LinearProbe(n_clusters=3).fit({"all": X}, y)
    >>> (probe.classes_[probe.labels_] == y).all()
    np.True_
    """

    supervised: ClassVar[bool] = True

    C: float = 1.0
    max_iter: int = 1000

    def _learn(self, views: Views, y: Any, generator: torch.Generator) -> None:
        if y is None:
            raise ValueError(
                "LinearProbe is the supervised ceiling: it needs the true labels of "
                "the training samples, fit(views, labels)"
            )
        classes, codes = np.unique(np.asarray(y), return_inverse=True)
        if len(codes) != len(views):
            raise ValueError(f"{len(views)} samples need as many labels, got {len(y)}")
        x = torch.cat(resident(views), dim=1).double().numpy()
        scaler = StandardScaler().fit(x)
        probe = LogisticRegression(C=self.C, max_iter=self.max_iter)
        probe.fit(scaler.transform(x), codes)
        weight, bias = probe.coef_, probe.intercept_
        if len(classes) == 2:  # scikit-learn keeps one row for two classes
            weight, bias = np.vstack([-weight, weight]), np.hstack([-bias, bias])
        self.classes_ = classes
        weight = weight / scaler.scale_
        bias = bias - weight @ scaler.mean_
        self._keep({"weight": torch.from_numpy(weight), "bias": torch.from_numpy(bias)})

    def _scores(self, features: list[Tensor]) -> Tensor:
        x = torch.cat(features, dim=1)
        return exact_matmul(x, self.state_["weight"].T) + self.state_["bias"]
