"""Merge two clusters that are mistaken for each other, split one that is two.

Annealing moves samples between clusters that are there. When two clusters share what
is one, and another holds what are two, no single sample has a reason to move: one
cluster must jump. Jumps are proposed where they promise most, annealed for a few steps
and kept if the score rises.
"""

from __future__ import annotations

from itertools import product

import torch
from sklearn.cluster import KMeans
from torch import Tensor

from sagl.partition.anneal import COOL, anneal, learned_graph, softened
from sagl.partition.score import confusion, graph_information, score
from sagl.partition.space import Space

PROPOSALS = 60
_STEPS = 10  # of annealing, per proposal
_AT_A_TIME = 6  # pairs to merge, and clusters to split, that are considered


def jump(
    space: Space, labels: Tensor, n_clusters: int, *, proposals: int = PROPOSALS
) -> Tensor:
    """Labels (n,) of at least the same score, from labels 0 … C − 1, (n,)."""
    best = score(space, labels, n_clusters).total
    queue = _proposals(space, labels, n_clusters)
    graph = learned_graph(space, labels, n_clusters)
    for _ in range(proposals):
        if not queue:
            break
        soft = softened(queue.pop(0), n_clusters)
        found = anneal(space, soft, hot=COOL, steps=_STEPS, graph=graph)
        value = score(space, found, n_clusters).total
        if value > best:
            best, labels = value, found
            queue = _proposals(space, labels, n_clusters)
            graph = learned_graph(space, labels, n_clusters)
    return labels


def _proposals(space: Space, labels: Tensor, n_clusters: int) -> list[Tensor]:
    """Partitions with one merge and one split, the most promising first."""
    pairs = _alike(space, labels, n_clusters)
    halves = _halves(space, labels, n_clusters)
    found = []
    ranked = product(enumerate(pairs), enumerate(halves))
    for (_, (kept, gone)), (_, half) in sorted(ranked, key=lambda m: m[0][0] + m[1][0]):
        if int(labels[half[0]]) not in (kept, gone):
            jumped = torch.where(labels == gone, kept, labels)
            jumped[half] = gone
            found.append(jumped)
    return found


def _alike(space: Space, labels: Tensor, n_clusters: int) -> list[tuple[int, int]]:
    """Pairs of clusters of which the largest share is mistaken for the other."""
    mistaken = confusion(space, labels, n_clusters)
    size = mistaken.sum(dim=0)
    share = (mistaken + mistaken.T) / (size[:, None] + size).clamp_min(1)
    share = share.triu(diagonal=1).flatten()
    found = share.topk(min(_AT_A_TIME, n_clusters * (n_clusters - 1) // 2)).indices
    return [divmod(int(place), n_clusters) for place in found]


def _halves(space: Space, labels: Tensor, n_clusters: int) -> list[Tensor]:
    """One half, as positions, of the clusters whose split tells most of neighbours."""
    x = torch.cat(space.views, dim=1)
    found: list[tuple[float, Tensor]] = []
    for cluster in range(n_clusters):
        members = torch.nonzero(labels == cluster).flatten()
        if len(members) < 4:
            continue
        side = KMeans(2, n_init=3, random_state=0).fit_predict(x[members].cpu().numpy())
        half = members[torch.from_numpy(side == 1).to(members.device)]
        split = labels.clone()
        split[half] = n_clusters
        found.append((graph_information(space, split, n_clusters + 1), half))
    found.sort(key=lambda entry: -entry[0])
    return [half for _, half in found[:_AT_A_TIME]]
