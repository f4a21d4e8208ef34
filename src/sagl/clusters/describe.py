"""All that is known of a model's training samples, by one pass over their views."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sagl.clusters.duplicates import duplicate_groups
from sagl.clusters.layers import with_layers
from sagl.clusters.outliers import look
from sagl.model import Facts, Model
from sagl.views import Views


def described(model: Model, views: Views) -> Model:
    """The model, fitted on these views, with what is known beside its clusters."""
    seen = look(model, views)
    groups = duplicate_groups(model.network, views, model.labels)
    between = _between(seen.q_sums, model.labels)
    facts = Facts(seen.outlier, seen.disagreement, groups, between)
    return with_layers(replace(model, facts=facts), views)


def _between(
    sums: NDArray[np.float64], labels: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Mean probabilities of each cluster's samples, (C, C); zeros where it has none."""
    sizes = np.bincount(labels, minlength=len(sums))[:, None]
    mean: NDArray[np.float64] = sums / np.maximum(sizes, 1)
    return mean
