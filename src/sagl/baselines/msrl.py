"""MSRL: additive attention with a dense row softmax, trained with SAGL's losses."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sagl.baselines.base import (
    Baseline,
    State,
    random_batches,
    real,
    scaled,
    standardized,
    whole,
)
from sagl.nn.encoder import LinearEncoder, uniform_fan_in
from sagl.nn.inference import exact_matmul, exact_mean
from sagl.nn.network import vote
from sagl.nn.objective import Objective
from sagl.training.feed import Normalization
from sagl.training.sampler import batches_per_epoch
from sagl.views import Views

_MAX_ANCHORS = 2000


@dataclass(eq=False, repr=False, kw_only=True)
class MSRL(Baseline):
    """Every sample attends to every other: e_ij = relu(a·z_i + b·z_j), row softmax.

    z is a weight-normalised linear map of a view, A = softmax(e), q = softmax(A z + z);
    pseudo-labels, diversity and alignment are SAGL's. New samples attend to stored
    training samples and to themselves. Any number of views.

    Parameters
    ----------
    n_clusters : int
    gamma, beta : float
        Weights of diversity and alignment.
    epochs : int, default=200
    batch_size : int, default=100
    learning_rate : float, default=1e-3
    normalize : {"center", "none"}, default="center"
    """

    gamma: float = real(5.0)
    beta: float = real(0.5)
    epochs: int = whole(200)
    batch_size: int = whole(100)
    learning_rate: float = real(1e-3, strict=True)
    normalize: Normalization = "center"

    def _fit(self, views: Views, generator: torch.Generator) -> State:
        n = len(views)
        features, scale = scaled(views, self.normalize, self.device_)
        parts = [_View(width, self.n_clusters, generator) for width in views.widths]
        network = nn.ModuleList(parts).to(self.device_)
        anchors = torch.randperm(n, generator=generator)[:_MAX_ANCHORS]
        anchors = anchors.sort().values.to(self.device_)
        objective = Objective(self.gamma, self.beta, "linear", "symmetric")
        optimizer = torch.optim.Adam(network.parameters(), lr=self.learning_rate)
        batches = random_batches(n, self.batch_size, self.seed_, self.device_)
        steps = self.epochs * batches_per_epoch(n, self.batch_size)

        def state() -> State:
            learned = dict(scale)
            for i, (part, h) in enumerate(zip(parts, features, strict=True)):
                with torch.no_grad():
                    learned |= part.state(i, h[anchors])
            return learned

        for _ in self._steps(steps, state):
            rows = next(batches)
            log_q = [part(h[rows]) for part, h in zip(parts, features, strict=True)]
            loss = objective(log_q).total
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        return state()

    def _scores(self, features: list[Tensor]) -> Tensor:
        log_q = []
        for i, h in enumerate(standardized(features, self.state_)):
            part = {
                name.removesuffix(f".{i}"): tensor.double()
                for name, tensor in self.state_.items()
                if name.endswith(f".{i}")
            }
            z = exact_matmul(h, part["W"].T) + part["b"]
            to_anchors = exact_matmul(z, part["a"][:, None]) + (
                part["anchors"] @ part["c"]
            )
            to_itself = (z * (part["a"] + part["c"])).sum(dim=1, keepdim=True)
            A = torch.cat([to_anchors, to_itself], dim=1).relu().softmax(dim=1)
            p = exact_mean(A[:, :-1], part["anchors"]) + A[:, -1:] * z + z
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

    def state(self, i: int, anchors: Tensor) -> State:
        """What prediction needs, by names that end in the number of the view."""
        tensors = {
            "W": self.encoder.weight(),
            "b": self.encoder.b,
            "a": self.a,
            "c": self.c,
            "anchors": self.encoder(anchors),
        }
        return {f"{name}.{i}": t.detach().cpu() for name, t in tensors.items()}
