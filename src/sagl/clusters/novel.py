"""Clusters that new samples make, found one by one among the clusters that are there.

Earlier samples stay in their clusters, or go to a new one: so it is new samples that
decide. What may be a new cluster is the half of a cluster (2-means) in which most are
new, and new samples among whose nearest neighbours hardly any was there before. Each
is annealed together with all that is there. It is kept if new samples are much more
frequent in it than beside it, in the clusters that its samples come from, and if
regressions know its samples as such: that there is more of an old cluster than before
makes none, nor that an old cluster could be two. Then the next one is looked for.

Several at once may have been found as one. Last, new clusters are cut in halves as long
as views and neighbours then tell more of the clusters, per entropy
(``search.evidence``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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
_OFTENER = 3.0  # times as many new samples per old one as beside it
_NATS = 4.0  # so much by chance in one of 200 clusters: likelihood ratio, χ² of 8

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

    def with_one_more(now: Grown, starts: Sequence[Tensor]) -> list[Grown]:
        n = now.n_clusters
        found = [
            annealed(now.labels.index_fill(0, rows, n), n + 1, _STEPS)
            for rows in starts
        ]
        return [each for each in found if _is_cluster(space, each, n_clusters, is_new)]

    lonely = _lonely(space, is_new)
    best = annealed(labels, n_clusters, _STEPS)
    while True:
        starts = _candidates(space, best, n_clusters, is_new, lonely)
        told = [
            (_novelty(best, each, is_new), each) for each in with_one_more(best, starts)
        ]
        if not told:
            break
        nats, better = max(told, key=lambda each: each[0])
        if nats < _NATS:
            break
        best = better
    while True:
        found = with_one_more(best, _halves(space, best, n_clusters, is_new))
        if not found:
            break
        better = max(found, key=lambda each: each.evidence.value)
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
    """Samples of old clusters that may be a new one, the most promising first."""
    found = []
    for rows, rest in _cuts(space, now, range(before), is_new):
        share = is_new[rows].float().mean() - is_new[rest].float().mean()
        found.append((float(share), rows))
    found.sort(key=lambda each: -each[0])
    best = [rows for excess, rows in found if excess > 0][: _TRIED - 1]
    alone = torch.nonzero(lonely & (now.labels < before)).flatten()
    return [*best, alone] if len(alone) >= LEAST else best


def _halves(space: Space, now: Grown, before: int, is_new: Tensor) -> list[Tensor]:
    """One half of each new cluster."""
    new = range(before, now.n_clusters)
    return [rows for rows, _ in _cuts(space, now, new, is_new)][::2]


def _cuts(
    space: Space, now: Grown, clusters: Iterable[int], is_new: Tensor
) -> Iterator[tuple[Tensor, Tensor]]:
    """Each half of these clusters that has enough new samples, and the other half."""
    x = space.side_by_side(space.views)
    for k in clusters:
        members = torch.nonzero(now.labels == k).flatten()
        if int(is_new[members].sum()) < LEAST:
            continue
        second = halved(x[members])
        for side in (second, ~second):
            rows, rest = members[side], members[~side]
            if int(is_new[rows].sum()) >= LEAST and len(rest) > 0:
                yield rows, rest


def _lonely(space: Space, is_new: Tensor) -> Tensor:
    """New samples of whose nearest neighbours less than half as many as by chance were
    there before, (n,) of bool."""
    near = row_stochastic(affinity(space.side_by_side(space.views), _NEAREST))
    earlier = multiply(near, (~is_new).float()[:, None])[:, 0]
    found: Tensor = is_new & (earlier < (~is_new).float().mean() / 2)
    return found


def _novelty(now: Grown, then: Grown, is_new: Tensor) -> float:
    """Nats by which the last cluster tells new samples from old; 0 if not by enough.

    That is the likelihood ratio of clusters with it and without. It must hold more new
    samples per old one than the clusters, as they are now, that its new samples were
    in: else there is only more of what was there.
    """
    last = then.n_clusters - 1
    inside = then.labels == last
    shares = torch.bincount(now.labels[inside & is_new], minlength=last).double()
    counts = _counts(then, is_new) + 0.5
    per_old = counts[:, 1] / counts[:, 0]
    beside = (shares / shares.sum()) @ per_old[:last]
    if float(per_old[last]) < _OFTENER * float(beside):
        return 0.0
    return _told_of_time(_counts(then, is_new)) - _told_of_time(_counts(now, is_new))


def _counts(found: Grown, is_new: Tensor) -> Tensor:
    """Old and new samples of each cluster, (C, 2)."""
    both = torch.stack([~is_new, is_new], dim=1).double()
    return both.new_zeros(found.n_clusters, 2).index_add_(0, found.labels, both)


def _told_of_time(counts: Tensor) -> float:
    """Nats that clusters tell of which samples are new, up to what is always so."""
    cells = torch.special.xlogy(counts, counts).sum()
    sizes = counts.sum(dim=1)
    return float(cells - torch.special.xlogy(sizes, sizes).sum())


def _is_cluster(space: Space, found: Grown, before: int, is_new: Tensor) -> bool:
    """Whether the last cluster is told apart, and all new ones have enough samples."""
    if not _whole(found, before, is_new):
        return False
    last = found.n_clusters - 1
    return _known(left_out(space, one_hot(found.labels, last + 1)), found, last) > 0.5


def _known(p: Tensor, found: Grown, cluster: int) -> float:
    """The share of a cluster that predictions p know as such."""
    return float((p[found.labels == cluster].argmax(dim=1) == cluster).float().mean())


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
        others = near.clone()
        others[:, k] = -torch.inf
        without = torch.where(inside, others.argmax(dim=1), labels)
        gain = found.evidence.information - evidence(space, without, C).information
        result.append(Told(_known(p, found, k), gain))
    return result
