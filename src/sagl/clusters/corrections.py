"""What people say of samples and clusters: its form, and whether it can be kept to.

The form is that of a file, ``docs/corrections.md`` has all of it:

    {"format": "sagl-corrections", "version": 1,
     "labels": {"a.png": 3, "b.png": "cats"}, "wrong": ["c.png"],
     "must_link": [["d.png", "e.png"]], "cannot_link": [["d.png", "f.png"]],
     "merge": [[0, 2]], "split": ["dogs"]}

Numbers and names of clusters are those of the model that is corrected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from sagl.clusters.links import Links
from sagl.clusters.names import Mark, checked_names, name_of, unique
from sagl.later import CORRECTIONS, Corrected
from sagl.model import Model
from sagl.schema import check

FORMAT, VERSION = "sagl-corrections", 1
_MOST_SHOWN = 60


Sample = str | int | Mark
Cluster = str | int


class Label(Mark):
    """A sample and the cluster that it is in."""

    cluster: Cluster


class Corrections(TypedDict):
    """Every part is optional; ``run`` is the checksum of the run's configuration."""

    format: NotRequired[Literal["sagl-corrections"]]
    version: NotRequired[Literal[1]]
    run: NotRequired[str]
    names: NotRequired[dict[str, str]]
    labels: NotRequired[list[Label] | dict[str, Cluster]]
    wrong: NotRequired[list[Sample]]
    must_link: NotRequired[list[list[Sample]]]
    cannot_link: NotRequired[list[list[Sample]]]
    merge: NotRequired[list[list[Cluster]]]
    split: NotRequired[list[Cluster]]


class Plan(NamedTuple):
    """Corrections in rows of training samples and numbers of clusters to come."""

    given: dict[str, int]  # how many of each kind
    place: list[tuple[int, ...]]  # of each cluster so far its numbers: two if split
    n_clusters: int
    n_new: int  # of these, the last ones, that labels make
    names: dict[int, str]
    labels: dict[int, tuple[int, ...]]  # by row: the clusters it may be in
    wrong: dict[int, tuple[int, ...]]  # by row: those that it may not be in
    linked: list[list[int]]  # disjoint groups of rows
    apart: list[tuple[int, int]]

    @property
    def rows(self) -> list[int]:
        """Of all samples that something is said of."""
        links = [row for rows in (*self.linked, *self.apart) for row in rows]
        return sorted({*self.labels, *self.wrong, *links})

    def allowed(self) -> dict[int, set[int]]:
        """Clusters of the samples that may not be put into any."""
        every = set(range(self.n_clusters))
        some = {row: set(clusters) for row, clusters in self.labels.items()}
        for row, clusters in self.wrong.items():
            some[row] = some.get(row, every) - set(clusters)
        return some


def plan_of(model: Model, corrections: Mapping[str, Any]) -> Plan:
    """What is to be done; refused in one line if it is unknown or contradicts itself.

    What an earlier refit was told stays, but where it is said otherwise now.
    """
    given = _plain(corrections)
    check(Corrections, given)
    reader = _Reader(model, given.get("names", {}))
    place, n_clusters = reader.clusters(given.get("merge", []), given.get("split", []))
    names = reader.moved_names(place)
    labels: dict[int, tuple[int, ...]] = {}
    new: dict[str, int] = {}
    for sample, cluster in _pairs(given.get("labels", {})):
        row, where = reader.row(sample, "labels"), f"labels: {sample!r}"
        number = reader.cluster(cluster, where, may_be_new=True)
        if number is None:
            name = " ".join(str(cluster).split())
            number = new.setdefault(name, n_clusters + len(new))
            found: tuple[int, ...] = (number,)
        else:
            found = place[number]
        if row in labels and labels[row] != found:
            raise ValueError(f"{where}: this sample has two labels")
        labels[row] = found
    names |= {number: name for name, number in new.items()}
    wrong = {
        row: place[int(model.labels[row])]
        for row in reader.rows(given.get("wrong", []), "wrong")
    }
    links = [
        reader.group(group, f"must_link[{i}]")
        for i, group in enumerate(given.get("must_link", []))
    ]
    apart = [
        pair
        for i, group in enumerate(given.get("cannot_link", []))
        for pair in combinations(reader.group(group, f"cannot_link[{i}]"), 2)
    ]
    before = model.corrections
    if before is not None:
        told = [(row, place[k]) for row, k in before.labels if row not in labels]
        labels |= {row: found for row, found in told if row not in wrong}
        for row, k in before.wrong:
            if row not in labels:
                wrong[row] = tuple({*wrong.get(row, ()), *place[k]})
        links += [list(rows) for rows in before.must_link]
        apart += before.cannot_link
    counts = {kind: len(given.get(kind, ())) for kind in CORRECTIONS}
    every = Links(links)
    plan = Plan(
        counts,
        place,
        n_clusters + len(new),
        len(new),
        checked_names(names, n_clusters + len(new)),
        labels,
        wrong,
        every.groups,
        apart,
    )
    _check_agreement(plan, every, reader)
    return plan


