"""Two runs beside each other: which clusters are the same, which samples moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from sagl.clusters.names import name_of
from sagl.estimator import SAGL
from sagl.report.inputs import Column, open_inputs, sample_ids
from sagl.run import LABELS

ABSENT = -1  # the cluster of a sample that the other run does not have
_MOST_MOVES = 12


class Move(NamedTuple):
    """Samples that left a cluster's counterpart for another cluster."""

    here: int
    there: int
    samples: int


@dataclass(frozen=True)
class Beside:
    """Another run, seen from this one's samples and clusters."""

    name: str  # of the other run's directory
    labels: NDArray[np.int64]  # (n,) the other run's clusters of this one's samples
    names: tuple[str, ...]  # of the other run's clusters
    flow: NDArray[np.int64]  # (C, C') samples in a cluster here and one there
    match: dict[int, int]  # the counterpart of a cluster here
    only_there: int  # samples that this run does not have

    @property
    def shared(self) -> int:
        """Samples of both runs."""
        return int(self.flow.sum())

    @property
    def only_here(self) -> int:
        """Samples that the other run does not have."""
        return len(self.labels) - self.shared

    def moved(self, labels: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which samples of these clusters are not in their counterpart there, (n,)."""
        expected = np.full(len(self.flow), ABSENT)
        expected[list(self.match)] = list(self.match.values())
        away = expected[labels] != self.labels
        moved: NDArray[np.bool_] = away & (self.labels != ABSENT)
        return moved

    @property
    def n_moved(self) -> int:
        """How many samples moved."""
        stayed = sum(int(self.flow[here, there]) for here, there in self.match.items())
        return self.shared - stayed

    def moves(self) -> list[Move]:
        """Where most of those that moved are now, the largest moves first."""
        away = self.flow.copy()
        for here, there in self.match.items():
            away[here, there] = 0
        order = np.argsort(-away, axis=None, kind="stable")[:_MOST_MOVES]
        pairs = zip(*np.unravel_index(order, away.shape), strict=True)
        return [
            Move(int(i), int(j), int(away[i, j])) for i, j in pairs if away[i, j] > 0
        ]

    def places(self) -> list[int]:
        """For each cluster there its colour: that of its counterpart, if it has one."""
        here = {there: here for here, there in self.match.items()}
        free = iter(range(len(self.flow), len(self.flow) + len(self.names)))
        return [here[k] if k in here else next(free) for k in range(len(self.names))]

    def column(self) -> Column:
        """The other run's clusters, to colour by."""
        known, codes = np.unique(self.labels, return_inverse=True)
        words = tuple("(not there)" if k == ABSENT else self.names[k] for k in known)
        return Column(f"Cluster in {self.name}", "category", codes, words)


def beside(
    name: str,
    labels: NDArray[np.int64],
    others: NDArray[np.int64],
    n_clusters: int,
    names: Sequence[str],
    only_there: int = 0,
) -> Beside:
    """Match the clusters of two partitions by the samples that they share.

    ``others`` are the clusters of the same samples there, ``ABSENT`` where there is
    none.

    >>> import numpy as np
    >>> here, there = np.array([0, 0, 0, 1, 1]), np.array([1, 1, 0, 0, 0])
    >>> both = beside("later", here, there, 2, ["x", "y"])
    >>> both.match, both.moved(here).tolist()
    ({0: 1, 1: 0}, [False, False, True, False, False])
    """
    flow = np.zeros((n_clusters, len(names)), dtype=np.int64)
    there = others != ABSENT
    np.add.at(flow, (labels[there], others[there]), 1)
    pairs = zip(*linear_sum_assignment(flow, maximize=True), strict=True)
    match = {int(i): int(j) for i, j in pairs if flow[i, j] > 0}
    return Beside(name, others, tuple(names), flow, match, only_there)


def open_beside(
    other: Path, run: Path, ids: Sequence[str], labels: NDArray[np.int64], n: int
) -> Beside:
    """The other run, joined to this one by the ids of the samples.

    ``ids`` are what this run's samples are called in its report.
    """
    model = SAGL.load(other, "cpu")
    own, theirs = _joined_ids(run, ids, other)
    place = {name: row for row, name in enumerate(theirs)}
    rows = np.array([place.get(name, ABSENT) for name in own])
    others = np.where(rows == ABSENT, ABSENT, model.labels_[rows])
    names = [name_of(model.names_, k) for k in range(model.n_clusters_)]
    only_there = len(theirs) - int((rows != ABSENT).sum())
    return beside(other.resolve().name, labels, others, n, names, only_there)


def _joined_ids(
    run: Path, ids: Sequence[str], other: Path
) -> tuple[Sequence[str], Sequence[str]]:
    """What the samples of both are called; refused where that says nothing."""
    own, theirs = sample_ids(run / LABELS), sample_ids(other / LABELS)
    if _numbered(own) or _numbered(theirs):
        if len(own) == len(theirs) and _numbered(own) and _numbered(theirs):
            return own, theirs
        own, theirs = list(ids), list(open_inputs(other).ids)
    if _numbered(own) or _numbered(theirs):
        raise ValueError(
            f"--beside {other}: which samples are the same is unknown: {run} has "
            f"{len(own):,}, {other} {len(theirs):,}, and not both know their ids; fit "
            "with --id-column, or from a store or source"
        )
    if not set(own) & set(theirs):
        raise ValueError(
            f"--beside {other}: it has no sample of {run}; its ids are like "
            f"{theirs[0]!r}, here they are like {own[0]!r}"
        )
    return own, theirs


def _numbered(ids: Sequence[str]) -> bool:
    return all(name == str(row) for row, name in enumerate(ids))
