"""Clusters of unequal sizes, where they are told apart better than balanced ones.

What a score of information likes best are clusters of equal sizes: they could tell
most. Where one group is twenty times as large as another, it cuts the large one to
pieces and throws small ones together. So the best balanced clusters are let go:
annealed to any sizes, merged and split by what they tell *per* entropy. That in turn
likes to throw together what overlaps, and to leave crumbs. Whether it was right is
decided by what both kinds can be measured by, whatever the sizes: the share of their
entropy that views and neighbours tell, and the recall of each cluster, mean over
clusters, small ones counting as much as large ones (``evidence.clarity``). Pieces of
one group are mistaken for each other, and so are crumbs for what they were broken from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

from torch import Tensor

from sagl.search.anneal import anneal, reanneal, smoothed
from sagl.search.candidates import Candidate
from sagl.search.evidence import clarity, evidence
from sagl.search.journal import Journal
from sagl.search.moves import filled, split_and_merge
from sagl.search.proposals import centre_labels
from sagl.search.score import score
from sagl.search.space import Space

ClusterSizes = Literal["auto", "balanced", "any"]

_LET_GO = 2  # of the balanced clusters, beside the best
_STARTS = 2  # of k-means, beside those
STEPS = _LET_GO + _STARTS + 2  # of `unequal`, unless it ends early
_HOPEFUL = 0.5  # of the margin must be there before moves, a third of a fit, are made


def unequal(
    space: Space,
    n_clusters: int,
    seed: int,
    balanced: Sequence[Candidate],
    *,
    doubted: bool = True,
    journal: Journal | None = None,
    on_step: Callable[[], object] = lambda: None,
) -> list[Candidate] | None:
    """Candidates of unequal sizes, the best first; None where others are as good.

    Parameters
    ----------
    space : Space
    n_clusters, seed : int
    balanced : sequence of Candidate
        Of equal sizes, from ``search``, the best first.
    doubted : bool
        Whether evidence is asked for. If not, the answer is never None.
    journal : Journal, optional
        Keeps each partition, for a search that may be killed.
    on_step : callable
        Called at each of ``STEPS`` steps, unless it ends early.
    """
    C = n_clusters
    # Neighbours in each view alone judge the moves: those in the attention graph are so
    # few and near that crumbs look whole to them.
    space = space.attending(None)
    labels = balanced[0].labels

    def let_go(start: Tensor) -> Tensor:
        return reanneal(space, start, C, sizes="any")

    def value(labels: Tensor) -> float:
        on_step()
        return evidence(space, labels, C).value

    def from_centres(start: int) -> Tensor:
        centres = centre_labels(space, C, (seed + start) % 2**32)
        return anneal(space, smoothed(space, centres, C), sizes="any")

    def moved(labels: Tensor) -> Tensor:
        labels = split_and_merge(space, labels, C, sizes="any")
        return filled(space, labels, C)  # fewer clusters always seem better

    keep = journal or Journal()
    own = [candidate.labels for candidate in balanced if candidate.own_start]
    some = own[:_LET_GO]
    computes = [partial(let_go, start) for start in (*some, labels)]
    computes += [partial(from_centres, start) for start in range(_STARTS)]
    found = list(keep.each(computes))
    others, starts = found[: len(some)], found[len(some) :]
    starts[1:1] = others
    best = max(starts, key=value)
    as_clear = clarity(space, balanced[0].labels, C)
    margin = space.config.size_margin if doubted else -math.inf
    if clarity(space, best, C) <= as_clear + _HOPEFUL * margin:
        return None
    best = keep(partial(moved, best))
    on_step()
    if clarity(space, best, C) <= as_clear + margin:
        return None
    others += keep.each([partial(let_go, other) for other in own[_LET_GO:]])
    return [
        Candidate(best, "unequal", score(space, best, C), False),
        *(Candidate(o, "let go", score(space, o, C), True) for o in others),
    ]
