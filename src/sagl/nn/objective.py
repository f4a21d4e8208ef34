"""The self-supervised loss: pseudo-label + γ · diversity + β · alignment.

Every term takes log q of all views: a tensor of shape (L, n, C), or L tensors (n, C).
Of a ``batch`` that processes share they are those of own rows, and a term is that of
the whole batch, with its gradient with respect to own rows. Where ``present``, (n, L),
says that a sample misses a view, what the view says of it does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from sagl.checks import check_choice
from sagl.nn.network import stacked, vote
from sagl.nn.ranks import SharedBatch

PseudoLabelForm = Literal["log", "linear"]
AlignmentForm = Literal["symmetric", "one-way"]
DiversityCount = Literal["views", "pairs"]


def consensus(log_q: Tensor | Sequence[Tensor]) -> Tensor:
    """The label of each sample on which the views agree, (n,) (eq. pseudo)."""
    return vote(stacked(log_q).detach()).argmax(dim=1)


def pseudo_label(
    log_q: Tensor | Sequence[Tensor],
    labels: Tensor,
    form: PseudoLabelForm = "log",
    batch: SharedBatch | None = None,
    present: Tensor | None = None,
) -> Tensor:
    """Pull each view towards the consensus ``labels`` (eq. pred_loss).

    ``"log"`` is the paper's −log q_y, ``"linear"`` the released code's −q_y, which
    lets go of samples that a view finds implausible.
    """
    log_q = stacked(log_q)
    chosen = log_q.gather(2, labels[None, :, None].expand(len(log_q), -1, 1))
    check_choice("pseudo-label form", form, PseudoLabelForm)
    if form == "linear":
        chosen = chosen.exp()
    return -_view_mean(chosen, batch, present).sum()


def diversity(
    log_q: Tensor | Sequence[Tensor],
    batch: SharedBatch | None = None,
    present: Tensor | None = None,
) -> Tensor:
    """Negative entropy of the batch's mean assignment, summed over the views."""
    mean_q = _view_mean(stacked(log_q).exp(), batch, present)  # (L, C)
    # An empty cluster's share can round to 0, where the logarithm has no gradient.
    smallest = torch.finfo(mean_q.dtype).tiny
    return (mean_q * mean_q.clamp(min=smallest).log()).sum()


def alignment(
    log_q: Tensor | Sequence[Tensor],
    form: AlignmentForm = "symmetric",
    batch: SharedBatch | None = None,
    present: Tensor | None = None,
) -> Tensor:
    """Cross-entropy between the views' assignments, over pairs of views.

    ``"symmetric"`` is the paper's sum over ordered pairs; ``"one-way"`` the released
    code's, −q^ν log q^μ for μ < ν only, which makes the order of the views matter.
    """
    check_choice("alignment form", form, AlignmentForm)
    log_q = stacked(log_q)
    q = log_q.exp()
    if present is not None:  # a pair of views counts for samples that have both
        there = present.T[..., None]
        log_q, q = log_q * there, q * there
    if form == "symmetric":
        # All ordered pairs at once: every view with the sum of all, less itself.
        others = log_q.sum(dim=0, keepdim=True) - log_q
    else:
        others = log_q.cumsum(dim=0) - log_q  # the views before it
    return -_row_mean((q * others).sum(dim=(0, 2)), batch, dim=0)


def _view_mean(x: Tensor, batch: SharedBatch | None, present: Tensor | None) -> Tensor:
    """The mean of each view, (L, ·), over the samples of (L, n, ·) that have it.

    Zero where fewer than two have it: one alone has nobody to attend to.
    """
    if present is None:
        return _row_mean(x, batch, dim=1)
    there = present.T[..., None]
    total, count = (x * there).sum(dim=1), there.sum(dim=1).to(x)
    if batch is not None:
        total, count = batch.sum(total), batch.sum(count)
    return torch.where(count > 1, total / count.clamp_min(1), 0.0)


