"""Dense rows of weights: their threshold, their values, their gradient.

``attend_dense`` is attention by these alone. It is exact like the sparse path, needs
few operations, and takes several views at once, which makes it the faster one for
small batches, where every operation costs more to start than to run.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from sagl.nn.entmax import threshold


def row_threshold(x: Tensor, alpha: float) -> Tensor:
    """τ of rows whose largest entry is 0; for softmax the log of the normaliser."""
    if alpha == 1:
        return x.logsumexp(dim=-1, keepdim=True)
    return threshold(x, alpha, settle=False)


def weights_(x: Tensor, tau: Tensor, alpha: float) -> Tensor:
    """[x − τ]_+ ^ (1/(α−1)), or for α = 1 exp(x − τ); overwrites ``x``."""
    gap = x.sub_(tau)
    if alpha == 1:
        return gap.exp_()
    gap.clamp_(min=0)
    if alpha == 2:
        return gap
    return gap.square_() if alpha == 1.5 else gap.pow_(1 / (alpha - 1))


def slope(weights: Tensor, alpha: float) -> Tensor:
    """a^(2−α) / (α − 1): how fast a weight of the support follows its score x."""
    if alpha == 1:
        return weights
    if alpha == 1.5:
        return weights.sqrt().mul_(2)
    if alpha == 2:
        return (weights > 0).to(weights.dtype)
    return torch.where(weights > 0, weights.pow(2 - alpha).div_(alpha - 1), 0)


def scores_gradient(weights: Tensor, d: Tensor, alpha: float) -> Tensor:
    """From the gradient d of the weights to that of the scores; overwrites ``d``."""
    r = slope(weights, alpha)
    mean = torch.linalg.vecdot(r, d) / r.sum(dim=-1)
    return d.sub_(mean.unsqueeze(-1)).mul_(r)


def dropout_factors(
    like: Tensor, p: float, generator: torch.Generator | None
) -> Tensor:
    """0 with probability p, else 1 / (1 − p), for every entry of ``like``."""
    # Four 16-bit numbers from each draw: several times faster than bernoulli_.
    words = torch.empty(-(-like.numel() // 4), dtype=torch.int64, device=like.device)
    words.random_(-(1 << 63), None, generator=generator)
    numbers = words.view(torch.int16)[: like.numel()].view(like.shape)
    dropped = min(round(p * (1 << 16)), (1 << 16) - 1)
    keep = (numbers >= dropped - (1 << 15)).to(like.dtype)
    return keep.mul_((1 << 16) / ((1 << 16) - dropped))


class attend_dense(torch.autograd.Function):  # noqa: N801 - used as a function
    """A values and A, for x = q keys^T of any number of views, (..., m, n).

    The gradient flows through the first output; the weights A are for looking at.
    """

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        keys: Tensor,
        values: Tensor,
        alpha: float,
        exclude: Tensor | None,
        dropout: float,
        generator: torch.Generator | None,
    ) -> tuple[Tensor, Tensor]:
        x = q @ keys.mT
        if x.dtype in (torch.float16, torch.bfloat16):  # autocast chose the product
            x = x.float()
        if exclude is not None:
            x.scatter_(-1, exclude.expand(x.shape[:-1]).unsqueeze(-1), -torch.inf)
        x.sub_(x.amax(dim=-1, keepdim=True))
        weights = weights_(x, row_threshold(x, alpha), alpha)
        keep = dropout_factors(weights, dropout, generator) if dropout > 0 else None
        ctx.save_for_backward(q, keys, values, weights, keep)
        ctx.alpha = alpha
        ctx.mark_non_differentiable(weights)
        ctx.set_materialize_grads(False)  # no zeros of the size of the weights
        return (weights if keep is None else weights * keep) @ values, weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor | None, _: None) -> tuple[Any, ...]:
        if grad is None:
            return (None,) * 7
        q, keys, values, weights, keep = ctx.saved_tensors
        d = grad @ values.mT
        dropped = weights
        if keep is not None:
            d.mul_(keep)
            dropped = weights * keep
        dx = scores_gradient(weights, d, ctx.alpha)
        return dx @ keys, dx.mT @ q, dropped.mT @ grad, None, None, None, None
