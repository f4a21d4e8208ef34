"""All that is known of a model's training samples, by one pass over their views."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sagl.clusters.duplicates import duplicate_groups
from sagl.clusters.layers import Halves, with_layers
from sagl.clusters.outliers import disagreement, filled, outlier_scores
from sagl.model import Facts, Leaves, Model
from sagl.prediction import of_all
from sagl.training.distributed import ranks
from sagl.views import Views


class Seen(NamedTuple):
    """What a pass over samples leaves."""

    labels: NDArray[np.int64]  # (n,) the most likely cluster
    confidence: NDArray[np.float64]  # (n,) its probability
    leaves: NDArray[np.int64]  # (n,) see below
    outlier: NDArray[np.float64]  # (n,)
    disagreement: NDArray[np.float64]  # (n,)
    q_sums: NDArray[np.float64]  # (C, C) probabilities, summed by most likely cluster


def look(model: Model, views: Views, anchors: Tensor | None = None) -> Seen:
    """All that a model says of each sample, whatever the company, in one pass.

    With the clusters of ``anchors`` in the finest layer, (a,), also in which half of
    its cluster each sample is: of the cluster that the model has for it, or else of the
    most likely one. Each of several processes looks at some; all have all.
    """
    predictor, here, n = model.predictor, ranks(), len(views)
    halves = None if anchors is None else Halves(model, anchors)
    C, own = model.settings.n_clusters, here.own(n)
    place, q_sums = own.start, np.zeros((C, C))
    # Made at once: what is kept of each block would pin the memory that blocks pass
    # through, ten kilobytes per sample.
    whole = np.empty((2, own.stop - own.start), np.int64)
    real = np.empty((3, own.stop - own.start))
    for block in views.blocks(predictor.block_rows, own):
        b = len(block[0])
        rows = slice(place - own.start, place - own.start + b)
        features = filled(predictor, block)
        answer = predictor.answer(features)
        near = predictor.nearness(features)
        q = answer.q[:b].cpu().numpy()
        labels = q.argmax(axis=1)
        np.add.at(q_sums, labels, q)
        leaves = labels
        if halves is not None:
            known = model.labels[place : place + b] if len(model.labels) else labels
            leaves = halves.of(known, near[:b])
        whole[:, rows] = labels, leaves
        real[0, rows] = q.max(axis=1)
        real[1, rows] = outlier_scores(near)[:b].cpu().numpy()
        real[2, rows] = disagreement(answer)[:b].cpu().numpy()
        place += b
    labels, leaves = (of_all(part, n) for part in whole)
    sure, outlier, apart = (of_all(part, n) for part in real)
    total = here.sum_(torch.from_numpy(q_sums)).numpy()
    return Seen(labels, sure, leaves, outlier, apart, total)


def described(model: Model, views: Views) -> Model:
    """The model, fitted on these views, with what is known of each sample.

    Clusters and confidence are the model's own, unless it has some already.
    """
    model, anchors = with_layers(model, views)
    seen = look(model, views, anchors)
    if len(model.labels) == 0:
        model = replace(model, labels=seen.labels, confidence=seen.confidence)
    if anchors is not None:
        model = replace(model, leaves=Leaves(anchors, seen.leaves))
    groups = duplicate_groups(model.network, views, model.labels)
    between = _between(seen.q_sums, model.labels)
    facts = Facts(seen.outlier, seen.disagreement, groups, between)
    return replace(model, facts=facts)


def _between(
    sums: NDArray[np.float64], labels: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Mean probabilities of each cluster's samples, (C, C); zeros where it has none."""
    sizes = np.bincount(labels, minlength=len(sums))[:, None]
    mean: NDArray[np.float64] = sums / np.maximum(sizes, 1)
    return mean
