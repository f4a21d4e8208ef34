"""SCAN's clustering step: neighbours agree, and all clusters are used.

Van Gansbeke, Vandenhende, Georgoulis, Proesmans and Van Gool, "SCAN: Learning to
Classify Images without Labels", ECCV 2020.
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


class SCAN(Baseline):
    """Linear heads whose assignments of a sample and of its neighbours coincide.

    The loss is −mean log ⟨p(x), p(x')⟩ − λ · entropy of the mean assignment; of several
    heads the one of the smallest loss is kept. This is the clustering step alone:
    features are frozen, so there are no augmentations and no self-labelling. Views are
    put side by side, each with rows of length one; any number of them.

    Parameters
    ----------
    n_clusters : int
    heads : int, default=10
    neighbours : int, default=20
        At most n / n_clusters, the size of an average cluster.
    entropy_weight : float, default=5.0
        λ.
    epochs : int, default=100
    batch_size : int, default=128
    learning_rate : float, default=1e-3
        The paper's 1e-4 tunes a whole network; a linear map on rows of length one needs
        more.
    weight_decay : float, default=1e-4
    temperature : float, default=0.1
        Rows of length one make small logits; they are divided by it.
    normalize : {"center", "none"}, default="center"
        Applied before rows are scaled to length one.
    """

    def __init__(
        self,
        n_clusters: int,
        *,
        heads: int = 10,
        neighbours: int = 20,
        entropy_weight: float = 5.0,
        epochs: int = 100,
        batch_size: int = 128,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-4,
        temperature: float = 0.1,
        normalize: Normalization = "center",
        view_sizes: Sequence[int] | None = None,
        random_state: int | np.random.RandomState | None = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.heads = heads
        self.neighbours = neighbours
        self.entropy_weight = entropy_weight
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.temperature = temperature
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
        near = nearest_neighbours(x, usable_neighbours(self.neighbours, n, C))
        W = uniform_fan_in((H * C, width), width, generator).to(self.device_)
        W.requires_grad_()
        optimizer = torch.optim.Adam(
            [W], lr=self.learning_rate, weight_decay=self.weight_decay
        )
        per_epoch = batches_per_epoch(n, min(self.batch_size, n))
        recent: deque[Tensor] = deque(maxlen=per_epoch)
        pairs = neighbour_pairs(near, self.batch_size, self.seed_, generator)

        def state() -> State:
            best = int(torch.stack(tuple(recent)).mean(dim=0).argmin())
            kept = W.detach().view(H, C, width)[best]
            return scale | {"W": kept.cpu().clone()}

        for _ in self._steps(self.epochs * per_epoch, state):
            rows, others = next(pairs)
            z = (x[torch.cat([rows, others])] @ W.T) / self.temperature
            z = z.view(2, len(rows), H, C).permute(0, 2, 1, 3)
            losses = neighbour_loss(z.log_softmax(dim=3), self.entropy_weight)
            recent.append(losses.detach())
            optimizer.zero_grad()
            losses.sum().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        return state()

    def _scores(self, features: list[Tensor]) -> Tensor:
        x = side_by_side(standardized(features, self.state_))
        return exact_matmul(x, self.state_["W"].double().T)


def neighbour_loss(log_p: Tensor, entropy_weight: float) -> Tensor:
    """−mean log ⟨p(x), p(x')⟩ − λ H(mean p(x)) of each head, (H,).

    ``log_p`` is (2, H, n, C): the samples of all pairs, and their neighbours.
    """
    agree = (log_p[0] + log_p[1]).logsumexp(dim=2).mean(dim=1)
    mean = log_p[0].exp().mean(dim=1)
    log_mean = mean.clamp(min=torch.finfo(mean.dtype).tiny).log()
    return -agree + entropy_weight * (mean * log_mean).sum(dim=1)
