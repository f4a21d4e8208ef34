"""Merge two clusters that are mistaken for each other, split one that is two.

Annealing moves samples between clusters that are there. When two clusters share what
is one, and another holds what are two, no single sample has a reason to move: the two
must be merged and the other split at once. Such moves are proposed where they promise
most, annealed for a few steps and kept if the score rises.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import product

import torch
from torch import Tensor

from sagl.nn.sparse import CSR
from sagl.search.anneal import Sizes, Start, anneal_new, outlook
from sagl.search.evidence import evidence, mistaken
from sagl.search.score import confusion, score, split_information
from sagl.search.space import Space
from sagl.training.distributed import spread

_STEPS = 10  # of annealing, per proposal
_AT_ONCE, _ENTRIES = 10, 1 << 25  # proposals annealed side by side; their soft labels
_DIVISIBLE = 4  # samples that a cluster must have to be split
_POWER_STEPS, _MAX_MOVES = 10, 30  # of 2-means: for its first cut, and of samples


def split_and_merge(
    space: Space,
    labels: Tensor,
    n_clusters: int,
    *,
    sizes: Sizes = "balanced",
) -> Tensor:
    """Labels (n,) of at least the same score, from labels 0 … C − 1, (n,).

    Where sizes are free, partitions are compared by the value of their evidence.

    It ends after so many proposals, or when none of those that combine the most
    promising merges and splits is an improvement.
    """
    at_once = max(1, min(_AT_ONCE, _ENTRIES // (len(labels) * n_clusters)))
    best = _value(space, labels, n_clusters, sizes)
    left = space.config.proposals_of(len(labels), n_clusters)
    considered = math.isqrt(left)  # pairs to merge, and clusters to split
    improved = True
    while improved and left > 0:
        improved = False
        queue = _proposals(space, labels, n_clusters, considered, sizes)[:left]
        near, graph = outlook(space, labels, n_clusters, sizes)

        def attempt(
            starts: Sequence[Start], near: Tensor = near, graph: CSR = graph
        ) -> tuple[Tensor, Tensor]:
            moved = anneal_new(space, starts, near, graph, steps=_STEPS, sizes=sizes)
            values = [_value(space, each, n_clusters, sizes) for each in moved]
            return torch.stack(moved), torch.tensor(values, dtype=torch.float64)

        together = [queue[i : i + at_once] for i in range(0, len(queue), at_once)]
        tasks = [partial(attempt, starts) for starts in together]
        for moved, values in spread(tasks, labels.device):
            left -= len(moved)
            for each, value in zip(moved, values.tolist(), strict=True):
                if value > best:
                    best, labels, improved = value, each, True
            if improved:
                break
    return labels


def filled(space: Space, labels: Tensor, n_clusters: int) -> Tensor:
    """Labels (n,) that use every cluster: others are split, where that tells most.

    Where fewer can be split than are empty, some stay so.
    """
    unused = torch.nonzero(torch.bincount(labels, minlength=n_clusters) == 0).flatten()
    if len(unused) == 0:
        return labels
    labels = labels.clone()
    halves = _halves(space, labels, n_clusters)
    for cluster, half in zip(unused.tolist(), halves, strict=False):
        labels[half] = cluster
    return labels


def _value(space: Space, labels: Tensor, n_clusters: int, sizes: Sizes) -> float:
    if sizes == "any":
        return evidence(space, labels, n_clusters).value
    return score(space, labels, n_clusters).total


def _proposals(
    space: Space, labels: Tensor, n_clusters: int, considered: int, sizes: Sizes
) -> list[Start]:
    """Partitions with one merge and one split, the most promising first."""
    confused = mistaken if sizes == "any" else confusion
    pairs = _alike(confused(space, labels, n_clusters))[:considered]
    halves = _halves(space, labels, n_clusters)[:considered]
    starts = []
    ranked = product(enumerate(pairs), enumerate(halves))
    for (_, (kept, gone)), (_, half) in sorted(ranked, key=lambda m: m[0][0] + m[1][0]):
        split = int(labels[half[0]])
        if split not in (kept, gone):
            moved = torch.where(labels == gone, kept, labels)
            moved[half] = gone
            new = torch.tensor([kept, gone, split], device=labels.device)
            starts.append(Start(moved, new))
    return starts


def _alike(confused: Tensor) -> list[tuple[int, int]]:
    """Pairs of clusters, those first of which most is mistaken for the other.

    An empty cluster costs nothing to merge: one pair with it comes before all others.
    """
    n_clusters = len(confused)
    size = confused.sum(dim=0)
    share = (confused + confused.T) / (size[:, None] + size).clamp_min(1)
    first, second = torch.triu_indices(n_clusters, n_clusters, offset=1)
    order = share[first, second].argsort(descending=True, stable=True)
    pairs = list(zip(first[order].tolist(), second[order].tolist(), strict=True))
    unused = torch.nonzero(size == 0).flatten().tolist()
    if unused:
        smallest = int(torch.where(size > 0, size, torch.inf).argmin())
        pairs.insert(0, (smallest, unused[0]))
    return pairs


def _halves(space: Space, labels: Tensor, n_clusters: int) -> list[Tensor]:
    """One half, as positions, of each cluster, those first whose split tells most."""
    x = space.side_by_side(space.views)
    second = torch.zeros_like(labels, dtype=torch.bool)
    halves: dict[int, Tensor] = {}
    for cluster in range(n_clusters):
        members = torch.nonzero(labels == cluster).flatten()
        if len(members) < _DIVISIBLE:
            continue
        half = members[halved(x[members])]
        if len(half) > 0:  # else all members are the same sample
            second[half] = True
            halves[cluster] = half
    nats = split_information(space, labels, n_clusters, second).tolist()
    return [halves[cluster] for cluster in sorted(halves, key=lambda c: -nats[c])]


def halved(rows: Tensor) -> Tensor:
    """Which rows of (n, d) are in the second of two clusters: 2-means, (n,) of bool.

    From a cut across the direction in which rows differ most, so without chance, and
    many times as fast as scikit-learn's on the few samples of one cluster. None where
    all rows are alike.
    """
    centred = rows - rows.mean(dim=0)
    direction = centred[centred.square().sum(dim=1).argmax()]
    for _ in range(_POWER_STEPS):
        direction = (centred @ direction) @ centred
        direction = direction / direction.norm().clamp_min(1e-30)
    side = centred @ direction > 0
    for _ in range(_MAX_MOVES):
        if side.all() or not side.any():
            break
        first, second = centred[~side].mean(dim=0), centred[side].mean(dim=0)
        middle = (second + first) / 2
        moved = (centred - middle) @ (second - first) > 0
        if torch.equal(moved, side):
            break
        side = moved
    return side
