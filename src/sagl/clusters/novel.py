"""Clusters that new samples make, found one by one among the clusters that are there.

Earlier samples stay in their clusters, or go to a new one: so it is new samples that
decide. What may be a new cluster is the half of a cluster (2-means) in which most are
new, and new samples among whose nearest neighbours hardly any was there before. Each
is annealed together with all that is there; the best one is kept if views and
neighbours then tell more of the clusters, per entropy (``search.evidence``): a cluster
that is told apart no better than by chance costs more than it tells. Then the next one
is looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from sagl.nn.sparse import multiply
from sagl.search.anneal import Sizes, outlook, reanneal
from sagl.search.constraints import Constraints
from sagl.search.evidence import Evidence, evidence, left_out
from sagl.search.moves import halved
from sagl.search.space import Space, affinity, one_hot, row_stochastic

LEAST = 8  # new samples that make a cluster
_NEAREST = 5  # neighbours that say how new the place of a sample is
_TRIED = 4  # candidates for each new cluster
_STEPS = 15  # of annealing them

Hold = Callable[[Tensor, int], Constraints]  # given labels and how many clusters


class Grown(NamedTuple):
    """A partition with clusters of new samples after those that were there."""

    labels: Tensor
    n_clusters: int
    evidence: Evidence


def grown(
    space: Space,
    labels: Tensor,
    n_clusters: int,
    is_new: Tensor,
    sizes: Sizes,
    hold: Hold,
) -> Grown:
    """The partition with as many new clusters as the new samples speak for."""

    def annealed(start: Tensor, n: int, steps: int | None = None) -> Grown:
        held = hold(start, n)
        kept = reanneal(space, start, n, sizes=sizes, held=held, steps=steps)
        return Grown(kept, n, evidence(space, kept, n))

    lonely = _lonely(space, is_new)
    best = annealed(labels, n_clusters, _STEPS)
    while True:
        n = best.n_clusters
        found = [
            annealed(best.labels.index_fill(0, rows, n), n + 1, _STEPS)
            for rows in _candidates(space, best, n_clusters, is_new, lonely)
        ]
        fit = [each for each in found if _whole(each, n_clusters, is_new)]
        if not fit:
            break
        better = max(fit, key=lambda each: each.evidence.value)
        if better.evidence.value <= best.evidence.value:
            break
        best = better
    if best.n_clusters > n_clusters:
        last = annealed(best.labels, best.n_clusters)
        best = last if _whole(last, n_clusters, is_new) else best
        return _largest_first(best, n_clusters)
    return annealed(labels, n_clusters)


def _candidates(
    space: Space, now: Grown, before: int, is_new: Tensor, lonely: Tensor
) -> list[Tensor]:
    """Samples that may be a new cluster, the most promising first."""
    x = space.side_by_side(space.views)
    found: list[tuple[float, Tensor]] = []
    for k in range(now.n_clusters):
        members = torch.nonzero(now.labels == k).flatten()
        if int(is_new[members].sum()) < LEAST:
            continue
        second = halved(x[members])
        for side in (second, ~second):
            rows, rest = members[side], members[~side]
            if int(is_new[rows].sum()) < LEAST or len(rest) == 0:
                continue
            share = float(is_new[rows].float().mean())
            found.append((share - float(is_new[rest].float().mean()), rows))
    found.sort(key=lambda each: -each[0])
    best = [rows for excess, rows in found if excess > 0][: _TRIED - 1]
    alone = torch.nonzero(lonely & (now.labels < before)).flatten()
    return [*best, alone] if len(alone) >= LEAST else best


def _lonely(space: Space, is_new: Tensor) -> Tensor:
    """New samples of whose nearest neighbours less than half as many as by chance were
    there before, (n,) of bool."""
    near = row_stochastic(affinity(space.side_by_side(space.views), _NEAREST))
    earlier = multiply(near, (~is_new).float()[:, None])[:, 0]
    found: Tensor = is_new & (earlier < (~is_new).float().mean() / 2)
    return found


def _whole(found: Grown, before: int, is_new: Tensor) -> bool:
    """Whether each new cluster has enough samples, most of them new."""
    for k in range(before, found.n_clusters):
        inside = found.labels == k
        new = int((inside & is_new).sum())
        if new < LEAST or 2 * new < int(inside.sum()):
            return False
    return True


def _largest_first(found: Grown, before: int) -> Grown:
    sizes = torch.bincount(found.labels, minlength=found.n_clusters)[before:]
    order = sizes.argsort(descending=True, stable=True)
    place = torch.arange(found.n_clusters, device=found.labels.device)
    place[before + order] = torch.arange(before, found.n_clusters).to(place)
    return found._replace(labels=place[found.labels])


class Told(NamedTuple):
    """What speaks for a cluster."""

    recall: float
    gain: float


def told_of(
    space: Space, found: Grown, clusters: Sequence[int], sizes: Sizes
) -> list[Told]:
    """Of each of these clusters, beside the partition in which it is dissolved.

    Then each of its samples is in the cluster that is next best for it.
    """
    labels, C = found.labels, found.n_clusters
    p = left_out(space, one_hot(labels, C))
    near, _ = outlook(space, labels, C, sizes)
    result = []
    for k in clusters:
        inside = labels == k
        known = float((p[inside].argmax(dim=1) == k).float().mean())
        others = near.clone()
        others[:, k] = -torch.inf
        without = torch.where(inside, others.argmax(dim=1), labels)
        gain = found.evidence.information - evidence(space, without, C).information
        result.append(Told(known, gain))
    return result
