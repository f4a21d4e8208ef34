"""Whom samples attend to: the training samples by which a model knows them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from sagl.clusters.learned import anchor_rows, check_whole
from sagl.clusters.table import called
from sagl.model import Model
from sagl.pipeline import drawn
from sagl.views import Views


class Neighbour(NamedTuple):
    """A training sample that another sample attends to."""

    sample: Any  # its id, or its number where the run has no ids
    cluster: int
    weight: float  # of the attention, which sums to at most one


def rows_of_anchors(model: Model) -> NDArray[np.int64]:
    """Which training samples the anchors are, (a,)."""
    check_whole(model, "naming neighbours")
    n, settings = len(model.labels), model.settings
    if model.network.has_heads:
        anchors = anchor_rows(settings, n)
    else:
        anchors = drawn(n, settings.n_anchors, settings.seed)
    if model.facts is None or len(anchors) != len(model.anchors[0]):
        raise ValueError(
            "the run does not say which samples its anchors are, so there are no "
            "neighbours to name: fit again with this sagl"
        )
    return anchors


def neighbours(model: Model, views: Views, n: int) -> list[list[Neighbour]]:
    """For each sample the anchors that it attends to most, at most ``n`` of them.

    Those without weight are left out; of equal weights the first anchor comes first.
    """
    rows = rows_of_anchors(model)
    names, clusters = called(model, rows), model.labels[rows].tolist()
    predictor = model.predictor
    found = []
    for block in views.blocks(predictor.block_rows):
        features = [torch.from_numpy(h).to(predictor.device) for h in block]
        for weights in predictor.attended(features).cpu().numpy():
            nearest = np.argsort(-weights, kind="stable")[:n]
            nearest = nearest[weights[nearest] > 0]
            found.append(
                [
                    Neighbour(names[i], clusters[i], weight)
                    for i, weight in zip(
                        nearest.tolist(), weights[nearest].tolist(), strict=True
                    )
                ]
            )
    return found
