"""Names of clusters: given by people, kept unique, kept under a refit, as a file.

The file is the one that the explorer of a report exports, and that a report reads from
the run's directory: ``names.json``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

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
    given = list(names.values())
    taken = {name for name in given if given.count(name) == 1}
    result = {}
    for cluster, name in names.items():
        if given.count(name) > 1:
            number = 1
            while f"{name} {number}" in taken:
                number += 1
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


def names_content(
    names: Mapping[int, str], run: str, wrong: list[Any] | None = None
) -> dict[str, Any]:
    """The file's content, as the explorer writes it; ``run`` is the run's checksum."""
    clusters = {str(k): names[k] for k in sorted(names)}
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "run": run,
        "clusters": clusters,
        "wrong": wrong or [],
    }


class Saved(NamedTuple):
    """What a file of names says."""

    clusters: dict[int, str]
    wrong: list[Any]  # samples marked as such, as they stand there


def read_names(path: Path, run: str, n_clusters: int | None) -> Saved:
    """The file's content, refused unless it is of the run with this checksum.

    Clusters of one name are numbered; without ``n_clusters`` none are looked at.
    """
    again = "export the names again in the explorer of a report (Names as JSON)"
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
        kind = content["format"], content["version"]
        owner, wrong = content["run"], list(content["wrong"])
        clusters = {int(k): name for k, name in content["clusters"].items()}
    except OSError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError(f"{path}: not the names of a run; {again}") from None
    if kind != (_FORMAT, _VERSION):
        raise ValueError(f"{path}: not names that this sagl reads; {again}")
    if owner != run:
        raise ValueError(
            f"{path}: the names belong to another run; numbers of clusters mean "
            "something else in every run: give the run's own names"
        )
    if n_clusters is None:
        return Saved({}, wrong)
    try:
        return Saved(checked_names(unique(clusters), n_clusters), wrong)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
