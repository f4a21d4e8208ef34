"""TEMI: heads that give a sample and its neighbours the same cluster.

Adaloglou, Michels, Kalisch and Kollmann, "Exploring the Limits of Deep Image Clustering
using Pretrained Models", BMVC 2023.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from sagl.baselines.base import Baseline
from sagl.baselines.features import State, measure_scale, resident, standardized
from sagl.baselines.neighbours import (
    nearest_neighbours,
    neighbour_pairs,
    side_by_side,
    usable_neighbours,
)
from sagl.nn.encoder import uniform_fan_in
from sagl.nn.inference import exact_matmul
from sagl.training.feed import Normalization
from sagl.training.sampler import batches_per_epoch
from sagl.views import Views

_SHARE_MOMENTUM = 0.9  # of the running mean assignment of the teacher


class TEMI(Baseline):
    """Many linear heads, each with a slow copy as its teacher, on neighbouring pairs.

    For a sample x and one of its nearest neighbours x', a head maximises the pointwise
    mutual information log Σ_c (q_s(c|x) q_t(c|x'))^β / q_t(c) of its own assignment and
    its teacher's, both ways round; pairs count by how much the teachers of all heads
    agree that they belong together. The head of the smallest loss is kept. Views are
    put side by side, each with rows of length one; any number of them.

    Parameters
    ----------
    n_clusters : int
    heads : int, default=50
    neighbours : int, default=50
        At most n / n_clusters, the size of an average cluster.
    beta : float, default=0.6
        Below 1 it keeps clusters of a similar size.
    temperature : float, default=0.1
    momentum : float, default=0.996
        Of the teacher.
    epochs : int, default=200
    batch_size : int, default=512
    learning_rate, weight_decay : float, default=1e-4
        Of AdamW.
    normalize : {"center", "none"}, default="center"
        Applied before rows are scaled to length one.
    """

    def __init__(
        self,
        n_clusters: int,
        *,
        heads: int = 50,
        neighbours: int = 50,
        beta: float = 0.6,
        temperature: float = 0.1,
        momentum: float = 0.996,
        epochs: int = 200,
        batch_size: int = 512,
        learning_rate: float = 1e-4,
        weight_decay: float = 1e-4,
        normalize: Normalization = "center",
        view_sizes: Sequence[int] | None = None,
        random_state: int | np.random.RandomState | None = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.heads = heads
        self.neighbours = neighbours
        self.beta = beta
        self.temperature = temperature
        self.momentum = momentum
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.normalize = normalize
        self.view_sizes = view_sizes
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _fit(self, views: Views, generator: torch.Generator) -> State:
        n, C, H = len(views), self.n_clusters, self.heads
        scale = measure_scale(views, self.normalize)
        x = side_by_side(standardized(resident(views, self.device_), scale))
        width = x.shape[1]
        count = usable_neighbours(self.neighbours, n, C)
        near = nearest_neighbours(x, count)
        student = uniform_fan_in((H * C, width), width, generator).to(self.device_)
        teacher = student.clone()
        student.requires_grad_()
        optimizer = torch.optim.AdamW(
            [student], lr=self.learning_rate, weight_decay=self.weight_decay
        )
        shares = x.new_full((H, 1, C), 1 / C)  # q_t(c) of each head
        per_epoch = batches_per_epoch(n, min(self.batch_size, n))
        recent: deque[Tensor] = deque(maxlen=per_epoch)
        pairs = neighbour_pairs(near, self.batch_size, self.seed_, generator)

        def state() -> State:
            best = int(torch.stack(tuple(recent)).mean(dim=0).argmin())
            W = teacher.view(H, C, width)[best]
            return scale | {"W": W.cpu().clone()}

        for _ in self._steps(self.epochs * per_epoch, state):
            rows, others = next(pairs)
            logits = self._logits(x[torch.cat([rows, others])], student)
            with torch.no_grad():
                taught = self._logits(x[torch.cat([others, rows])], teacher)
                log_t = taught.log_softmax(dim=2)
                q_t = log_t.exp()
                mean = q_t.mean(dim=1, keepdim=True)
                shares.lerp_(mean, 1 - _SHARE_MOMENTUM)
                weights = agreement(q_t)
                losses, slope = information_loss(
                    logits.log_softmax(dim=2), log_t, shares, weights, self.beta
                )
            recent.append(losses)
            optimizer.zero_grad()
            logits.backward(slope)  # type: ignore[no-untyped-call]
            optimizer.step()
            teacher.lerp_(student.detach(), 1 - self.momentum)
        return state()

    def _logits(self, x: Tensor, W: Tensor) -> Tensor:
        """Of every head in one product, (H, n, C)."""
        z = (x @ W.T) / self.temperature
        return z.view(len(x), self.heads, self.n_clusters).transpose(0, 1)

    def _scores(self, features: list[Tensor]) -> Tensor:
        x = side_by_side(standardized(features, self.state_))
        return exact_matmul(x, self.state_["W"].double().T)


def agreement(q_t: Tensor) -> Tensor:
    """Σ_c q_t(c|x) q_t(c|x'), the mean over heads: the weight of each pair, (n,).

    ``q_t`` (H, n, C) holds one side of all pairs and then the other, so that each pair
    has its weight twice.
    """
    one, other = q_t.tensor_split(2, dim=1)
    weights = torch.linalg.vecdot(one, other).mean(dim=0)
    return torch.cat([weights, weights])


def information_loss(
    log_s: Tensor, log_t: Tensor, shares: Tensor, weights: Tensor, beta: float
) -> tuple[Tensor, Tensor]:
    """−Σ_i w_i log Σ_c (q_s q_t)^β / q_t(c) / n of each head, (H,), and its gradient.

    The gradient is that with respect to the student's logits, (H, n, C): with
    r = softmax(β (log q_s + log q_t) − log q_t(c)), it is w β (q_s − r) / n.
    """
    n = log_s.shape[1]
    exponents = beta * (log_s + log_t) - shares.log()
    total = exponents.logsumexp(dim=2, keepdim=True)
    losses = -(total.squeeze(2) * weights).sum(dim=1) / n
    responsibility = exponents.sub_(total).exp_()
    slope = (log_s.exp() - responsibility) * (weights[:, None] * (beta / n))
    return losses, slope
