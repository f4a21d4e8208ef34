"""Names of clusters: given by people, kept unique, kept under a refit, as a file.

The file is the one that the explorer of a report exports, and that a report reads from
the run's directory: ``names.json``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from sagl.features.samples import check_readable
from sagl.schema import Count, check, is_unicode, read_json

_KEPT = 0.5  # of the samples of both clusters that a name must have in common


def name_of(names: Mapping[int, str], cluster: int) -> str:
    """The cluster's name, or "Cluster" and its number."""
    return names.get(cluster, f"Cluster {cluster}")


def checked_names(names: Mapping[Any, Any], n_clusters: int) -> dict[int, str]:
    """Names by number: known numbers, and no two clusters of one name.

    >>> checked_names({2: " cats "}, 5)
    {2: 'cats'}
    """
    checked: dict[int, str] = {}
    for cluster, name in names.items():
        if isinstance(cluster, bool) or not isinstance(cluster, int | np.integer):
            raise ValueError(f"{cluster!r} is not the number of a cluster")
        if not 0 <= cluster < n_clusters:
            raise ValueError(
                f"there is no cluster {cluster}; they are 0 to {n_clusters - 1}"
            )
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"cluster {cluster}: the name {name!r} is not a text")
        if not is_unicode(name):
            raise ValueError(f"cluster {cluster}: the name {name!a} is no Unicode")
        checked[int(cluster)] = " ".join(name.split())
    by_name: dict[str, int] = {}
    for cluster in range(n_clusters):
        name = name_of(checked, cluster)
        if name in by_name:
            raise ValueError(
                f"clusters {by_name[name]} and {cluster} are both called {name!r}; "
                "give each a name of its own"
            )
        by_name[name] = cluster
    return checked


def unique(names: Mapping[int, str]) -> dict[int, str]:
    """The same names, numbered where several clusters have one.

    >>> unique({0: "cats", 1: "dogs", 4: "cats"})
    {0: 'cats 1', 1: 'dogs', 4: 'cats 2'}
    """
    names = {k: " ".join(str(name).split()) for k, name in names.items()}
    counts = Counter(names.values())
    taken = {name for name, count in counts.items() if count == 1}
    numbers: dict[str, int] = {}  # the last that was given to a name
    result = {}
    for cluster, name in names.items():
        if counts[name] > 1:
            number = numbers.get(name, 0) + 1
            while f"{name} {number}" in taken:
                number += 1
            numbers[name] = number
            name = f"{name} {number}"
            taken.add(name)
        result[cluster] = name
    return result


def kept_names(
    names: Mapping[int, str],
    before: NDArray[np.int64],
    after: NDArray[np.int64],
) -> dict[int, str]:
    """The names of clusters ``before``, (n,), for those ``after``, (n,).

    Clusters are matched one to one by the samples that they share; a name is kept if
    these are at least half of both clusters together.

    >>> import numpy as np
    >>> kept_names({0: "cats"}, np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    {1: 'cats'}
    """
    if len(before) == 0:
        return {}
    shared = np.zeros((before.max() + 1, after.max() + 1))
    np.add.at(shared, (before, after), 1)
    old, new = linear_sum_assignment(shared, maximize=True)
    sizes = shared.sum(axis=1)[old] + shared.sum(axis=0)[new] - shared[old, new]
    kept = {}
    for a, b, both in zip(old.tolist(), new.tolist(), sizes, strict=True):
        if a in names and both > 0 and shared[a, b] >= _KEPT * both:
            kept[b] = names[a]
    return kept


FILE = "names.json"  # in a run's directory
_FORMAT, _VERSION = "sagl-names", 1


class Mark(TypedDict):
    """A sample that somebody marked as wrong."""

    row: Count
    sample: str


class SavedNames(TypedDict):
    """The file, as the explorer of a report exports it."""

    format: Literal["sagl-names"]
    version: Literal[1]
    run: str
    clusters: dict[str, str]
    wrong: list[Mark]
    layers: NotRequired[dict[str, dict[str, str]]]


