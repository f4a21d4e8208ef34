"""Samples unlike all others, and samples about which the views disagree.

Both are said of one sample by the model alone, so they are the same bits in any
company, for training samples and for new ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sagl.model import Model
from sagl.nn.inference import Answer, Predictor
from sagl.views import Views

_NEIGHBOURS = 5
_SAME = 1 - 1e-6  # so near an anchor is, as a rule, the sample itself


class Seen(NamedTuple):
    """What a pass over samples leaves."""

    outlier: NDArray[np.float64]  # (n,)
    disagreement: NDArray[np.float64]  # (n,)
    q_sums: NDArray[np.float64]  # (C, C) probabilities, summed by most likely cluster


def look(model: Model, views: Views) -> Seen:
    """Outlier score and disagreement of each sample, whatever the company."""
    predictor = model.predictor
    C = model.settings.n_clusters
    parts, q_sums = [], np.zeros((C, C))
    for block in views.blocks(predictor.block_rows):
        n = len(block[0])
        features = filled(predictor, block)
        answer = predictor.answer(features)
        scores = outlier_scores(predictor, features), disagreement(answer)
        parts.append(torch.stack(scores)[:, :n].cpu().numpy())
        q = answer.q[:n].cpu().numpy()
        np.add.at(q_sums, q.argmax(axis=1), q)
    outlier, apart = np.concatenate(parts, axis=1)
    return Seen(outlier, apart, q_sums)


def filled(predictor: Predictor, block: list[NDArray[np.float32]]) -> list[Tensor]:
    """A block filled up to its full length: every reduction then has one shape."""
    missing = predictor.block_rows - len(block[0])
    return [
        torch.from_numpy(np.concatenate([h, h[:1].repeat(missing, axis=0)])).to(
            predictor.device
        )
        for h in block
    ]


@torch.no_grad()
def outlier_scores(predictor: Predictor, features: list[Tensor]) -> Tensor:
    """How far each sample is from the anchors nearest to it, (n,): 0 to 2.

    One minus the mean cosine of its nearest anchors. The sample itself, if it is an
    anchor, and exact copies of it do not count.
    """
    near = predictor.nearness(features)  # (n, a)
    near = near.masked_fill(near > _SAME, -1.0)
    nearest: Tensor = near.topk(min(_NEIGHBOURS, near.shape[1]), dim=1).values
    return 1 - nearest.mean(dim=1)


@torch.no_grad()
def disagreement(answer: Answer) -> Tensor:
    """How differently the views see each sample, (n,): 0 alike, 1 each its own way.

    The Jensen-Shannon divergence of the clusters that the views say, per its maximum;
    of a sample that misses some, of those that it has.
    """
    q = torch.softmax(torch.stack(answer.p), dim=-1)  # (L, n, C)
    L, n, C = q.shape
    if L == 1:
        return q.new_zeros(n)
    apart = _entropy(q.mean(dim=0)) - _entropy(q).mean(dim=0)
    share: Tensor = apart / np.log(min(L, C))
    if answer.present is not None:
        share = torch.where(
            answer.present.all(dim=1), share, _among(q, answer.present.T)
        )
    return share.clamp(0, 1)


def _among(q: Tensor, there: Tensor) -> Tensor:
    """The same of the views that are ``there``, (L, n); zero where there is but one."""
    count = there.sum(dim=0)
    mean = (q * there[..., None]).sum(dim=0) / count[:, None]
    apart = _entropy(mean) - (_entropy(q) * there).sum(dim=0) / count
    most = count.clamp(2, q.shape[-1]).to(q).log()
    return (apart / most).masked_fill(count < 2, 0.0)


def _entropy(q: Tensor) -> Tensor:
    entropy: Tensor = -torch.special.xlogy(q, q).sum(dim=-1)
    return entropy
