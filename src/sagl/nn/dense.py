"""Dense rows of weights: their threshold, their values, their gradient.

What is kept of a score is its *gap*, [x − τ]_+, of which both the weight and its slope
are simple functions. For softmax, which has no gaps, it is the weight itself.

``attend_dense`` is attention by these alone. It is exact like the sparse path, needs
few operations, and takes several views at once, which makes it the faster one for
small batches, where every operation costs more to start than to run.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from sagl.nn.entmax import threshold
from sagl.nn.ranks import SharedBatch


class Options(NamedTuple):
    """What ``attend`` was asked for, besides queries, keys and values."""

    alpha: float
    exclude: Tensor | None = None  # (m,) the one key each query may not see
    dropout: float = 0.0
    generator: torch.Generator | None = None
    product_dtype: torch.dtype | None = None  # of the score product, under autocast
    batch: SharedBatch | None = None  # whose own rows the queries are


def row_threshold(x: Tensor, alpha: float) -> Tensor:
    """τ of rows whose largest entry is 0; for softmax the log of the normaliser."""
    if alpha == 1:
        return x.logsumexp(dim=-1, keepdim=True)
    return threshold(x, alpha, settle=False)


def gaps_(x: Tensor, tau: Tensor, alpha: float) -> Tensor:
    """[x − τ]_+, or for α = 1 exp(x − τ); overwrites ``x``."""
    x.sub_(tau)
    return x.exp_() if alpha == 1 else x.clamp_(min=0)


def weights_of(gaps: Tensor, alpha: float) -> Tensor:
    """a = gap^(1/(α−1)); the gaps themselves where that is the same."""
    if alpha in (1, 2):
        return gaps
    return gaps.square() if alpha == 1.5 else gaps.pow(1 / (alpha - 1))


def slope_of(gaps: Tensor, alpha: float) -> Tensor:
    """a^(2−α) / (α − 1): how fast a weight of the support follows its score x."""
    if alpha == 1:
        return gaps
    if alpha == 1.5:
        return gaps * 2
    if alpha == 2:
        return (gaps > 0).to(gaps.dtype)
    slope = gaps.pow((2 - alpha) / (alpha - 1)).div_(alpha - 1)
    return torch.where(gaps > 0, slope, 0)


def scores_gradient(gaps: Tensor, d: Tensor, alpha: float) -> Tensor:
    """From the gradient d of the weights to that of the scores; overwrites ``d``."""
    r = slope_of(gaps, alpha)
    mean = torch.linalg.vecdot(r, d).div_(r.sum(dim=-1))
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


def _factors_of_rows(
    like: Tensor, p: float, generator: torch.Generator | None, batch: SharedBatch | None
) -> Tensor:
    """Factors of dropout; of own rows, those that one process would draw for them."""
    if batch is None:
        return dropout_factors(like, p, generator)
    *views, _, n = like.shape
    whole = dropout_factors(like.new_empty(*views, batch.n, n), p, generator)
    return whole[..., batch.own, :]


class Saved(NamedTuple):
    """What the gradient needs of dense attention, each (..., m, n)."""

    gaps: Tensor
    dropped: Tensor  # the weights after dropout
    keep: Tensor | None  # the factors of the dropout


def attended(
    q: Tensor, keys: Tensor, values: Tensor, options: Options
) -> tuple[Tensor, Tensor, Saved]:
    """A values and A, before dropout, of any number of views; x = q keys^T."""
    alpha, exclude, dropout, generator, product_dtype, batch = options
    if product_dtype is None:
        x = q @ keys.mT
    else:
        x = (q.to(product_dtype) @ keys.mT.to(product_dtype)).to(q.dtype)
    if exclude is not None:
        x.scatter_(-1, exclude.expand(x.shape[:-1]).unsqueeze(-1), -torch.inf)
    x.sub_(x.amax(dim=-1, keepdim=True))
    gaps = gaps_(x, row_threshold(x, alpha), alpha)
    weights = weights_of(gaps, alpha)
    dropped, keep = weights, None
    if dropout > 0:
        keep = _factors_of_rows(weights, dropout, generator, batch)
        dropped = weights * keep
    return dropped @ values, weights, Saved(gaps, dropped, keep)


def attended_gradient(
    q: Tensor,
    keys: Tensor,
    values: Tensor,
    alpha: float,
    saved: Saved,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of q, keys and values from that of the output."""
    gaps, dropped, keep = saved
    d = grad @ values.mT
    if keep is not None:
        d.mul_(keep)
    dx = scores_gradient(gaps, d, alpha)
    return dx @ keys, dx.mT @ q, dropped.mT @ grad


class attend_dense(torch.autograd.Function):  # noqa: N801 - used as a function
    """:func:`attended` for autograd: A values, and A, which is for looking at."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, keys: Tensor, values: Tensor, options: Options
    ) -> tuple[Tensor, Tensor]:
        out, weights, saved = attended(q, keys, values, options)
        ctx.save_for_backward(q, keys, values, *saved)
        ctx.alpha = options.alpha
        ctx.mark_non_differentiable(weights)
        ctx.set_materialize_grads(False)  # no zeros of the size of the weights
        return out, weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor | None, _: None) -> tuple[Any, ...]:
        if grad is None:
            return (None,) * 4
        q, keys, values, *saved = ctx.saved_tensors
        grads = attended_gradient(q, keys, values, ctx.alpha, Saved(*saved), grad)
        return *grads, None
