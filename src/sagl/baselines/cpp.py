"""CPP: features and memberships of maximal rate reduction, then spectral clustering.

Chu, Tong, Ding, Dai, Haeffele, Vidal and Ma, "Image Clustering via the Principle of
Rate Reduction in the Age of Pretrained Models", ICLR 2024.

The coding rate of features is about the number of nats per sample that it takes to
write them down up to an error ε, were they Gaussian. Features of many kinds together
have a high rate; those of one kind, near a subspace of few dimensions, a low one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

from sagl.baselines.base import (
    Baseline,
    State,
    descend,
    new_seed,
    random_batches,
    real,
    resident,
    side_by_side,
    whole,
)
from sagl.checks import integer
from sagl.nn.encoder import Product, uniform_fan_in
from sagl.nn.inference import exact_matmul
from sagl.nn.neighbours import unit_rows
from sagl.search.spectral import cluster_directions, leading_eigenvectors
from sagl.views import Views

# How much more a cluster weighs in Π than all others, at the automatic temperature.
_OWN_WEIGHT = 70
_MOMENTUM = 0.9
_WEIGHT_DECAY = 1e-4
_CLUSTER_HEAD_DECAY = {"Wc": 5e-3, "bc": 5e-3}
_VARIANCE_FLOOR = 1e-5  # of the batch normalisation


@dataclass(eq=False, repr=False, kw_only=True)
class CPP(Baseline):
    """A small network with two heads that maximises R(Z) − R_c(Z, Π).

    One head gives features z of length one; the other gives c, from which come the
    memberships Π, the doubly stochastic form of the similarities |c_i · c_j|: column j
    is a soft group of samples that belong with sample j. R, the coding rate of all
    features of a batch, wants them spread out; R_c, the sum of the rates of the groups,
    wants each group in few dimensions. The number of clusters plays no part in this but
    for the automatic temperature: clusters are read from Π in the end, by spectral
    clustering. A new sample goes to the cluster whose mean c has the largest cosine
    with its own c. Views are taken side by side, each with rows of length one.

    Parameters
    ----------
    warmup : int, default=50
        Steps that maximise R(Z) alone, after which the cluster head starts as a copy of
        the feature head.
    groups : int, default=128
        Columns of Π, drawn at random in each step, that stand for all columns of the
        batch in R_c. The paper takes all, which costs several times as much.
    hidden : int, default=1024
        Width of the two hidden layers. The paper's is 4096, at which a step takes
        several times as long.
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

    steps: int = whole(200)
    warmup: int = whole(50, least=0)
    batch_size: int = whole(1024, least=2)
    groups: int = whole(128)
    hidden: int = whole(1024)
    dimension: int = whole(128)
    epsilon_squared: float = real(0.1, strict=True)
    temperature: float | Literal["auto"] = real("auto", strict=True)
    penalty: float = real(0.05)
    learning_rate: float = real(1.5e-3, strict=True)
    readout_samples: int = 5000

    def _fit(self, views: Views, generator: torch.Generator) -> State:
        integer("readout_samples", self.readout_samples, self.n_clusters)
        x = side_by_side(resident(views, self.device_))
        n, width = x.shape
        weights = _new_weights(width, self.hidden, self.dimension, generator)
        weights = {name: w.to(x.device) for name, w in weights.items()}
        decays = {name: _WEIGHT_DECAY for name in weights} | _CLUSTER_HEAD_DECAY
        optimizer = torch.optim.SGD(
            [
                {"params": w.requires_grad_(), "weight_decay": decays[name]}
                for name, w in weights.items()
            ],
            lr=self.learning_rate,
            momentum=_MOMENTUM,
        )
        batches = random_batches(n, self.batch_size, self.seed_, x.device)
        shown = torch.randperm(n, generator=generator)[: self.readout_samples]
        shown = x[shown.sort().values.to(x.device)]
        seed = new_seed(generator)

        @torch.no_grad()
        def state() -> State:
            layers = folded(weights, shown)
            return layers | {"centres": self._centres(layers, shown, seed)}

        for step in self._steps(self.steps, state):
            if step == self.warmup:
                with torch.no_grad():
                    weights["Wc"].copy_(weights["Wz"])
                    weights["bc"].copy_(weights["bz"])
            z, c = embed_batch(weights, x[next(batches)])
            loss = -coding_rate(z, self.epsilon_squared)
            if step >= self.warmup:
                loss = loss + self._compression(z, c, generator)
            descend(optimizer, loss)
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
        labels = cluster_directions(embedding, self.n_clusters, seed, starts=10)
        members = one_hot(torch.from_numpy(labels), self.n_clusters)
        return unit_rows(members.to(c).T @ c)

    def _scores(self, features: list[Tensor]) -> Tensor:
        layers = self._in_float64()
        _, c = embed(side_by_side(features), layers, exact_matmul)
        return exact_matmul(c, layers["centres"].T)

    @torch.no_grad()
    def estimate_n_clusters(
        self, X: Any, candidates: Sequence[int]
    ) -> tuple[int, dict[int, float]]:
        """The number of clusters that gives the shortest code of the features.

        The memberships of the samples, the training ones or others, are clustered anew
        for each candidate; nothing is trained. Fit with a ``temperature`` of your own,
        for ``"auto"`` leans on ``n_clusters``. Returned are the best candidate and the
        coding length, in nats, of each.
        """
        views = Views(X, view_sizes=self.view_sizes)
        self.predict(views[:1])  # refuses views that are not those of the fit
        generator = torch.Generator().manual_seed(0)
        drawn = torch.randperm(len(views), generator=generator)[: self.readout_samples]
        views = views[drawn.sort().values.numpy()]
        possible = range(2, len(views) + 1)
        if len(candidates) == 0 or any(k not in possible for k in candidates):
            raise ValueError(
                "candidates must be whole numbers from 2 to the number of samples "
                f"({len(views)}), at least one; got {list(candidates)}"
            )
        z, c = embed(side_by_side(resident(views)), self.state_)
        counts = [int(k) for k in candidates]
        embedding = spectral_embedding(self._memberships(c), max(counts))
        curve = {}
        for k in counts:
            labels = cluster_directions(embedding[:, :k], k, 0, starts=10)
            found = torch.from_numpy(labels)
            curve[k] = coding_length(z, found, self.epsilon_squared)
        return min(curve, key=curve.__getitem__), curve


