"""What can be said for a partition without labels: one number per criterion.

Values are comparable within one task alone: between partitions of the same samples
into the same number of clusters.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances, silhouette_score
from torch import Tensor

from sagl import SAGL, Views
from sagl.nn.neighbours import unit_rows
from sagl.search import unequal as sizes
from sagl.search.candidates import Candidate
from sagl.search.evidence import clarity, evidence
from sagl.search.journal import Journal
from sagl.search.proposals import centre_labels
from sagl.search.score import mutual_information, neighbour_tables, score
from sagl.search.space import Space, one_hot
from sagl.training.feed import MEAN_NORM, standardized

KMEANS = 5  # starts, of all views together
COLUMNS = (
    "regressions",
    "attention",
    "affinity",
    "evidence",
    "clarity",
    "agreement",
    "silhouette",
    "umap",
    "turtle",
)
_STEPS, _RATE = 100, 0.1  # of Adam, for the linear classifiers


class Candidates(NamedTuple):
    """All partitions that a fit came by, each once, and those of k-means."""

    space: Space  # as the search left it, with the learned attention graph
    partitions: list[Tensor]
    kinds: list[str]  # balanced, any, or k-means
    delivered: int  # the position of the one that the fit took


class Kept(Journal):
    """Remembers what a search has found."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Tensor] = []

    def __call__(self, compute: Any) -> Tensor:
        self.found.append(super().__call__(compute))
        return self.found[-1]


def candidates_of(views: Views, n_clusters: int, seed: int) -> Candidates:
    """Of one default fit and some k-means."""
    spaces: list[Space] = []
    lists: list[tuple[str, list[Tensor]]] = []
    taken: list[Tensor] = []

    def watched(
        space: Space, C: int, seed: int, balanced: Sequence[Candidate], **options: Any
    ) -> list[Candidate] | None:
        kept = Kept()
        result = sizes.unequal(space, C, seed, balanced, **options | {"journal": kept})
        spaces.append(space)
        lists.append(("balanced", [c.labels for c in balanced]))
        lists.append(("any", kept.found))
        taken.append((result or balanced)[0].labels)
        return result

    with patch("sagl.pipeline.unequal", watched):
        SAGL(n_clusters, random_state=seed).fit(views)
    [space], [labels] = spaces, taken
    places = [space] * KMEANS
    if space.n_views > 1:
        places += [space.only(view) for view in range(space.n_views)]
    starts = [centre_labels(p, n_clusters, seed + i) for i, p in enumerate(places)]
    lists.append(("k-means", starts))
    once: dict[bytes, tuple[str, Tensor]] = {}
    for kind, partitions in lists:
        for each in partitions:
            once.setdefault(renamed(each), (kind, each))
    return Candidates(
        space,
        [each for _, each in once.values()],
        [kind for kind, _ in once.values()],
        list(once).index(renamed(labels)),
    )