def _row_mean(x: Tensor, batch: SharedBatch | None, dim: int) -> Tensor:
    """The mean over the rows of a batch, of which x may have a process's own."""
    if batch is None:
        return x.mean(dim=dim)
    return batch.sum(x.sum(dim=dim)) / batch.n


class Loss(NamedTuple):
    """The weighted sum, the terms it is made of, unweighted, and the labels."""

    total: Tensor
    pseudo_label: Tensor
    diversity: Tensor
    alignment: Tensor
    labels: Tensor  # (n,) the cluster on which the views agree

    def terms(self) -> tuple[Tensor, ...]:
        """The numbers, without the labels."""
        return self[:-1]


TERMS = Loss._fields[1:-1]  # as records of the history name them


@dataclass(frozen=True)
class Objective:
    """The total loss (eq. totalloss) with its weights and forms chosen."""

    gamma: float
    beta: float
    pseudo_label_form: PseudoLabelForm = "log"
    alignment_form: AlignmentForm = "symmetric"
    # "pairs": each view's diversity counts once per other view, as released.
    diversity_count: DiversityCount = "views"

    def __post_init__(self) -> None:
        check_choice("pseudo_label_form", self.pseudo_label_form, PseudoLabelForm)
        check_choice("alignment_form", self.alignment_form, AlignmentForm)
        check_choice("diversity_count", self.diversity_count, DiversityCount)

    def __call__(
        self,
        log_q: Tensor | Sequence[Tensor],
        target: Tensor | None = None,
        batch: SharedBatch | None = None,
        present: Tensor | None = None,
    ) -> Loss:
        """The loss; its pseudo-label term aims at the consensus, or a target (n,)."""
        log_q = stacked(log_q)
        labels = consensus(log_q)
        aim = labels if target is None else target
        label = pseudo_label(log_q, aim, self.pseudo_label_form, batch, present)
        spread = diversity(log_q, batch, present)
        if self.diversity_count == "pairs":
            spread = spread * max(1, len(log_q) - 1)
        agreement = alignment(log_q, self.alignment_form, batch, present)
        total = label + self.gamma * spread + self.beta * agreement
        return Loss(total, label, spread, agreement, labels)

    def with_gradient(self, log_q: Tensor) -> tuple[Loss, Tensor]:
        """The same, and its gradient with respect to log q, in few operations."""
        L, n, _ = log_q.shape
        q = log_q.exp()
        labels = q.mean(dim=0).argmax(dim=1)
        at = labels[None, :, None].expand(L, n, 1)
        linear = self.pseudo_label_form == "linear"
        chosen = (q if linear else log_q).gather(2, at)
        label = chosen.sum() / -n

        count = max(1, L - 1) if self.diversity_count == "pairs" else 1
        mean_q = q.mean(dim=1, keepdim=True)  # (L, 1, C)
        log_mean = mean_q.clamp(min=torch.finfo(q.dtype).tiny).log()
        spread = torch.dot(mean_q.view(-1), log_mean.view(-1)) * count

        if self.alignment_form == "symmetric":
            others = log_q.sum(dim=0) - log_q
            against = q.sum(dim=0) - q  # what log q of each view is multiplied by
        else:
            others = log_q.cumsum(dim=0) - log_q
            against = q.sum(dim=0) - q.cumsum(dim=0)
        agreement = torch.dot(q.view(-1), others.view(-1)) / -n
        total = label + self.gamma * spread + self.beta * agreement

        # With respect to q first and then, as dq = q dlog q, to log q.
        grad = log_mean.add_(1).mul_(self.gamma * count).sub(others, alpha=self.beta)
        grad.mul_(q).sub_(against, alpha=self.beta)
        grad.scatter_add_(2, at, -chosen if linear else torch.full_like(chosen, -1))
        return Loss(total, label, spread, agreement, labels), grad.div_(n)
