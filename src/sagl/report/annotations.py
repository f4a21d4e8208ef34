"""What people know and say about their samples: columns, names of clusters, marks."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sagl.run import CONFIG
from sagl.storage import sha256

MISSING = "(missing)"
NAMES = "names.json"  # read from the run's directory when it lies there
_ID_COLUMNS = ("id", "sample", "path", "file")
# More values than this and a column of words is something to read, not to colour by.
_MOST_CATEGORIES = 500
# Whole numbers with so few values are codes: colours apart, not a scale.
_MOST_CODES = 20
_FORMAT = "sagl-names"
_VERSION = 1


@dataclass(frozen=True)
class Column:
    """One value per sample.

    ``values`` are codes of ``categories``, float64 with NaN where missing ("number"),
    or strings ("text").
    """

    name: str
    kind: Literal["category", "number", "text"]
    values: NDArray[Any]
    categories: tuple[str, ...] = ()


def make_column(name: str, strings: Sequence[str]) -> Column:
    """A column from what its cells say: numbers, few different words, or texts.

    Examples
    --------
    >>> make_column("weight", ["1.5", "", "2"]).kind
    'number'
    >>> make_column("kind", ["cat", "dog", "cat"]).categories
    ('cat', 'dog')
    """
    cells = [cell.strip() for cell in strings]
    numbers = _numbers(cells)
    if numbers is not None:
        known = numbers[~np.isnan(numbers)]
        if (known != np.floor(known)).any() or len(np.unique(known)) > _MOST_CODES:
            return Column(name, "number", numbers)
    elif len(set(cells)) > _MOST_CATEGORIES:
        return Column(name, "text", np.array(cells, dtype=object))
    return category_column(name, cells, numeric=numbers is not None)


def category_column(
    name: str, values: Sequence[Any], *, numeric: bool = False
) -> Column:
    """A column of categories, in the order of their names or numbers."""
    words = [str(value) or MISSING for value in values]

    def place(word: str) -> tuple[float, str]:
        return (float("inf" if word == MISSING else word) if numeric else 0.0, word)

    order = sorted(set(words), key=place)
    codes = {word: code for code, word in enumerate(order)}
    return Column(
        name, "category", np.array([codes[word] for word in words]), tuple(order)
    )


def read_columns(path: Path, ids: Sequence[str]) -> tuple[Column, ...]:
    """The columns of a CSV file with a header, one line per sample.

    A column named ``id`` (or ``sample``, ``path``, ``file``) joins the lines to the
    samples by id; without one the lines are in the samples' order.
    """
    header, lines = _table(path)
    key = next((i for i, name in enumerate(header) if name in _ID_COLUMNS), None)
    if key is not None:
        line_of = {line[key]: line for line in lines}
        missing = next((i for i in ids if i not in line_of), None)
        if missing is not None:
            raise ValueError(
                f"{path}: there is no line with the {header[key]} {missing!r}; give "
                "one line per sample"
            )
        lines = [line_of[i] for i in ids]
    elif len(lines) != len(ids):
        raise ValueError(
            f"{path}: {len(lines)} lines for {len(ids)} samples; give one line per "
            "sample, or a column named id"
        )
    return tuple(
        make_column(name, [line[i] for line in lines])
        for i, name in enumerate(header)
        if i != key
    )


def _table(path: Path) -> tuple[list[str], list[list[str]]]:
    text = _read(path)
    if not text:
        raise ValueError(f"{path}: the file is empty; it needs a header")
    try:
        header, *lines = list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise ValueError(f"{path}: not a table ({error})") from None
    for number, line in enumerate(lines, start=2):
        if len(line) != len(header):
            raise ValueError(
                f"{path}: line {number} has {len(line)} cells, the header "
                f"{len(header)}; give every line as many"
            )
    names = [name.strip() for name in header]
    if len(set(names)) < len(names) or "" in names:
        raise ValueError(f"{path}: each column needs a name of its own in the header")
    return names, lines


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file") from None
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not UTF-8 text; save it as UTF-8") from None


def _numbers(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """The cells as numbers, NaN where empty; None if one is none or all are empty."""
    try:
        given = np.array([float(cell) for cell in cells if cell])
    except ValueError:
        return None
    if not len(given) or not np.isfinite(given).all():
        return None
    values = np.full(len(cells), np.nan)
    values[[bool(cell) for cell in cells]] = given
    return values


@dataclass(frozen=True)
class Names:
    """What a person said about a run's clusters and samples."""

    clusters: Mapping[int, str] = field(default_factory=dict)  # by number, if named
    # Samples marked as wrong: the row in labels.csv and the id.
    wrong: Mapping[int, str] = field(default_factory=dict)
    run: str = ""  # checksum of the run they belong to

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
    text = _read(path)
    try:
        content = json.loads(text)
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
        there = ids[row] if 0 <= row < len(ids) else None
        if there != name:
            what = "not there" if there is None else repr(there)
            raise ValueError(
                f"{path}: row {row} is marked as {name!r}, but it is {what}; give "
                "the same --store or --source as for the report they come from"
            )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value
