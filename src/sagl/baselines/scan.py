"""SCAN's clustering step: neighbours get the same label, clusters the same size."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import linear

from sagl.baselines.base import (
    Baseline,
    State,
    best_head,
    descend,
    neighbour_pairs,
    real,
    side_by_side,
    usable_neighbours,
    whole,
)
from sagl.nn.encoder import uniform_fan_in
from sagl.nn.inference import exact_matmul
from sagl.training.feed import Normalization
from sagl.training.sampler import batches_per_epoch
from sagl.views import Views


@dataclass(eq=False, repr=False, kw_only=True)
class SCAN(Baseline):
    """Linear heads that give a sample and its neighbours the same cluster.

    Van Gansbeke, Vandenhende, Georgoulis, Proesmans and Van Gool, "SCAN: Learning to
    Classify Images without Labels", ECCV 2020. The loss of a head is
    −mean log ⟨p(x), p(x')⟩ − ``entropy_weight`` · entropy of the mean p(x), where x' is
    one of the nearest neighbours of x. The head of smallest loss gives the labels.

    This is the clustering step alone. The features are frozen, so that there are no
    augmented images, nothing but the heads is trained, and the self-labelling that
    follows in the paper, which needs strong augmentations, is left out.
    """

    heads: int = whole(10)
    neighbours: int = whole(20)
    entropy_weight: float = real(5.0)
    epochs: int = whole(100)
    batch_size: int = whole(128)
    learning_rate: float = real(1e-4)
    weight_decay: float = real(1e-4)
    normalize: Normalization = "center"

    def _fit(self, views: Views, generator: torch.Generator) -> State:
        n, C, H = len(views), self.n_clusters, self.heads
        features = self._standardised(views, self.normalize, self.device_)
        x = torch.cat(features, dim=1)
        count = usable_neighbours(self.neighbours, n, C)
        pairs = neighbour_pairs(
            side_by_side(features), count, self.batch_size, self.seed_, generator
        )
        # All heads as one linear map.
        weight, bias = (
            uniform_fan_in(shape, x.shape[1], generator).to(x.device).requires_grad_()
            for shape in ((H * C, x.shape[1]), (H * C,))
        )
        optimizer = torch.optim.Adam(
            [weight, bias],
            lr=self.learning_rate,
            weight_decay=self.weight_decay,
            fused=self.device_.type != "mps",
        )
        epoch = batches_per_epoch(n, self.batch_size)
        losses: deque[Tensor] = deque(maxlen=epoch)  # of the heads, in the last epoch

        def state() -> State:
            first = best_head(losses) * C
            of = slice(first, first + C)
            return {"weight": weight[of], "bias": bias[of]}

        for _ in self._steps(self.epochs * epoch, state):
            batch = x[next(pairs)]  # samples, then neighbours
            logits = linear(batch, weight, bias).view(-1, H, C)
            loss = head_losses(logits, self.entropy_weight)
            losses.append(loss.detach())
            descend(optimizer, loss.sum())
        return state()

    def _scores(self, features: list[Tensor]) -> Tensor:
        state, x = self._in_float64(), torch.cat(features, dim=1)
        return exact_matmul(x, state["weight"].T) + state["bias"]


def head_losses(logits: Tensor, entropy_weight: float) -> Tensor:
    """The loss of each head, (H,), from logits (2B, H, C): B samples, B neighbours."""
    log_p = torch.log_softmax(logits, dim=2)
    log_x, log_neighbour = log_p.chunk(2)
    consistency = -(log_x + log_neighbour).logsumexp(dim=2).mean(dim=0)
    mean_p = log_x.exp().mean(dim=0)  # (H, C)
    # An empty cluster's share can round to 0, where the logarithm has no gradient.
    log_mean = mean_p.clamp(min=torch.finfo(mean_p.dtype).tiny).log()
    entropy = -(mean_p * log_mean).sum(dim=1)
    return consistency - entropy_weight * entropy