def _pairs(labels: dict[str, Any] | list[Any]) -> list[tuple[Any, Any]]:
    """Samples and their clusters, in either form."""
    if isinstance(labels, dict):
        return list(labels.items())
    return [(each, each["cluster"]) for each in labels]


def is_empty(plan: Plan) -> bool:
    """Whether nothing new was said; names do not count."""
    return not any(plan.given.values())


def corrected(
    plan: Plan,
    before: Corrected | None,
    labels: NDArray[np.int64],
    *,
    overruled: int,
    moved: int,
    digests: Iterable[str],
) -> Corrected:
    """What a model keeps of a plan; ``labels`` are those of all training samples."""
    given = plan.given
    if before is not None:
        given = {kind: n + before.given.get(kind, 0) for kind, n in given.items()}
    earlier = () if before is None else before.digests
    return Corrected(
        given,
        tuple((row, int(labels[row])) for row in sorted(plan.labels)),
        tuple((row, k) for row in sorted(plan.wrong) for k in plan.wrong[row]),
        tuple(map(tuple, plan.linked)),
        tuple(plan.apart),
        unmet=sum(bool(labels[one] == labels[other]) for one, other in plan.apart),
        overruled=overruled,
        moved=moved,
        digests=tuple(sorted({*earlier, *digests})),
    )


class _Reader:
    """Finds samples and clusters of a model by what people call them."""

    def __init__(self, model: Model, names: Mapping[str, str]) -> None:
        self.C = model.settings.n_clusters
        self.n = len(model.labels)
        self.ids = model.ids
        self._place = {name: row for row, name in enumerate(model.ids or ())}
        given = {self._number(k, "names"): name for k, name in names.items()}
        self.names = checked_names({**model.names, **given}, self.C)
        self._numbers = {name_of(self.names, k): k for k in range(self.C)}

    def called(self, row: int) -> str:
        """The sample, for a message."""
        return repr(str(row) if self.ids is None else self.ids[row])[:_MOST_SHOWN]

    def row(self, sample: Any, where: str) -> int:
        """Of a sample by its id, by its number where there are no ids, or by both."""
        if isinstance(sample, dict):
            row, name = sample["row"], sample["sample"]
            if row >= self.n or (self.ids is not None and self.ids[row] != name):
                raise ValueError(f"{where}: row {row} is not the sample {name!r}")
            return int(row)
        if self.ids is None and (isinstance(sample, int) or str(sample).isdecimal()):
            if 0 <= int(sample) < self.n:
                return int(sample)
        elif sample in self._place:
            return self._place[sample]
        known = (
            f"0 to {self.n - 1}" if self.ids is None else f"such as {self.called(0)}"
        )
        shown = repr(sample)[:_MOST_SHOWN]
        raise ValueError(f"{where}: there is no sample {shown}; samples are {known}")

    def rows(self, samples: Sequence[Any], where: str) -> list[int]:
        return [self.row(sample, where) for sample in samples]

    def group(self, samples: Sequence[Any], where: str) -> list[int]:
        """The rows of at least two samples."""
        rows = self.rows(samples, where)
        if len(rows) < 2 or len(set(rows)) < len(rows):
            raise ValueError(f"{where}: it takes two samples or more, each named once")
        return rows

    def cluster(self, cluster: Any, where: str, *, may_be_new: bool = False) -> Any:
        """The number of a cluster by its number or name; None if the name is new."""
        if isinstance(cluster, int) or cluster.strip().isdecimal():
            return self._number(cluster, where)
        name = " ".join(cluster.split())
        if name in self._numbers:
            return self._numbers[name]
        if may_be_new and name:
            return None
        raise ValueError(f"{where}: there is no cluster called {cluster!r}")

    def _number(self, cluster: Any, where: str) -> int:
        text = str(cluster).strip()
        if not text.isdecimal() or int(text) >= self.C:
            raise ValueError(
                f"{where}: there is no cluster {cluster}; they are 0 to {self.C - 1}, "
                "and a new one needs a name"
            )
        return int(text)

    def clusters(
        self, merge: Sequence[Sequence[Any]], split: Sequence[Any]
    ) -> tuple[list[tuple[int, ...]], int]:
        """Where each cluster goes, and how many there are then.

        Merged ones go to the first of them; later ones move up, so that numbers have no
        gaps. The second half of a split one comes after all others.
        """
        groups = []
        for i, group in enumerate(merge):
            found = [self.cluster(k, f"merge[{i}]") for k in group]
            if len(set(found)) < 2:
                raise ValueError(f"merge[{i}]: it takes two clusters to be merged")
            groups.append(found)
        halves = [self.cluster(k, f"split[{i}]") for i, k in enumerate(split)]
        home = self._home = list(range(self.C))
        for group in Links(groups).groups:
            for k in group:
                home[k] = group[0]
            both = set(group) & set(halves)
            if both:
                raise ValueError(
                    f"cluster {min(both)} is both to be merged and to be split; do one "
                    "after the other"
                )
        if len(set(halves)) < len(halves):
            raise ValueError("split: a cluster is named twice")
        kept = [k for k in range(self.C) if home[k] == k]
        if len(kept) < 2:
            raise ValueError("merge: at least two clusters must remain")
        place = [(kept.index(home[k]),) for k in range(self.C)]
        second = {k: len(kept) + i for i, k in enumerate(halves)}
        every: list[tuple[int, ...]] = [
            (*numbers, second[k]) if k in second else numbers
            for k, numbers in enumerate(place)
        ]
        return every, len(kept) + len(halves)

    def moved_names(self, place: Sequence[tuple[int, ...]]) -> dict[int, str]:
        """Names of clusters at their new places; of merged ones that of the first."""
        moved: dict[int, str] = {}
        for k, name in self.names.items():
            if self._home[k] == k:
                moved |= dict.fromkeys(place[k], name)
        return unique(moved)


