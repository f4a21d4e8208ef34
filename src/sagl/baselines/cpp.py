"""CPP: features and memberships of maximal rate reduction, then spectral clustering.

Chu, Tong, Ding, Dai, Haeffele, Vidal and Ma, "Image Clustering via the Principle of
Rate Reduction in the Age of Pretrained Models", ICLR 2024.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from sagl.baselines.base import Baseline
from sagl.baselines.features import State, random_batches, resident, unit_rows
from sagl.baselines.rate_reduction import (
    coding_length,
    coding_rate,
    doubly_stochastic,
    group_rate,
    spectral_embedding,
    spectral_labels,
)
from sagl.checks import integer, number
from sagl.nn.encoder import Product, uniform_fan_in
from sagl.nn.inference import exact_matmul
from sagl.views import Views

# How much more a cluster weighs in Π than all others, at the automatic temperature.
_OWN_WEIGHT = 70
_MOMENTUM = 0.9
_WEIGHT_DECAY = 1e-4
_CLUSTER_HEAD_WEIGHT_DECAY = 5e-3
_VARIANCE_FLOOR = 1e-5  # of the batch normalisation
_CLUSTER_HEAD = ("Wc", "bc")


class CPP(Baseline):
    """A small network with two heads that maximises R(Z) − R_c(Z, Π).

    One head gives features z of length one; the other gives c, from which come the
    memberships Π, the doubly stochastic form of the similarities |c_i · c_j|: column j
    is a soft group of samples that belong with sample j. R, the coding rate of all
    features of a batch, wants them spread out; R_c, the sum of the rates of the groups,
    wants each group in few dimensions. The number of clusters plays no part in this but
    for the automatic temperature: clusters are read from Π in the end, by spectral
    clustering. A new sample goes to the cluster whose mean c has the largest cosine
    with its own c.

    The views, scaled to rows of length one, are taken side by side. Any number of
    views.

    Parameters
    ----------
    n_clusters : int
    steps : int, default=200
        Batches in all.
    warmup : int, default=50
        Steps that maximise R(Z) alone, after which the cluster head starts as a copy of
        the feature head.
    batch_size : int, default=1024
    groups : int, default=128
        Columns of Π, drawn at random in each step, that stand for all columns of the
        batch in R_c. The paper takes all, which costs several times as much.
    hidden : int, default=1024
        Width of the two hidden layers. The paper's is 4096, at which a step takes
        several times as long.
    dimension : int, default=128
        Of the features, and of what the cluster head gives.
    epsilon_squared : float, default=0.1
        The error ε² up to which features are coded.
    temperature : float or "auto", default="auto"
        Of Π: the higher, the larger the groups. The paper chooses it by data set (0.175
        for 10 clusters, 0.12 for 1,000). ``"auto"`` is 1 / log(70 n_clusters): when
        clusters are orthogonal to each other, all others together then weigh a
        seventieth of one's own, and ‖Π‖², which counts the groups in Π, comes out near
        ``n_clusters`` or somewhat above.
    penalty : float, default=0.05
        Weight of ‖Π‖²/2, which keeps groups from shrinking to single samples.
    learning_rate : float, default=1.5e-3
        Of stochastic gradient descent with momentum. A step of this size moves what a
        network computes in proportion to its width: 1.5e-3 for 200 steps at width 1024
        goes as far as the paper's 1e-4 for 720 steps at width 4096.
    readout_samples : int, default=5000
        At most so many samples, drawn at random, are clustered by way of Π.
    """

    def __init__(
        self,
        n_clusters: int,
        *,
        steps: int = 200,
        warmup: int = 50,
        batch_size: int = 1024,
        groups: int = 128,
        hidden: int = 1024,
        dimension: int = 128,
        epsilon_squared: float = 0.1,
        temperature: float | Literal["auto"] = "auto",
        penalty: float = 0.05,
        learning_rate: float = 1.5e-3,
        readout_samples: int = 5000,
        view_sizes: Sequence[int] | None = None,
        random_state: int | np.random.RandomState | None = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.steps = steps
        self.warmup = warmup
        self.batch_size = batch_size
        self.groups = groups
        self.hidden = hidden
        self.dimension = dimension
        self.epsilon_squared = epsilon_squared
        self.temperature = temperature
        self.penalty = penalty
        self.learning_rate = learning_rate
        self.readout_samples = readout_samples
        self.view_sizes = view_sizes
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _fit(self, views: Views, generator: torch.Generator) -> State:
        self._check_parameters()
        x = _side_by_side(resident(views, self.device_))
        n, width = x.shape
        weights = _new_weights(width, self.hidden, self.dimension, generator)
        weights = {name: w.to(x.device) for name, w in weights.items()}
        optimizer = _optimizer(weights, self.learning_rate)
        batches = random_batches(n, self.batch_size, self.seed_, x.device)
        shown = torch.randperm(n, generator=generator)[: self.readout_samples]
        shown = shown.sort().values.to(x.device)
        seed = int(torch.randint(1 << 31, (), generator=generator))

        @torch.no_grad()
        def state() -> State:
            layers = folded(weights, x[shown])
            learned = layers | {"centres": self._centres(layers, x[shown], seed)}
            return {name: w.detach().cpu().clone() for name, w in learned.items()}

        for step in self._steps(self.steps, state):
            if step == self.warmup:
                with torch.no_grad():
                    weights["Wc"].copy_(weights["Wz"])
                    weights["bc"].copy_(weights["bz"])
            z, c = embed_batch(weights, x[next(batches)])
            loss = -coding_rate(z, self.epsilon_squared)
            if step >= self.warmup:
                loss = loss + self._compression(z, c, generator)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        return state()

    def _compression(self, z: Tensor, c: Tensor, generator: torch.Generator) -> Tensor:
        """R_c, estimated from some of the groups, and the penalty on Π."""
        Pi = self._memberships(c)
        drawn = torch.randperm(len(z), generator=generator)[: self.groups]
        rate = group_rate(z, Pi[:, drawn.to(z.device)], self.epsilon_squared)
        return rate * (len(z) / len(drawn)) + self.penalty / 2 * Pi.square().sum()

    def _memberships(self, c: Tensor) -> Tensor:
        temperature = self.temperature
        if temperature == "auto":
            temperature = 1 / math.log(_OWN_WEIGHT * self.n_clusters)
        return doubly_stochastic((c @ c.T).abs(), temperature)

    def _centres(self, layers: State, x: Tensor, seed: int) -> Tensor:
        """The mean direction of c in each cluster of the memberships of x."""
        _, c = embed(x, layers)
        embedding = spectral_embedding(self._memberships(c), self.n_clusters)
        labels = spectral_labels(embedding, self.n_clusters, seed)
        members = one_hot(torch.from_numpy(labels), self.n_clusters)
        return unit_rows(members.to(c).T @ c)

    def _scores(self, features: list[Tensor]) -> Tensor:
        layers = {name: tensor.double() for name, tensor in self.state_.items()}
        _, c = embed(_side_by_side(features), layers, exact_matmul)
        return exact_matmul(c, layers["centres"].T)

    @torch.no_grad()
    def estimate_n_clusters(
        self, X: Any, candidates: Sequence[int]
    ) -> tuple[int, dict[int, float]]:
        """The number of clusters that gives the shortest code of the features.

        The memberships of the samples are clustered anew for each candidate; nothing is
        trained. Fit with a ``temperature`` of your own, for ``"auto"`` leans on
        ``n_clusters``.

        Parameters
        ----------
        X : views
            The training samples or others; of many, ``readout_samples`` are drawn.
        candidates : sequence of int

        Returns
        -------
        best : int
        curve : dict of int to float
            The coding length, in nats, of each candidate.
        """
        views = Views(X, view_sizes=self.view_sizes)
        self.predict(views[:1])  # refuses views that are not those of the fit
        generator = torch.Generator().manual_seed(0)
        drawn = torch.randperm(len(views), generator=generator)[: self.readout_samples]
        views = views[drawn.sort().values.numpy()]
        _check_candidates(candidates, len(views))
        z, c = embed(_side_by_side(resident(views, torch.device("cpu"))), self.state_)
        embedding = spectral_embedding(self._memberships(c), max(candidates))
        curve = {}
        for k in candidates:
            labels = torch.from_numpy(spectral_labels(embedding, k))
            curve[int(k)] = coding_length(z, labels, self.epsilon_squared)
        return min(curve, key=curve.__getitem__), curve

    def _check_parameters(self) -> None:
        least = {"steps": 1, "warmup": 0, "batch_size": 2, "groups": 1, "hidden": 1}
        least |= {"dimension": 1, "readout_samples": self.n_clusters}
        for name, bound in least.items():
            integer(name, getattr(self, name), bound)
        positive = ["epsilon_squared", "learning_rate"]
        if self.temperature != "auto":
            positive.append("temperature")
        for name in positive:
            number(name, getattr(self, name), 0, strict=True)
        number("penalty", self.penalty, 0)


def _check_candidates(candidates: Sequence[int], n: int) -> None:
    if len(candidates) == 0:
        raise ValueError("candidates is empty; give at least one number of clusters")
    for k in candidates:
        if not isinstance(k, int | np.integer) or not 2 <= k <= n:
            raise ValueError(
                "candidates must be whole numbers from 2 to the number of samples "
                f"({n}); got {k!r}"
            )


def _new_weights(
    width: int, hidden: int, dimension: int, generator: torch.Generator
) -> State:
    """Random layers; ``gain`` and ``shift`` are those of the batch normalisation."""

    def random(*shape: int, fan_in: int) -> Tensor:
        return uniform_fan_in(shape, fan_in, generator)

    return {
        "W1": random(hidden, width, fan_in=width),
        "gain": torch.ones(hidden),
        "shift": torch.zeros(hidden),
        "W2": random(hidden, hidden, fan_in=hidden),
        "b2": random(hidden, fan_in=hidden),
        "Wz": random(dimension, hidden, fan_in=hidden),
        "bz": random(dimension, fan_in=hidden),
        "Wc": random(dimension, hidden, fan_in=hidden),
        "bc": random(dimension, fan_in=hidden),
    }


def _optimizer(weights: State, learning_rate: float) -> torch.optim.SGD:
    head: list[Tensor] = []
    rest: list[Tensor] = []
    for name, w in weights.items():
        (head if name in _CLUSTER_HEAD else rest).append(w.requires_grad_())
    parameters = [
        {"params": rest, "weight_decay": _WEIGHT_DECAY},
        {"params": head, "weight_decay": _CLUSTER_HEAD_WEIGHT_DECAY},
    ]
    return torch.optim.SGD(parameters, lr=learning_rate, momentum=_MOMENTUM)


def embed_batch(weights: State, x: Tensor) -> tuple[Tensor, Tensor]:
    """z and c of a training batch, normalised by the batch's own statistics."""
    a = x @ weights["W1"].T
    scale, offset = _normalization(weights, a)
    return _heads(a * scale + offset, weights, torch.matmul)


