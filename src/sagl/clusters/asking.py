"""Whom to ask about: samples whose answers say something of many others.

The most doubtful samples lie at the borders of clusters, side by side, and are like few
others: what is said of them says little of the rest. Asked for instead is the sample
that is most like all doubtful ones that are unlike those asked about before: per step
the one that adds most to

    sum over samples j of  doubt_j · max(0, cosine of j and the nearest one asked about)

which is a facility location, taken greedily. Doubt is the entropy of a sample's
clusters, and a little for all; the cosine is that of z without its mean, mean over
views. So it goes from one group to the next, and to groups that one cluster has
swallowed.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sagl.clusters.neighbours import rows_of_anchors
from sagl.clusters.outliers import filled
from sagl.model import Model
from sagl.views import Views

_SURE = (
    0.2  # of the mean doubt, that sure samples have, too: they may be sure and wrong
)


@torch.no_grad()
def worth_asking(model: Model, views: Views, n: int) -> NDArray[np.int64]:
    """At most n training samples, (n,), the one that says most first.

    Of the anchors, which stand for all; who was corrected before counts as asked.
    """
    rows = rows_of_anchors(model)
    told = np.array([] if model.corrections is None else model.corrections.rows, int)
    near, doubt = _seen(model, views[rows])
    common = near.mean(dim=1)
    cover = near.new_zeros(len(rows))
    if len(told) > 0:
        of_told = _seen(model, views[told])[0]
        cover = _centred(of_told, of_told.mean(dim=1), common).amax(dim=0)
    free = torch.from_numpy(~np.isin(rows, told)).to(near.device)
    weight = doubt + _SURE * doubt.mean()
    return rows[covering(_centred(near, common, common), weight, cover, free, n)]


def covering(
    near: Tensor, weight: Tensor, cover: Tensor, free: Tensor, n: int
) -> list[int]:
    """At most n of the ``free`` samples, taken greedily, that cover most of the weight.

    ``near``, (a, a), is how like samples are; ``cover``, (a,), how like each is to
    those that were taken before.
    """
    taken: list[int] = []
    free = free.clone()
    for _ in range(min(n, int(free.sum()))):
        gain = (near - cover).clamp_min(0) @ weight
        best = int(gain.masked_fill(~free, -1).argmax())
        taken.append(best)
        free[best] = False
        cover = torch.maximum(cover, near[best])
    return taken


def _seen(model: Model, views: Views) -> tuple[Tensor, Tensor]:
    """Cosines to the anchors, (n, a), and doubt, (n,)."""
    predictor = model.predictor
    near, doubt = [], []
    for block in views.blocks(predictor.block_rows):
        n, features = len(block[0]), filled(predictor, block)
        q = predictor.answer(features).q[:n]
        doubt.append(-torch.special.xlogy(q, q).sum(dim=1))
        near.append(predictor.nearness(features)[:n].nan_to_num(0))  # no view in common
    return torch.cat(near), torch.cat(doubt).to(near[0])


def _centred(near: Tensor, mean: Tensor, of_anchors: Tensor) -> Tensor:
    """Cosines of what is left without the mean of all anchors, 0 to 1.

    Where all have much in common, everybody is like everybody, and one sample would do
    for all. ``mean`` is that of each row's cosines, (n,), of the anchors', (a,).
    """
    all_in_all = of_anchors.mean()
    length, theirs = (
        (1 - 2 * part + all_in_all).clamp_min(1e-6).sqrt()
        for part in (mean, of_anchors)
    )
    centred = near - mean[:, None] - of_anchors + all_in_all
    return (centred / length[:, None] / theirs).clamp(0, 1)
