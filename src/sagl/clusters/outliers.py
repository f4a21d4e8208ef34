"""Samples unlike all others, and samples about which the views disagree.

Both are said of one sample by the model alone, so they are the same bits in any
company, for training samples and for new ones.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sagl.nn.inference import Answer, Predictor

_NEIGHBOURS = 5
_SAME = 1 - 1e-6  # so near an anchor is, as a rule, the sample itself


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
def outlier_scores(near: Tensor) -> Tensor:
    """How far each sample is from the anchors nearest to it, (n,): 0 to 2.

    One minus the mean cosine of its nearest anchors, by nearness to all, (n, a). The
    sample itself, if it is an anchor, and exact copies of it do not count.
    """
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
