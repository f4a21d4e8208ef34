"""α-entmax: the projection that turns a row of scores into sparse weights.

    entmax_α(s) = argmax_{a in simplex} <a, s> + H_α(a)          (eq. entmax)
                = [(α − 1) s − τ]_+ ^ (1 / (α − 1))

with H_α the Tsallis α-entropy and τ the only number for which the weights sum to
one. α = 1 is softmax (no zeros), α = 2 is sparsemax, α = 1.5 lies between.

Peters, Niculae, Martins: Sparse Sequence-to-Sequence Models, ACL 2019.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

# Newton needs about a dozen steps for α in [1.3, 2] and more as α approaches 1;
# bisection halves an interval of length ≤ 1 down to the last bit of a float64.
_MAX_NEWTON_STEPS = 200
_BISECTION_STEPS = 64
# Of rows of so many scores the largest are looked at first, and these are so many; rows
# for which they are too few are projected so many at once.
_MANY, _LARGEST, _TOGETHER = 1024, 64, 16


def entmax(scores: Tensor, alpha: float = 1.5, dim: int = -1) -> Tensor:
    """Project every slice of ``scores`` along ``dim`` onto the simplex.

    Parameters
    ----------
    scores : Tensor
        Real scores; ``-inf`` marks an entry that must receive weight zero.
    alpha : float, default=1.5
        1 gives softmax, larger values give sparser weights.
    dim : int, default=-1
        The dimension whose entries compete and sum to one.

    Returns
    -------
    Tensor
        Weights of the shape of ``scores``: non-negative, summing to one along
        ``dim``, exactly zero outside the support.

    Examples
    --------
    >>> import torch
    >>> from sagl.nn import entmax
    >>> entmax(torch.tensor([2.0, 1.9, -3.0]), alpha=2)
    tensor([0.5500, 0.4500, 0.0000])
    """
    check_alpha(alpha)
    if scores.dim() == 0:
        raise ValueError(
            "entmax needs scores with at least one dimension, got a scalar"
        )
    if not scores.is_floating_point():
        raise ValueError(f"entmax needs floating-point scores, got {scores.dtype}")
    if scores.shape[dim] == 0:
        raise ValueError(f"entmax over dimension {dim} of length 0 has no answer")
    rows = scores.movedim(dim, -1)
    top = rows.detach().amax(dim=-1)
    if not bool(torch.isfinite(top).all()):
        where = tuple(int(i) for i in (~torch.isfinite(top)).nonzero()[0])
        value = float(top[where])
        raise ValueError(
            f"entmax cannot project row {where}: its largest score is {value}; "
            "every row needs at least one finite score and no NaN or +inf"
        )
    return entmax_rows(rows, alpha).movedim(-1, dim)


def check_alpha(alpha: float) -> None:
    """Refuse an α for which entmax is not defined."""
    if not 1 <= alpha < float("inf"):
        raise ValueError(f"alpha must be a finite number of at least 1, got {alpha}")


def entmax_rows(scores: Tensor, alpha: float) -> Tensor:
    """Like :func:`entmax` over the last dimension, for scores known to be sound."""
    if alpha == 1:
        return torch.softmax(scores, dim=-1)
    weights: Tensor = _Entmax.apply(scores, alpha)  # type: ignore[no-untyped-call]
    return weights


@torch.no_grad()
def entmax_of_largest(scores: Tensor, alpha: float) -> Tensor:
    """:func:`entmax_rows` for rows of many scores, (b, n), of which few get weight.

    The largest few of each row are projected: eight times as fast for 5,000 scores. A
    row in which more of them have weight is projected as a whole, so that what it
    becomes depends on the row alone. There is no gradient.
    """
    if alpha == 1 or scores.shape[1] < _MANY:
        return entmax_rows(scores, alpha)
    values, where = scores.topk(_LARGEST, dim=1)
    largest = entmax_rows(values, alpha)
    weights = torch.zeros_like(scores).scatter_(1, where, largest)
    # Where the last of them has no weight it is not above τ, and neither is any other.
    # Elsewhere all count, in blocks of one shape: rounding must not tell how many.
    many = torch.nonzero(largest[:, -1] > 0).flatten()
    for start in range(0, len(many), _TOGETHER):
        cut = many[start : start + _TOGETHER]
        filled = torch.cat([cut, cut[:1].expand(_TOGETHER - len(cut))])
        weights[cut] = entmax_rows(scores[filled], alpha)[: len(cut)]
    return weights


class _Entmax(torch.autograd.Function):
    """Forward by the threshold τ, backward on the support alone.

    With r = a^(2−α) on the support and 0 elsewhere, the Jacobian is
    diag(r) − r r^T / sum(r), so grad_s = r ⊙ (g − <r, g> / sum(r)).
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, alpha: float) -> Tensor:
        x = (alpha - 1) * scores
        x = x - x.amax(dim=-1, keepdim=True)  # the largest entry is now 0
        weights = (x - threshold(x, alpha)).clamp_(min=0)
        if alpha != 2:
            weights = weights.pow_(1 / (alpha - 1))
        if alpha > 2:  # a root of tiny gaps: the last bit of τ shows in the sum
            weights = weights.div_(weights.sum(dim=-1, keepdim=True))
        ctx.save_for_backward(weights)
        ctx.alpha = alpha
        return weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        (weights,) = ctx.saved_tensors
        r = torch.where(weights > 0, weights.pow(2 - ctx.alpha), 0)
        mean = (r * g).sum(dim=-1, keepdim=True) / r.sum(dim=-1, keepdim=True)
        return r * (g - mean), None