def _new_weights(
    width: int, hidden: int, dimension: int, generator: torch.Generator
) -> State:
    """Random layers; ``gain`` and ``shift`` are those of the batch normalisation."""
    weights = {"W1": uniform_fan_in((hidden, width), width, generator)}
    weights |= {"gain": torch.ones(hidden), "shift": torch.zeros(hidden)}
    for layer, rows in (("2", hidden), ("z", dimension), ("c", dimension)):
        weights[f"W{layer}"] = uniform_fan_in((rows, hidden), hidden, generator)
        weights[f"b{layer}"] = uniform_fan_in((rows,), hidden, generator)
    return weights


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


def coding_rate(z: Tensor, epsilon_squared: float) -> Tensor:
    """R(Z) = ½ log det(I + d/(n ε²) ZᵀZ) for n features z of d dimensions, (n, d)."""
    n, d = z.shape
    log_det: Tensor = _LogDet.apply(z.T @ z * (d / (n * epsilon_squared)))  # type: ignore[no-untyped-call]
    return log_det / 2


def group_rate(z: Tensor, membership: Tensor, epsilon_squared: float) -> Tensor:
    """R_c(Z, Π) = Σ_j n_j/(2n) log det(I + d/(n_j ε²) Zᵀ diag(π_j) Z).

    Column π_j of ``membership``, (n, m), says to what extent each sample belongs to
    group j; n_j is its sum.
    """
    n, d = z.shape
    sizes = membership.sum(dim=0)
    weights = (membership * (d / epsilon_squared / sizes)).T  # (m, n)
    # One large product for all groups: Σ_i w_ji z_i z_iᵀ.
    outer = (z[:, :, None] * z[:, None, :]).flatten(1)  # (n, d²)
    log_dets: Tensor = _LogDet.apply((weights @ outer).view(-1, d, d))  # type: ignore[no-untyped-call]
    return sizes @ log_dets / (2 * n)


def doubly_stochastic(
    similarity: Tensor, temperature: float, half_steps: int = 5
) -> Tensor:
    """Π ≥ 0 whose rows and columns sum to one, large where ``similarity`` is large.

    It maximises ⟨similarity, Π⟩ + temperature · entropy(Π). Sinkhorn's iteration scales
    the rows and the columns of exp(similarity / temperature) in turn, rows first: after
    an odd number of half steps rows sum to one exactly, columns nearly.

    The largest similarity must be on the diagonal, each entry of which must be about
    as large, as for unit vectors and themselves: no row of the kernel is then lost to
    underflow.
    """
    kernel = torch.exp((similarity - similarity.max()) / temperature)
    right = torch.ones_like(kernel[0])
    for half_step in range(half_steps):
        if half_step % 2 == 0:
            left = 1 / (kernel @ right)
        else:
            right = 1 / (left @ kernel)
    return left[:, None] * kernel * right


def spectral_embedding(membership: Tensor, dimensions: int) -> NDArray[np.float64]:
    """Leading eigenvectors of D^-½ (Π + Πᵀ) D^-½ as columns, the first one first."""
    affinity = (membership + membership.T).cpu().double().numpy()
    return leading_eigenvectors(affinity, min(dimensions, len(affinity) - 1))


def coding_length(z: Tensor, labels: Tensor, epsilon_squared: float) -> float:
    """Nats for all of z, (n, d), cluster by cluster, and for who is in which cluster.

    Σ_k (n_k + d)/2 · log det(I + d/(n_k ε²) Z_kᵀ Z_k) − n_k log(n_k / n).
    """
    n, d = z.shape
    total = 0.0
    for k in torch.unique(labels):
        members = z[labels == k]
        rate = coding_rate(members, epsilon_squared).item()
        total += (len(members) + d) * rate - len(members) * math.log(len(members) / n)
    return total


class _LogDet(torch.autograd.Function):
    """log det(I + A) for positive semidefinite matrices A, (..., d, d).

    One Cholesky factor serves both, which takes a third of the time of torch's own
    ``logdet`` and its gradient by way of LU.
    """

    @staticmethod
    def forward(ctx: Any, gram: Tensor) -> Tensor:
        identity = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
        factor: Tensor = torch.linalg.cholesky(gram + identity)
        ctx.save_for_backward(factor)
        return 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (factor,) = ctx.saved_tensors
        inverse = torch.cholesky_inverse(factor)
        return gradient[..., None, None] * inverse