def folded(weights: State, x: Tensor) -> State:
    """Layers without batch normalisation that do the same on average over x."""
    layers = {k: w for k, w in weights.items() if k not in ("gain", "shift")}
    scale, offset = _normalization(weights, x @ weights["W1"].T)
    return layers | {"W1": weights["W1"] * scale[:, None], "b1": offset}


def embed(
    x: Tensor, layers: State, matmul: Product = torch.matmul
) -> tuple[Tensor, Tensor]:
    """z and c, (n, dimension) each with rows of length one, from folded layers."""
    return _heads(matmul(x, layers["W1"].T) + layers["b1"], layers, matmul)


def _normalization(weights: State, a: Tensor) -> tuple[Tensor, Tensor]:
    """Batch normalisation of a as a · scale + offset."""
    variance, mean = torch.var_mean(a, dim=0, correction=0)
    scale = weights["gain"] * (variance + _VARIANCE_FLOOR).rsqrt()
    return scale, weights["shift"] - mean * scale


def _heads(a: Tensor, layers: State, matmul: Product) -> tuple[Tensor, Tensor]:
    h = (matmul(a.relu(), layers["W2"].T) + layers["b2"]).relu()
    z = matmul(h, layers["Wz"].T) + layers["bz"]
    c = matmul(h, layers["Wc"].T) + layers["bc"]
    return unit_rows(z), unit_rows(c)


def _side_by_side(features: list[Tensor]) -> Tensor:
    return torch.cat([unit_rows(h) for h in features], dim=1)