def renamed(labels: Tensor) -> bytes:
    """The same for all partitions that differ in the names of their clusters alone."""
    _, first, which = np.unique(labels.numpy(), return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[which].astype(np.int32).tobytes()


def criteria(
    views: Views, n_clusters: int, found: Candidates, seed: int
) -> dict[str, list[float]]:
    """A value per candidate of each of COLUMNS; what is in nats per log C."""
    C = n_clusters
    values: dict[str, list[float]] = {name: [] for name in COLUMNS}
    unattended = found.space.attending(None)
    for labels in found.partitions:
        tables = neighbour_tables(found.space, labels, C)
        told = [(weight, mutual_information(table)) for weight, table in tables]
        linear = score(unattended, labels, C).linear
        near = sum(w * nats for w, nats in told[1:]) / sum(w for w, _ in told[1:])
        nats = (linear, told[0][1], near, evidence(unattended, labels, C).value)
        for name, value in zip(COLUMNS, nats, strict=False):
            values[name].append(value / math.log(C))
        values["clarity"].append(clarity(unattended, labels, C))
    rows = np.arange(len(views))
    features = standardized(views, rows, torch.device("cpu"), "standard")
    x = torch.cat([unit_rows(h) for h in features], dim=1)
    values["agreement"] = agreement(found.partitions, C).tolist()
    values["silhouette"] = silhouettes(x.numpy(), found.partitions)
    values["umap"] = silhouettes(embedded(x.numpy(), seed), found.partitions)
    values["turtle"] = generalisation(x, found.partitions, C, seed).tolist()
    return values


def agreement(partitions: Sequence[Tensor], n_clusters: int) -> NDArray[np.float64]:
    """The mean NMI of each with all others."""
    members = torch.cat([one_hot(p, n_clusters) for p in partitions], dim=1).double()
    K, n = len(partitions), len(members)
    p = (members.T @ members / n).reshape(K, n_clusters, K, n_clusters)
    entropy = -torch.special.xlogy(members.mean(dim=0), members.mean(dim=0))
    H = entropy.reshape(K, n_clusters).sum(dim=1)
    together = -torch.special.xlogy(p, p).sum(dim=(1, 3))
    both = H[:, None] + H
    shared = 2 * (both - together) / both.clamp_min(1e-12)
    others = shared.sum(dim=1) - shared.diagonal()
    result: NDArray[np.float64] = (others / max(K - 1, 1)).numpy()
    return result


def embedded(x: NDArray[np.float32], seed: int) -> NDArray[Any]:
    """UMAP at its defaults."""
    # Numba's threads set those of torch, too, and wait for each other by spinning.
    os.environ["NUMBA_NUM_THREADS"] = "1"
    import umap

    result: NDArray[Any] = umap.UMAP(random_state=seed, n_jobs=1).fit_transform(x)
    return result


def silhouettes(x: NDArray[Any], partitions: Sequence[Tensor]) -> list[float]:
    """The mean silhouette of rows x, (n, d); −1 where there is one cluster alone."""
    distances = pairwise_distances(x.astype(np.float64))
    np.fill_diagonal(distances, 0)
    return [
        float(silhouette_score(distances, labels.numpy(), metric="precomputed"))
        if len(labels.unique()) > 1
        else -1.0
        for labels in partitions
    ]


@torch.no_grad()
def generalisation(
    x: Tensor, partitions: Sequence[Tensor], n_clusters: int, seed: int
) -> NDArray[np.float64]:
    """TURTLE's cross-validation: how often linear classifiers predict the other half.

    Logistic regression on rows x, (n, d), of a mean length of 10, to the clusters of
    one half of the samples; right on the other; mean of both ways. All partitions at
    once: they differ in targets alone.
    """
    x = x * (MEAN_NORM / x.norm(dim=1).mean())
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    labels = torch.stack(list(partitions), dim=1)  # (n, K)
    halves = order.chunk(2)
    right = [
        _predicted(x[ours], labels[ours], x[rest], n_clusters).eq(labels[rest])
        for ours, rest in (halves, halves[::-1])
    ]
    result: NDArray[np.float64] = torch.cat(right).double().mean(dim=0).numpy()
    return result


def _predicted(x: Tensor, labels: Tensor, new: Tensor, n_clusters: int) -> Tensor:
    """What classifiers that were fitted to ``labels``, (m, K), say of new rows.

    Weights lie in the span of the rows, so that these may be turned into it.
    """
    (m, K), C = labels.shape, n_clusters
    if x.shape[1] > m:
        turn = torch.linalg.svd(x, full_matrices=False).Vh.T
        x, new = x @ turn, new @ turn
    x, new = (torch.cat([h, h.new_ones(len(h), 1)], dim=1) for h in (x, new))
    Y = torch.nn.functional.one_hot(labels, C).to(x)  # (m, K, C)
    W = torch.zeros(x.shape[1], K * C)
    free = torch.ones(len(W), 1)
    free[-1] = 0  # the intercept is not shrunk
    adam = torch.optim.Adam([W], lr=_RATE)
    for _ in range(_STEPS):
        p = (x @ W).reshape(m, K, C).softmax(dim=2)
        W.grad = (x.T @ (p - Y).reshape(m, K * C) + free * W) / m
        adam.step()
    return (new @ W).reshape(len(new), K, C).argmax(dim=2)