def _check_agreement(plan: Plan, links: Links, reader: _Reader) -> None:
    """Refuse what contradicts itself, also through a chain of links."""
    called = reader.called

    def chain(one: int, other: int) -> str:
        path = links.path(one, other)
        return " – ".join(called(row) for row in path)

    for one, other in plan.apart:
        if links.home(one) == links.home(other):
            raise ValueError(
                f"samples {called(one)} and {called(other)} are to be apart, but "
                f"linked: {chain(one, other)}"
            )
    allowed = plan.allowed()
    for row, clusters in allowed.items():
        if not clusters:
            said = "labelled with the cluster in which it is marked as wrong"
            if row not in plan.labels:
                said = "marked as wrong in every cluster"
            raise ValueError(f"sample {called(row)} is {said}")
    of_groups: dict[int, set[int]] = {}
    for group in plan.linked:
        known = [row for row in group if row in allowed]
        for one, other in combinations(known, 2):
            if not allowed[one] & allowed[other]:
                raise ValueError(
                    f"samples {called(one)} and {called(other)} are linked "
                    f"({chain(one, other)}), but said to be in different clusters"
                )
        some = [allowed[row] for row in known]
        left = set.intersection(*some) if some else set(range(plan.n_clusters))
        if not left:
            raise ValueError(
                f"the samples linked to {called(group[0])} have no cluster left: each "
                "is ruled out for one of them"
            )
        of_groups[links.home(group[0])] = left
    for one, other in plan.apart:
        a = of_groups.get(links.home(one), allowed.get(one, set()))
        b = of_groups.get(links.home(other), allowed.get(other, set()))
        if len(a) == 1 and a == b:
            raise ValueError(
                f"samples {called(one)} and {called(other)} are to be apart, but both "
                "said to be in one cluster"
            )


def _plain(value: Any) -> Any:
    """What people pass in Python, as JSON would have it."""
    if isinstance(value, np.generic | np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {
            str(key.item() if isinstance(key, np.generic) else key): _plain(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple | set):
        return [_plain(item) for item in value]
    return value
