"""TURTLE: the labelling that a linear classifier of every view learns best.

Gadetsky, Jiang and Brbić, "Let Go of Your Labels with Unsupervised Transfer", ICML
2024. Samples are columns here, (C, n): products with few clusters are faster that way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sagl.baselines.base import Baseline, State, descend, real, whole
from sagl.nn.encoder import LinearEncoder, uniform_fan_in
from sagl.nn.inference import exact_matmul
from sagl.nn.network import vote
from sagl.training.feed import Normalization
from sagl.views import Views

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8  # of Adam


@dataclass(eq=False, repr=False, kw_only=True)
class TURTLE(Baseline):
    """Soft labels, one linear map per view, that new linear classifiers agree with.

    The label of a sample is the mean over views of softmax(θ h), θ a weight-normalised
    linear map. Each step trains one linear classifier per view on the labels of a batch
    (the inner problem), then moves θ so that the labels come closer to what the
    classifiers say (their cross-entropy, the classifiers held fixed) while the entropy
    of each view's mean label keeps all clusters in use.

    Parameters
    ----------
    inner_steps : int, default=10
        Steps of the classifiers for each step of θ.
    warm_start : bool, default=False
        Keep the classifiers between the steps of θ; by default each step begins with
        new random ones.
    gamma : float, default=10.0
        Weight of the entropy.
    batch_size : int, default=10000
        Samples drawn for each step of θ; all of them where there are fewer.
    normalize : {"center", "none"}, default="center"
        The paper takes features as they are (``"none"``). Learning rates are steps of
        weights, so what they do depends on the scale of the features: centred and
        scaled ones need far fewer steps, and raw ones of a large scale collapse.
    """

    steps: int = whole(6000)
    inner_steps: int = whole(10)
    warm_start: bool = False
    gamma: float = real(10.0)
    batch_size: int = whole(10_000)
    learning_rate: float = real(1e-3, strict=True)
    inner_learning_rate: float = real(1e-3, strict=True)
    normalize: Normalization = "center"

    def _fit(self, views: Views, generator: torch.Generator) -> State:
        C, widths = self.n_clusters, views.widths
        features = self._standardised(views, self.normalize, self.device_)
        encoders = [LinearEncoder(w, C, generator).to(self.device_) for w in widths]
        parameters = nn.ModuleList(encoders).parameters()
        optimizer = torch.optim.Adam(parameters, lr=self.learning_rate)
        heads = Heads(widths, C, self.inner_learning_rate, self.device_)

        def state() -> State:
            W = {f"W.{i}": encoder.weight() for i, encoder in enumerate(encoders)}
            return W | {f"b.{i}": encoder.b for i, encoder in enumerate(encoders)}

        for step in self._steps(self.steps, state):
            batch = _draw(features, self.batch_size, generator)
            q = soft_labels(encoders, batch)
            if step == 0 or not self.warm_start:
                heads.restart(generator)
            heads.train(batch, q.detach().mean(dim=0), self.inner_steps)
            log_p = torch.log_softmax(heads.logits(batch), dim=1)
            descend(optimizer, label_loss(q, log_p, self.gamma))
        return state()

    def _scores(self, features: list[Tensor]) -> Tensor:
        state = self._in_float64()
        z = [
            exact_matmul(h, state[f"W.{i}"].T) + state[f"b.{i}"]
            for i, h in enumerate(features)
        ]
        return vote(torch.log_softmax(torch.stack(z), dim=2))


def soft_labels(
    encoders: Sequence[LinearEncoder], features: Sequence[Tensor]
) -> Tensor:
    """softmax(θ h) of each view, (L, C, n)."""
    pairs = zip(encoders, features, strict=True)
    z = torch.stack([_map(theta.weight(), theta.b, h) for theta, h in pairs])
    return torch.softmax(z, dim=1)


def label_loss(q: Tensor, log_p: Tensor, gamma: float) -> Tensor:
    """Σ_l CE(p_l, mean over views of q) − γ Σ_l H(mean over samples of q_l).

    ``q`` are the soft labels of each view and ``log_p`` what the classifiers say,
    both (L, C, n).
    """
    n = q.shape[2]
    cross_entropy = -(q.mean(dim=0) * log_p.sum(dim=0)).sum() / n
    mean = q.mean(dim=2)
    # A cluster may have died out to exact zero, where the logarithm has no slope.
    log_mean = mean.clamp(min=torch.finfo(mean.dtype).tiny).log()
    return cross_entropy + gamma * (mean * log_mean).sum()


class Heads:
    """One linear classifier per view, trained by Adam on gradients written out.

    The cross-entropy of softmax(W h + b) with labels y has the gradient
    mean((softmax(W h + b) − y) hᵀ): two products per view and step, which is nearly all
    that a fit costs. All parameters lie in one vector, so that Adam is few operations.
    """

    def __init__(
        self,
        widths: Sequence[int],
        n_clusters: int,
        learning_rate: float,
        device: torch.device,
    ) -> None:
        self.widths = widths
        self.n_clusters = n_clusters
        self.learning_rate = learning_rate
        size = sum(n_clusters * (width + 1) for width in widths)
        # The last two are Adam's moments.
        self.vector, self.gradient, self.first, self.second = (
            torch.zeros(size, device=device) for _ in range(4)
        )
        self.steps = 0

    def restart(self, generator: torch.Generator) -> None:
        """New random classifiers; Adam forgets what it has seen."""
        C = self.n_clusters
        parts = [uniform_fan_in((C * (w + 1),), w, generator) for w in self.widths]
        self.vector.copy_(torch.cat(parts))
        self.first.zero_()
        self.second.zero_()
        self.steps = 0

    def logits(self, features: Sequence[Tensor]) -> Tensor:
        """W h + b of each view, (L, C, n)."""
        maps = zip(self.split(self.vector), features, strict=True)
        return torch.stack([_map(W, b, h) for (W, b), h in maps])

    def train(self, features: Sequence[Tensor], labels: Tensor, steps: int) -> None:
        """Some steps towards ``labels``, (C, n)."""
        maps, gradients = self.split(self.vector), self.split(self.gradient)
        for _ in range(steps):
            for (W, b), (dW, db), h in zip(maps, gradients, features, strict=True):
                error = torch.softmax(_map(W, b, h), dim=0).sub_(labels)
                torch.mm(error, h, out=dW)
                torch.sum(error, dim=1, out=db)
            self.gradient.div_(labels.shape[1])
            self.adam()

    def adam(self) -> None:
        """One step along ``gradient``."""
        self.steps += 1
        self.first.lerp_(self.gradient, 1 - _BETA1)
        self.second.mul_(_BETA2)
        self.second.addcmul_(self.gradient, self.gradient, value=1 - _BETA2)
        size = (self.second / (1 - _BETA2**self.steps)).sqrt_().add_(_EPSILON)
        rate = self.learning_rate / (1 - _BETA1**self.steps)
        self.vector.addcdiv_(self.first, size, value=-rate)

    def split(self, vector: Tensor) -> list[tuple[Tensor, Tensor]]:
        """W (C, d) and b (C,) of each view, as they lie in the vector."""
        C = self.n_clusters
        parts = torch.split(vector, [C * (width + 1) for width in self.widths])
        return [(part[:-C].view(C, -1), part[-C:]) for part in parts]


def _map(W: Tensor, b: Tensor, h: Tensor) -> Tensor:
    """W h + b of each row h, as columns: (C, n)."""
    return torch.addmm(b[:, None], W, h.T)


def _draw(
    features: list[Tensor], batch_size: int, generator: torch.Generator
) -> list[Tensor]:
    """Some samples at random, or all as they lie: their order has no effect."""
    n = len(features[0])
    if batch_size >= n:
        return features
    rows = torch.randperm(n, generator=generator)[:batch_size].to(features[0].device)
    return [h[rows] for h in features]
