"""Names of clusters and marks of samples, as the explorer writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sagl.run import CONFIG
from sagl.storage import sha256

FILE_NAME = "names.json"  # read from the run's directory when it lies there
_FORMAT = "sagl-names"
_VERSION = 1


@dataclass(frozen=True)
class Names:
    """What a person said about a run's clusters and samples.

    Attributes
    ----------
    clusters : mapping of int to str
        Names of clusters, by number; those without a name are absent.
    wrong : mapping of int to str
        Samples marked as wrong: the row in ``labels.csv`` and the id.
    run : str
        Checksum of the run they belong to.
    """

    clusters: Mapping[int, str] = field(default_factory=dict)
    wrong: Mapping[int, str] = field(default_factory=dict)
    run: str = ""

    def name_of(self, cluster: int) -> str:
        """The cluster's name, or "Cluster" and its number."""
        return self.clusters.get(cluster, f"Cluster {cluster}")


def run_checksum(run: Path) -> str:
    """What tells a run from all others: its configuration names all other files."""
    return sha256(run / CONFIG)


def read_names(path: str | Path) -> Names:
    """Read the names and marks that the explorer of a report exported.

    Examples
    --------
    >>> import tempfile
    >>> text = '{"format": "sagl-names", "version": 1, "run": "ab", '
    >>> text += '"clusters": {"2": "cats"}, "wrong": [{"row": 7, "sample": "7.jpg"}]}'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "names.json"
    ...     _ = path.write_text(text)
    ...     read_names(path)
    Names(clusters={2: 'cats'}, wrong={7: '7.jpg'}, run='ab')
    """
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file") from None
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise ValueError(f"{path}: not JSON; export the names again") from None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ValueError(
            f"{path}: not the names of a run; export them in the explorer of a report "
            "(Names as JSON)"
        )
    if content.get("version") != _VERSION:
        raise ValueError(
            f"{path}: of version {content.get('version')!r}, this sagl reads "
            f"{_VERSION}: upgrade sagl"
        )
    try:
        return Names(
            {int(k): _text(name) for k, name in content["clusters"].items()},
            {int(mark["row"]): _text(mark["sample"]) for mark in content["wrong"]},
            _text(content["run"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{path}: damaged ({type(error).__name__} {error}); export the names again"
        ) from None


def check_names(
    names: Names, path: Path, run: Path, n_clusters: int, ids: Sequence[str]
) -> None:
    """Refuse names of another run: its cluster 3 is not this one's."""
    if names.run != run_checksum(run):
        raise ValueError(
            f"{path}: the names belong to another run than {run}; numbers of clusters "
            "mean something else in every run: give the run's own names"
        )
    for cluster in names.clusters:
        if not 0 <= cluster < n_clusters:
            raise ValueError(
                f"{path}: there is no cluster {cluster}; {run} has {n_clusters}"
            )
    for row, name in names.wrong.items():
        if not 0 <= row < len(ids) or ids[row] != name:
            found = repr(ids[row]) if 0 <= row < len(ids) else "not there"
            raise ValueError(
                f"{path}: row {row} is marked as {name!r}, but it is {found}; give "
                "the same --store or --source as for the report they come from"
            )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value
