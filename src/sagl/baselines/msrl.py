"""MSRL: additive attention with a dense row softmax, trained with SAGL's losses."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sagl.baselines.base import Baseline, State, descend, random_batches, real, whole
from sagl.nn.encoder import LinearEncoder, uniform_fan_in
from sagl.nn.inference import exact_matmul, exact_mean
from sagl.nn.network import vote
from sagl.nn.objective import Objective
from sagl.training.feed import Normalization
from sagl.training.sampler import batches_per_epoch
from sagl.views import Views

_MAX_ANCHORS = 2000
_LEARNED = ("W", "b", "a", "c", "anchors")  # of each view, for prediction


@dataclass(eq=False, repr=False, kw_only=True)
class MSRL(Baseline):
    """Every sample attends to every other: e_ij = relu(a·z_i + c·z_j), row softmax.

    z is a weight-normalised linear map of a view, A = softmax(e), q = softmax(A z + z);
    pseudo-labels, diversity (weighed by ``gamma``) and alignment (by ``beta``) are
    SAGL's. New samples attend to stored training samples and to themselves.
    """

    gamma: float = real(5.0)
    beta: float = real(0.5)
    epochs: int = whole(200)
    batch_size: int = whole(100)
    learning_rate: float = real(1e-3, strict=True)
    normalize: Normalization = "center"

    def _fit(self, views: Views, generator: torch.Generator) -> State:
        n = len(views)
        features = self._standardised(views, self.normalize, self.device_)
        parts = [_View(width, self.n_clusters, generator) for width in views.widths]
        network = nn.ModuleList(parts).to(self.device_)
        anchors = torch.randperm(n, generator=generator)[:_MAX_ANCHORS]
        anchors = anchors.sort().values.to(self.device_)
        objective = Objective(self.gamma, self.beta, "linear", "symmetric")
        optimizer = torch.optim.Adam(network.parameters(), lr=self.learning_rate)
        batches = random_batches(n, self.batch_size, self.seed_, self.device_)
        steps = self.epochs * batches_per_epoch(n, self.batch_size)

        @torch.no_grad()
        def state() -> State:
            learned = State()
            for i, (part, h) in enumerate(zip(parts, features, strict=True)):
                z, W = part.encoder(h[anchors]), part.encoder.weight()
                tensors = (W, part.encoder.b, part.a, part.c, z)
                named = zip(_LEARNED, tensors, strict=True)
                learned |= {f"{name}.{i}": tensor for name, tensor in named}
            return learned

        for _ in self._steps(steps, state):
            rows = next(batches)
            log_q = [part(h[rows]) for part, h in zip(parts, features, strict=True)]
            descend(optimizer, objective(log_q).total)
        return state()

    def _scores(self, features: list[Tensor]) -> Tensor:
        state, log_q = self._in_float64(), []
        for i, h in enumerate(features):
            W, b, a, c, anchors = (state[f"{name}.{i}"] for name in _LEARNED)
            z = exact_matmul(h, W.T) + b
            to_anchors = exact_matmul(z, a[:, None]) + anchors @ c
            to_itself = (z * (a + c)).sum(dim=1, keepdim=True)
            A = torch.cat([to_anchors, to_itself], dim=1).relu().softmax(dim=1)
            p = exact_mean(A[:, :-1], anchors) + A[:, -1:] * z + z
            log_q.append(torch.log_softmax(p, dim=1))
        return vote(log_q)


class _View(nn.Module):
    """log q of one view of a batch that attends to itself."""

    def __init__(self, width: int, C: int, generator: torch.Generator) -> None:
        super().__init__()
        self.encoder = LinearEncoder(width, C, generator)
        self.a = nn.Parameter(uniform_fan_in((C,), C, generator))
        self.c = nn.Parameter(uniform_fan_in((C,), C, generator))

    def forward(self, h: Tensor) -> Tensor:
        z: Tensor = self.encoder(h)
        e = torch.relu((z @ self.a)[:, None] + z @ self.c)  # (n, n)
        return torch.log_softmax(torch.softmax(e, dim=1) @ z + z, dim=1)
