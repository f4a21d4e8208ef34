"""Many proposals, annealed, and the best one by a score that needs no labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from sagl.search.anneal import anneal, reanneal, smoothed
from sagl.search.journal import Journal
from sagl.search.moves import split_and_merge
from sagl.search.proposals import centre_labels, consensus, spectral_labels
from sagl.search.score import Score, score
from sagl.search.space import Space
from sagl.search.stability import stability

_COMMITTEES = (3, 5)  # how many of the best partitions form a consensus
_ROUNDS = 2  # of moves


class Candidate(NamedTuple):
    """A partition, where it came from, and its score."""

    labels: Tensor
    origin: str
    score: Score
    own_start: bool  # annealed from a start that no other candidate had a part in


def search(
    space: Space,
    n_clusters: int,
    seed: int,
    *,
    starts: int | None = None,
    learn: Callable[[Sequence[Tensor]], Space] | None = None,
    journal: Journal | None = None,
    on_candidate: Callable[[], object] = lambda: None,
) -> tuple[list[Candidate], Space]:
    """Candidates, the best first, and the space by which they are compared.

    Parameters
    ----------
    space : Space
    n_clusters, seed : int
    starts : int, optional
        How many k-means partitions are annealed, else as configured: of all views
        together and of each view alone, in turn. What a good view shows alone, a poor
        one beside it hides.
    learn : callable, optional
        Given partitions, the best first, before the last round of moves: the space with
        what has been learned from them, by which all are then compared anew.
    journal : Journal, optional
        Keeps each partition, for a search that may be killed.
    on_candidate : callable, optional
        Called after each candidate, for progress.
    """
    C = n_clusters
    candidates: list[Candidate] = []
    keep = journal or Journal()

    def enter(labels: Tensor, origin: str, *, own_start: bool = False) -> None:
        candidates.append(Candidate(labels, origin, score(space, labels, C), own_start))
        on_candidate()

    def add(
        compute: Callable[[], Tensor], origin: str, *, own_start: bool = False
    ) -> Tensor:
        labels = keep(compute)
        enter(labels, origin, own_start=own_start)
        return labels

    def agree() -> None:
        best = [candidate.labels for candidate in sorted(candidates, key=_by_score)]

        def committee(size: int) -> Tensor:
            joined = consensus(space, best[:size], C, seed % 2**32)
            return reanneal(space, joined, C)

        for labels in keep.each([partial(committee, size) for size in _COMMITTEES]):
            enter(labels, "consensus, annealed")

    views, starts = space.n_views, starts or space.config.starts
    alone = min(views, starts - 1) if views > 1 else 0
    places = [space, *(space.only(view) for view in range(alone))]

    def from_centres(start: int) -> Tensor:
        place = places[start % len(places)]
        labels = centre_labels(place, C, (seed + start) % 2**32)
        labels = anneal(place, smoothed(place, labels, C))
        if place is space:
            return labels
        return reanneal(space, place.everywhere(labels), C)

    for labels in keep.each([partial(from_centres, start) for start in range(starts)]):
        enter(labels, "k-means, annealed", own_start=True)
    spectral = add(lambda: spectral_labels(space, C, seed % 2**32), "spectral")
    add(lambda: reanneal(space, spectral, C), "spectral, annealed", own_start=True)
    agree()
    for turn in range(_ROUNDS):
        if learn is not None and turn == _ROUNDS - 1:
            space = learn([c.labels for c in sorted(candidates, key=_by_score)])
            candidates[:] = [
                c._replace(score=score(space, c.labels, C)) for c in candidates
            ]
        best = min(candidates, key=_by_score).labels
        labels = add(partial(split_and_merge, space, best, C), "moves")
        add(partial(reanneal, space, labels, C), "moves, annealed")
        agree()
    return sorted(candidates, key=_by_score), space


def reproduced(candidates: Sequence[Candidate], n_clusters: int) -> NDArray[np.float64]:
    """How stable each sample's cluster in the best candidate is under other starts."""
    others = [c.labels.cpu().numpy() for c in candidates[1:] if c.own_start]
    return stability(candidates[0].labels.cpu().numpy(), others, n_clusters)


def candidates_of(starts: int) -> int:
    """How many candidates ``search`` will look at."""
    return starts + 2 + len(_COMMITTEES) * (1 + _ROUNDS) + 2 * _ROUNDS


def _by_score(candidate: Candidate) -> float:
    return -candidate.score.total
