"""ICCE-style clustering: heads of TEMI, their consensus, a classifier taught by it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.cluster import KMeans
from torch import Tensor, split
from torch.nn.functional import cross_entropy, linear

from sagl.baselines.base import State, new_seed, real, side_by_side, whole
from sagl.baselines.temi import TEMI
from sagl.nn.inference import exact_matmul
from sagl.views import Views

_LENGTH = 10.0  # of the rows that the classifier learns from, for its penalty
_ITERATIONS = 200
_BLOCK_ROWS = 4096


@dataclass(eq=False, repr=False, kw_only=True)
class ICCE(TEMI):
    """Many clustering heads, ensembled, then self-training (image cluster ensembles).

    TEMI's heads are trained together. Samples that most heads put together become one
    cluster of the consensus (k-means on the labels of all heads). A linear classifier
    learns the consensus of the samples that it is surest of, labels all, and learns
    again from those it is surest of itself. Parameters not named here are those of
    :class:`~sagl.baselines.TEMI`.

    Parameters
    ----------
    rounds : int, default=3
        Of self-training.
    kept : float, default=0.7
        The share of each cluster that the classifier learns from, the surest first.
    """

    rounds: int = whole(3)
    kept: float = real(0.7, strict=True)

    def _fit(self, views: Views, generator: torch.Generator) -> State:
        x, teacher, _ = self._train_heads(views, generator)
        seed = new_seed(generator)
        with torch.no_grad():
            blocks = (teacher(h, self.temperature) for h in split(x, _BLOCK_ROWS))
            labels = torch.cat([z.argmax(dim=2) for z in blocks])  # (n, H)
        q, x = consensus(labels.cpu().numpy(), self.n_clusters, seed).to(x), _LENGTH * x
        for _ in range(self.rounds):
            sure = surest(q, self.kept)
            weight, bias = learn(x[sure], q[sure].argmax(dim=1), self.n_clusters)
            q = torch.softmax(linear(x, weight, bias), dim=1)
        return {"weight": _LENGTH * weight, "bias": bias}

    def _scores(self, features: list[Tensor]) -> Tensor:
        if "bias" not in self.state_:  # a look while the heads are trained
            return super()._scores(features)
        state = self._in_float64()
        return exact_matmul(side_by_side(features), state["weight"].T) + state["bias"]


def consensus(labels: NDArray[np.int64], n_clusters: int, seed: int) -> Tensor:
    """How well samples fit the clusters of all heads together, (n, C).

    ``labels``, (n, H), are those of each head, whose numbers need not match: k-means on
    all of them, one-hot, joins samples that many heads put together (Wu et al., 2015).
    """
    n, H = labels.shape
    columns = (labels + n_clusters * np.arange(H)).ravel().astype(np.int32)
    ends = np.arange(0, n * H + 1, H, dtype=np.int32)
    votes = csr_array((np.ones(n * H), columns, ends), shape=(n, H * n_clusters))
    kmeans = KMeans(n_clusters, n_init=10, random_state=seed).fit(votes)
    centres = kmeans.cluster_centers_
    # −‖x − c‖² without ‖x‖², which is the same for all clusters.
    return torch.from_numpy(2 * (votes @ centres.T) - np.square(centres).sum(axis=1))


def surest(q: Tensor, share: float) -> Tensor:
    """Positions of a share of each cluster, those that fit it best."""
    sure, labels = q.max(dim=1)
    chosen = []
    for c in range(q.shape[1]):
        members = (labels == c).nonzero().ravel()
        order = sure[members].argsort(descending=True, stable=True)
        chosen.append(members[order[: math.ceil(share * len(members))]])
    return torch.cat(chosen)


def learn(x: Tensor, labels: Tensor, n_clusters: int) -> tuple[Tensor, Tensor]:
    """Weight (C, d) and bias of a logistic regression with scikit-learn's penalty."""
    weight = torch.zeros(n_clusters, x.shape[1], device=x.device, requires_grad=True)
    bias = torch.zeros(n_clusters, device=x.device, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weight, bias], max_iter=_ITERATIONS, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        optimizer.zero_grad()
        penalty = weight.square().sum() / (2 * len(x))
        total = cross_entropy(linear(x, weight, bias), labels) + penalty
        total.backward()  # type: ignore[no-untyped-call]
        return total

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    return weight.detach(), bias.detach()