@dataclass(frozen=True)
class Names:
    """What a person said about a run's clusters and samples."""

    clusters: Mapping[int, str] = field(default_factory=dict)  # by number, if named
    # Samples marked as wrong: the row in labels.csv and the id.
    wrong: Mapping[int, str] = field(default_factory=dict)
    # Names in other layers, by how many clusters the layer has.
    layers: Mapping[int, Mapping[int, str]] = field(default_factory=dict)

    def label_of(self, cluster: int) -> str:
        """What a cluster is called that nobody has named."""
        return name_of({}, cluster)

    def name_of(self, cluster: int) -> str:
        """What a cluster is called."""
        return name_of(self.clusters, cluster)

    def content(self, run: str) -> dict[str, Any]:
        """The file's content; ``run`` is the run's checksum."""
        content: dict[str, Any] = {
            "format": _FORMAT,
            "version": _VERSION,
            "run": run,
            "clusters": {str(k): self.clusters[k] for k in sorted(self.clusters)},
            "wrong": [{"row": row, "sample": self.wrong[row]} for row in self.wrong],
        }
        if self.layers:
            content["layers"] = {
                str(n): {str(k): name for k, name in of_layer.items()}
                for n, of_layer in self.layers.items()
            }
        return content


def read_names(
    path: Path,
    run: str,
    n_clusters: int | None = None,
    ids: Sequence[str] | None = None,
) -> Names:
    """The file's content, refused unless it is of the run with this checksum.

    Clusters of one name are numbered. Numbers of clusters are checked where
    ``n_clusters`` is given, and samples where ``ids`` of all of them are.
    """
    names, owner = _read(path)
    if owner != run:
        raise ValueError(
            f"{path}: the names belong to another run; numbers of clusters mean "
            "something else in every run: give the run's own names"
        )
    if n_clusters is not None and len(names.clusters) > n_clusters:
        given = len(names.clusters)
        raise ValueError(f"{path}: {given:,} names for {n_clusters:,} clusters")
    clusters = unique(names.clusters)
    if n_clusters is not None:
        try:
            clusters = checked_names(clusters, n_clusters)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    if ids is not None:
        _check_marks(path, names.wrong, ids)
    return replace(names, clusters=clusters)


def _check_marks(path: Path, wrong: Mapping[int, str], ids: Sequence[str]) -> None:
    for row, name in wrong.items():
        sample = ids[row] if row < len(ids) else None
        if sample != name:
            actual = "not there" if sample is None else repr(sample)
            raise ValueError(
                f"{path}: row {row} is marked as {name!r}, but it is {actual}; give "
                "the same --store or --source as for the report they come from"
            )


def _read(path: Path) -> tuple[Names, str]:
    """What the file says, and the checksum of the run that it is of."""
    check_readable(path)
    try:
        content = read_json(path)
        if content["format"] != _FORMAT:
            raise ValueError(f"its format is {content['format']!r}")
        version = content["version"]
        if version == _VERSION:
            check(SavedNames, content)
            clusters = {_number(k): name for k, name in content["clusters"].items()}
            layers = {
                _number(n): {_number(k): name for k, name in of_layer.items()}
                for n, of_layer in content.get("layers", {}).items()
            }
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(
            f"{path}: not the names of a run ({type(error).__name__}: "
            f"{str(error)[:300]}); export the names again in the explorer of a report "
            "(Names as JSON)"
        ) from None
    if version != _VERSION:
        raise ValueError(
            f"{path}: of version {f'{version!r}'[:30]}, this sagl reads {_VERSION}: "
            "upgrade sagl"
        )
    wrong = {mark["row"]: mark["sample"] for mark in content["wrong"]}
    return Names(clusters, wrong, layers), content["run"]


def _number(text: str) -> int:
    """The number of a cluster, as the file has it."""
    if not re.fullmatch("-?[0-9]{1,18}", text):
        raise ValueError(f"{text[:30]!a} is no number of a cluster")
    return int(text)
