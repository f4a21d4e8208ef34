"""Clusters of unequal sizes, where the evidence for them is clear.

What a score of information likes best are clusters of equal sizes: they could tell
most. Where one group is twenty times as large as another, it cuts the large one to
pieces and throws small ones together. So the best even clusters are let go: annealed
to any sizes, merged and split by what they tell *per* entropy. Two numbers decide
whether that was right: how much larger a share of the labels views and neighbours now
predict, and how much entropy was given up for it. Even clusters that are right also
gain a little by becoming fewer in effect, so none may be left empty, and only what
gains clearly more is believed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

from torch import Tensor

from sagl.partition.anneal import anneal, polish, softened
from sagl.partition.evidence import Evidence, evidence
from sagl.partition.journal import Journal
from sagl.partition.moves import filled, jump
from sagl.partition.proposals import centre_labels
from sagl.partition.score import score
from sagl.partition.search import Candidate
from sagl.partition.space import Space

ClusterSizes = Literal["auto", "balanced", "any"]

_STARTS = 2  # of k-means, beside the even clusters
_ROUNDS = ((10, 100), (16, 400))  # how many considered and proposed, as in ``search``
# What must be gained of the share, per nat of entropy given up, and by what factor when
# entropy falls by a factor: with few clusters, a nat is much.
_GAIN, _PER_NAT, _ELASTICITY = 0.04, 0.3, 0.65


def unequal(
    space: Space,
    n_clusters: int,
    seed: int,
    even: Sequence[Candidate],
    *,
    doubted: bool = True,
    journal: Journal | None = None,
    on_step: Callable[[], object] = lambda: None,
) -> list[Candidate] | None:
    """Candidates of unequal sizes, the best first; None where even ones are as good.

    Parameters
    ----------
    space : Space
    n_clusters, seed : int
    even : sequence of Candidate
        What ``search`` found.
    doubted : bool
        Whether evidence is asked for. If not, the answer is never None.
    journal : Journal, optional
        Keeps what is found, for a search that may be killed.
    on_step : callable
        Told of each of ``steps_of()`` steps, unless it ends early.
    """
    C = n_clusters
    # The thresholds below were set with the neighbours of each view alone.
    space = space.attending(None)
    labels = even[0].labels
    before = evidence(space, labels, C)

    def let_go(start: Tensor) -> Tensor:
        return polish(space, start, C, sizes="any")

    def value(found: Tensor) -> float:
        on_step()
        return evidence(space, found, C).value

    def from_centres(start: int) -> Tensor:
        centres = centre_labels(space, C, (seed + start) % 2**32)
        return anneal(space, softened(centres, C), sizes="any")

    def jumped(labels: Tensor, considered: int, proposals: int) -> Tensor:
        labels = jump(
            space, labels, C, proposals=proposals, considered=considered, sizes="any"
        )
        return filled(space, labels, C)  # fewer clusters always seem better

    keep = journal or Journal()
    starts = [keep(partial(let_go, labels))]
    starts += [keep(partial(from_centres, start)) for start in range(_STARTS)]
    best = max(starts, key=value)
    for considered, proposals in _ROUNDS:
        best = keep(partial(jumped, best, considered, proposals))
        on_step()
        if doubted and not is_clear(before, evidence(space, best, C)):
            return None
    others = [let_go(candidate.labels) for candidate in even if candidate.own_start]
    return [
        Candidate(best, "unequal", score(space, best, C), False),
        *(Candidate(o, "let go", score(space, o, C), True) for o in others),
    ]


def is_clear(even: Evidence, free: Evidence) -> bool:
    """Whether clusters of any sizes are clearly better than balanced ones."""
    gain = free.share - even.share
    if gain < _GAIN:
        return False
    given_up = even.entropy - free.entropy
    if given_up <= 0:
        return True
    factor = (even.entropy / max(free.entropy, 1e-9)) ** _ELASTICITY
    return gain >= _PER_NAT * given_up and free.share >= factor * even.share


def steps_of() -> int:
    """How many steps ``unequal`` takes."""
    return 1 + _STARTS + len(_ROUNDS)
