"""TEMI: self-distillation of many clustering heads over pairs of neighbours."""

from __future__ import annotations

import copy
from collections import deque
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear, normalize

from sagl.baselines.base import (
    Baseline,
    State,
    best_head,
    neighbour_pairs,
    real,
    side_by_side,
    usable_neighbours,
    whole,
)
from sagl.checks import check_choice
from sagl.nn.encoder import uniform_fan_in
from sagl.nn.inference import exact_matmul
from sagl.nn.neighbours import unit_rows
from sagl.training.feed import Normalization
from sagl.training.sampler import batches_per_epoch
from sagl.views import Views

HeadForm = Literal["linear", "mlp"]

_SHARE_MOMENTUM = 0.9  # of the running share of each cluster, as released
_WIDTHS = (512, 256)  # of the two layers that "mlp" puts before the last, as released
# The teacher follows slowly, so that steps count and not epochs: on sets of a few
# thousand samples the paper's batches would end the training long before it is done.
_LARGEST_BATCH = 512
_SMALLEST_BATCH = 64
_ENOUGH_STEPS = 5000


@dataclass(eq=False, repr=False, kw_only=True)
class TEMI(Baseline):
    """Clustering heads taught by their own moving average, on pairs of neighbours.

    Adaloglou, Michels, Kalisch and Kollmann, "Exploring the Limits of Deep Image
    Clustering using Pretrained Models", BMVC 2023. A student q_s and a teacher q_t
    maximise the pointwise mutual information of a sample x and one of its nearest
    neighbours x', log Σ_c (q_s(c|x) q_t(c|x'))^β / q(c), both ways round, where q(c)
    is the running share of cluster c. A pair counts as much as the teachers of all
    heads agree on it. The teacher of the head with the smallest loss gives the labels.
    Views are taken side by side, each with rows of length one.

    Parameters
    ----------
    head : {"linear", "mlp"}, default="linear"
        ``"linear"`` is the last layer of the authors' heads, weight-normalised and
        without bias, on the features themselves. ``"mlp"`` is their whole head, with
        layers of 512 (GELU) and 256 units (scaled to length one) before it: about
        thirty times the work. Pass ``learning_rate=1e-4`` with it, as in the paper.
    beta : float, default=0.6
        Below 1, it keeps clusters from staying empty.
    momentum : float, default=0.996
        Of the teacher.
    batch_size : int, optional
        By default 512, or as much less, down to 64, as makes 5,000 steps.
    """

    heads: int = whole(50)
    head: HeadForm = "linear"
    neighbours: int = whole(50)
    beta: float = real(0.6, strict=True)
    temperature: float = real(0.1, strict=True)
    momentum: float = real(0.996, below=1)
    epochs: int = whole(200)
    batch_size: int | None = whole(None)
    learning_rate: float = real(1e-3)
    weight_decay: float = real(1e-4)
    normalize: Normalization = "center"

    def _fit(self, views: Views, generator: torch.Generator) -> State:
        return self._train_heads(views, generator).state()

    def _train_heads(self, views: Views, generator: torch.Generator) -> TrainedHeads:
        check_choice("head", self.head, HeadForm)
        n, C = len(views), self.n_clusters
        x = side_by_side(self._standardised(views, self.normalize, self.device_))
        count = usable_neighbours(self.neighbours, n, C)
        batch_size = self._batch_size(n)
        pairs = neighbour_pairs(x, count, batch_size, self.seed_, generator)

        form = _MLPHeads if self.head == "mlp" else _LinearHeads
        student = form(x.shape[1], C, self.heads, generator).to(self.device_)
        teacher = copy.deepcopy(student).requires_grad_(False)
        share = torch.full((self.heads, C), 1 / C, device=self.device_)
        optimizer = torch.optim.AdamW(
            student.parameters(),
            lr=self.learning_rate,
            weight_decay=self.weight_decay,
            fused=self.device_.type != "mps",
        )
        epoch = batches_per_epoch(n, batch_size)
        trained = TrainedHeads(x, teacher, deque(maxlen=epoch))
        for _ in self._steps(self.epochs * epoch, trained.state):
            batch = x[next(pairs)]  # (2B, d): samples, then neighbours
            s = student(batch, self.temperature)  # (2B, H, C)
            t = teacher(batch, self.temperature)
            loss = distil(s.detach(), t, share, self.beta)
            trained.losses.append(loss.heads)
            optimizer.zero_grad()
            s.backward(loss.gradient)
            optimizer.step()
            follow(teacher, student, self.momentum)
        return trained

    def _scores(self, features: list[Tensor]) -> Tensor:
        state, x = self._in_float64(), side_by_side(features)
        if "hidden.weight" in state:
            x = exact_matmul(x, state["hidden.weight"].T) + state["hidden.bias"]
            x = exact_matmul(gelu(x), state["bottleneck.weight"])
            x = unit_rows(x + state["bottleneck.bias"])
        return exact_matmul(x, state["weight"].T)

    def _batch_size(self, n: int) -> int:
        if self.batch_size is not None:
            return min(self.batch_size, n)
        for_steps = max(_SMALLEST_BATCH, n * self.epochs // _ENOUGH_STEPS)
        return min(_LARGEST_BATCH, for_steps, n)


class TrainedHeads(NamedTuple):
    """What comes of the training, or has come so far."""

    x: Tensor  # (n, d)
    teacher: _LinearHeads | _MLPHeads
    losses: deque[Tensor]  # of the heads, in the last epoch

    def state(self) -> State:
        """What prediction needs of the best head."""
        return self.teacher.one(best_head(self.losses))


class Distillation(NamedTuple):
    """The loss of each head, (H,), and its gradient, (2B, H, C)."""

    heads: Tensor
    gradient: Tensor


@torch.no_grad()
def distil(s: Tensor, t: Tensor, share: Tensor, beta: float) -> Distillation:
    """Loss of a batch, with respect to the logits of the student; updates the share.

    ``s`` and ``t`` are the logits of student and teacher, (2B, H, C): B samples, then
    one neighbour of each, in the same order. ``share`` is q(c) of each head, (H, C).

    With u_c = (q_s q_t)^β / q(c), a pair's loss is −log Σ_c u_c. As β log q_s is
    linear in the logits but for its normalisation, the gradient is β (q_s − u / Σ u).
    """
    log_s, log_t = torch.log_softmax(s, dim=2), torch.log_softmax(t, dim=2)
    q_t = log_t.exp()
    share.lerp_(q_t.mean(dim=0), 1 - _SHARE_MOMENTUM)
    weight = agreement(q_t).repeat(2)[:, None]  # (2B, 1)

    B = len(s) // 2
    log_share = share.clamp(min=torch.finfo(share.dtype).tiny).log()
    log_u = (log_s + log_t.roll(B, dims=0)).mul_(beta).sub_(log_share)
    total = log_u.logsumexp(dim=2)  # (2B, H)
    gradient = log_s.exp_().sub_(log_u.sub_(total[:, :, None]).exp_())
    gradient.mul_((weight * (beta / len(s)))[:, :, None])
    return Distillation(-(weight * total).mean(dim=0), gradient)


def agreement(q: Tensor) -> Tensor:
    """Σ_c q(c|x) q(c|x') of B pairs, (2B, H, C), as the mean over the heads: (B,)."""
    first, second = q.chunk(2)
    return torch.einsum("bhc,bhc->b", first, second) / q.shape[1]


@torch.no_grad()
def follow(teacher: nn.Module, student: nn.Module, momentum: float) -> None:
    """Move the teacher towards the student."""
    for t, s in zip(teacher.parameters(), student.parameters(), strict=True):
        t.lerp_(s, 1 - momentum)


class NormalisedLinear(torch.autograd.Function):
    """(x vᵀ) · g / ‖v‖, with the length and its gradient in one pass over v each.

    The many weights are read, never scaled: what the length divides are the few
    results. With y = x vᵀ and the gradient G of the results, that of g / ‖v‖ is
    a = Σ_rows G y, and so that of v is (G g / ‖v‖)ᵀ x − (a g / ‖v‖³) v.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, v: Tensor, g: Tensor) -> Tensor:
        length: Tensor = v.norm(dim=1)
        y = x @ v.T
        ctx.save_for_backward(x, v, g, length, y)
        return y * (g / length)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor, Tensor]:
        x, v, g, length, y = ctx.saved_tensors
        (grad,) = grads
        a = (grad * y).sum(dim=0)
        grad_v = (grad * (g / length)).T @ x
        grad_v.addcmul_(v, (a * g / length**3)[:, None], value=-1)
        return None, grad_v, a / length


class _LinearHeads(nn.Module):
    """H weight-normalised linear maps without bias, as one: (n, d) to (n, H, C)."""

    def __init__(
        self, width: int, C: int, heads: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.shape = (heads, C)
        self.v = nn.Parameter(uniform_fan_in((heads * C, width), width, generator))
        self.g = nn.Parameter(torch.ones(heads * C))

    def forward(self, x: Tensor, temperature: float) -> Tensor:
        g = self.g / temperature
        logits: Tensor = NormalisedLinear.apply(x, self.v, g)  # type: ignore[no-untyped-call]
        return logits.view(-1, *self.shape)

    def one(self, head: int) -> State:
        """What prediction needs of one head."""
        v, g = self.v.view(*self.shape, -1)[head], self.g.view(self.shape)[head]
        return {"weight": unit_rows(v) * g[:, None]}


class _MLPHeads(nn.Module):
    """H heads of three layers, the middle one scaled to length one: (n, H, C)."""

    def __init__(
        self, width: int, C: int, heads: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        first, second = _WIDTHS

        def normal(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(shape, generator=generator) * 0.02)

        self.w1 = normal(heads * first, width)
        self.b1 = nn.Parameter(torch.zeros(heads * first))
        self.w2 = normal(heads, first, second)
        self.b2 = nn.Parameter(torch.zeros(heads, 1, second))
        self.v = nn.Parameter(uniform_fan_in((heads, second, C), second, generator))
        self.g = nn.Parameter(torch.ones(heads, 1, C))

    def forward(self, x: Tensor, temperature: float) -> Tensor:
        hidden = gelu(linear(x, self.w1, self.b1))  # every head's, side by side
        hidden = hidden.view(len(x), len(self.w2), -1).transpose(0, 1)
        z = normalize(torch.baddbmm(self.b2, hidden, self.w2), dim=2)  # (H, n, 256)
        length: Tensor = self.v.norm(dim=1, keepdim=True)
        logits = torch.bmm(z, self.v) * (self.g / (length * temperature))
        return logits.transpose(0, 1)

    def one(self, head: int) -> State:
        """What prediction needs of one head."""
        of = slice(head * _WIDTHS[0], (head + 1) * _WIDTHS[0])
        return {
            "hidden.weight": self.w1[of],
            "hidden.bias": self.b1[of],
            "bottleneck.weight": self.w2[head],
            "bottleneck.bias": self.b2[head, 0],
            "weight": unit_rows(self.v[head].T) * self.g[head].T,
        }
