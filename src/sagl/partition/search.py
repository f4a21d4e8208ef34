"""Many proposals, annealed, and the best one by a score that needs no labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from sagl.partition.anneal import WARM, anneal, polish, softened
from sagl.partition.doubt import stability
from sagl.partition.moves import CONSIDERED, PROPOSALS, jump
from sagl.partition.proposals import centre_labels, consensus, spectral_labels
from sagl.partition.score import Score, score
from sagl.partition.space import Space


class Round(NamedTuple):
    """So many of the best partitions are improved by jumps; see ``moves.jump``."""

    jumpers: int
    considered: int
    proposals: int


RESTARTS = 8
_COMMITTEES = (3, 5)  # how many of the best partitions form a consensus
# Rounds of jumps: how many of the best jump, and how far each looks.
_ROUNDS = (Round(2, CONSIDERED, PROPOSALS), Round(1, 16, 400))


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
    known: Sequence[Tensor] = (),
    *,
    restarts: int = RESTARTS,
    on_candidate: Callable[[Candidate], None] | None = None,
) -> list[Candidate]:
    """Candidates, the best first.

    Parameters
    ----------
    space : Space
    n_clusters, seed : int
    known : sequence of Tensor (n,)
        Partitions found by other means, such as a trained network.
    restarts : int
        How many k-means partitions are annealed: of all views together and of each
        view alone, in turn. What a good view shows alone, a poor one beside it hides.
    on_candidate : callable, optional
        Told of each candidate, for progress.
    """
    C = n_clusters
    found: list[Candidate] = []

    def add(labels: Tensor, origin: str, *, own_start: bool = False) -> None:
        candidate = Candidate(labels, origin, score(space, labels, C), own_start)
        found.append(candidate)
        if on_candidate is not None:
            on_candidate(candidate)

    def agree() -> None:
        best = [candidate.labels for candidate in sorted(found, key=_by_score)]
        for size in _COMMITTEES:
            labels = consensus(space, best[:size], C, seed % 2**32)
            add(polish(space, labels, C), "consensus, annealed")

    for labels in known:
        add(labels, "network")
        add(
            polish(space, labels, C, hot=WARM, steps=60),
            "network, annealed",
            own_start=True,
        )
    views = len(space.views)
    alone = min(views, restarts - 1) if views > 1 else 0
    places = [space, *(space.only(view) for view in range(alone))]
    for restart in range(restarts):
        place = places[restart % len(places)]
        labels = centre_labels(place, C, (seed + restart) % 2**32)
        labels = anneal(place, softened(labels, C))
        if place is not space:
            labels = polish(space, labels, C)
        add(labels, "k-means, annealed", own_start=True)
    spectral = spectral_labels(space, C, seed % 2**32)
    add(spectral, "spectral")
    add(polish(space, spectral, C), "spectral, annealed", own_start=True)
    agree()
    for jumpers, considered, proposals in _ROUNDS:
        for candidate in sorted(found, key=_by_score)[:jumpers]:
            labels = jump(
                space, candidate.labels, C, proposals=proposals, considered=considered
            )
            add(labels, "jumped")
            add(polish(space, labels, C), "jumped, annealed")
        agree()
    return sorted(found, key=_by_score)


def reproduced(found: Sequence[Candidate], n_clusters: int) -> NDArray[np.float64]:
    """How stable each sample's cluster in the best candidate is under other starts."""
    others = [c.labels.cpu().numpy() for c in found[1:] if c.own_start]
    return stability(found[0].labels.cpu().numpy(), others, n_clusters)


def candidates_of(known: int = 0, restarts: int = RESTARTS) -> int:
    """How many candidates ``search`` will look at."""
    agreed = len(_COMMITTEES) * (1 + len(_ROUNDS))
    jumped = 2 * sum(each.jumpers for each in _ROUNDS)
    return 2 * known + restarts + 2 + agreed + jumped


def _by_score(candidate: Candidate) -> float:
    return -candidate.score.total