def threshold(x: Tensor, alpha: float, *, settle: bool = True) -> Tensor:
    """τ of each row of ``x = (α − 1) s``, whose largest entry must be 0.

    f(τ) = sum_j [x_j − τ]_+^(1/(α−1)) − 1 falls from f(−1) ≥ 0 to f(0) = −1. For
    α ≤ 2 it is convex, so Newton's steps from a point left of the root grow
    monotonically towards it and never pass it (for α = 2 they end on it, for α = 1.5
    they converge quadratically). For α > 2 it is not convex and is bisected instead.

    With ``settle`` every row is followed until it does not move any more, so its τ is
    the same to the last bit whatever the other rows are. Without, α = 1.5 stops when
    what is left is below rounding for all rows.
    """
    if alpha > 2:
        return _bisect(x, 1 / (alpha - 1))
    if alpha == 1.5 and not settle:
        return _threshold15(x)
    tau = _lower_bound(x, alpha)
    for _ in range(_MAX_NEWTON_STEPS):
        new = tau + _newton_step(x, tau, alpha)
        if not bool((new > tau).any()):  # rounding has eaten the last step
            break
        tau = new
    return tau


def _threshold15(x: Tensor) -> Tensor:
    """Newton for α = 1.5 that stops as soon as the next steps must be negligible.

    If a step is e times the distance from τ to the largest entry, then the error left
    behind it is at most e²/2 of that distance, and so on with every further step.
    """
    tau = _lower_bound(x, 1.5)
    for i in range(_MAX_NEWTON_STEPS):
        step = _newton_step(x, tau, 1.5)
        # The first two are hardly ever the last: asking costs as much as half a step.
        small = i > 1 and bool(step.add(tau, alpha=0.01).amax() < 0)
        tau = tau + step
        if small:  # 5e-5 is left, then 1e-9, then 1e-18
            break
    for _ in range(1 if x.dtype == torch.float32 else 2):
        tau = tau + _newton_step(x, tau, 1.5)
    return tau


def _newton_step(x: Tensor, tau: Tensor, alpha: float) -> Tensor:
    """How far Newton moves τ, at least 0."""
    gap = (x - tau).clamp_(min=0)
    if alpha == 1.5:
        mass = torch.linalg.vecdot(gap, gap).unsqueeze(-1)
        slope = gap.sum(dim=-1, keepdim=True).mul_(2)
        newton: Tensor = mass.sub_(1).div_(slope).clamp_(min=0)
        return newton
    if alpha == 2:
        mass = gap.sum(dim=-1, keepdim=True)
        slope = (gap > 0).sum(dim=-1, keepdim=True)
    else:
        power = 1 / (alpha - 1)
        steep = gap.pow(power - 1)
        mass = torch.linalg.vecdot(steep, gap).unsqueeze(-1)
        slope = steep.sum(dim=-1, keepdim=True).mul_(power)
    step: Tensor = (mass - 1) / slope
    return step.clamp_(min=0)


def _lower_bound(x: Tensor, alpha: float) -> Tensor:
    """A point left of the root: the best of two that are cheap to know.

    The largest entry alone weighs 1 at τ = −1; and by Jensen's inequality n entries
    weigh at least as much as n times their mean, which is tight for flat rows.
    """
    flat = float(x.shape[-1] ** (1 - alpha))
    bound: Tensor = x.mean(dim=-1, keepdim=True) - flat
    return bound.clamp_(min=-1)


def _bisect(x: Tensor, power: float) -> Tensor:
    low = torch.full_like(x[..., :1], -1.0)
    high = torch.zeros_like(low)
    for _ in range(_BISECTION_STEPS):
        middle = (low + high) / 2
        mass = (x - middle).clamp_(min=0).pow_(power).sum(dim=-1, keepdim=True)
        low = torch.where(mass >= 1, middle, low)
        high = torch.where(mass >= 1, high, middle)
    return low
