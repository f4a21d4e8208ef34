"""What is known about a run's samples: views, pictures, texts, labels, columns, names.

Row i is row i of the run's ``labels.csv`` throughout. What comes with ids is joined by
them, never by position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sagl.clusters.names import FILE as NAMES
from sagl.clusters.names import Names, read_names
from sagl.features import tables
from sagl.features.files import read_labels
from sagl.features.manifest import MANIFEST
from sagl.features.readers import open_samples, reopen
from sagl.features.samples import Samples, Unreadable, check_readable, string_array
from sagl.features.split import read_files
from sagl.features.store import FeatureStore
from sagl.run import (
    FEATURES,
    LABELS,
    SOURCE,
    check_part,
    read_config,
    run_checksum,
)
from sagl.run_files import check_source
from sagl.schema import read_json
from sagl.views import Views

__all__ = ["Inputs", "open_inputs", "with_samples"]

MISSING = "(missing)"
_TEXT = 400  # characters of a text that are shown
_ID_COLUMNS = ("id", "sample", "path", "file")
# More values than this and a column of words is something to read, not to colour by.
_MOST_CATEGORIES = 500
# Whole numbers with so few values are codes: colours apart, not a scale.
_MOST_CODES = 20


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


@dataclass(frozen=True)
class Inputs:
    """What is known about the samples of a run; row i is row i of ``labels.csv``."""

    ids: Sequence[str]  # the row's number where nothing better is known
    views: Views | None = None  # those that the run was fitted on
    samples: Samples | None = None  # pictures or texts, in an order of their own
    sample_rows: NDArray[np.int64] | None = None  # which of the samples each row is
    labels: NDArray[Any] | None = None  # true classes; they only score
    columns: tuple[Column, ...] = ()  # what else is known, for colours and the panel
    names: Names = field(default_factory=Names)  # what people called the clusters
    notes: tuple[str, ...] = ()  # what could not be found, in words for the page

    @property
    def kind(self) -> str | None:
        """ "image", "text", or None where neither is known."""
        return None if self.samples is None else self.samples.kind

    def sample(self, row: int) -> Any:
        """The picture or text of a row."""
        if self.samples is None or self.sample_rows is None:
            raise ValueError("no pictures or texts are known for this run")
        return self.samples[int(self.sample_rows[row])]

    def text(self, row: int) -> str:
        """The beginning of a row's text; empty where it cannot be read."""
        try:
            text = str(self.sample(row))
        except Unreadable:
            return ""
        return text if len(text) <= _TEXT else text[:_TEXT].rstrip() + "…"

    def noted(self, note: str) -> Inputs:
        """The same with one more note."""
        return replace(self, notes=(*self.notes, " ".join(note.split())))


def open_inputs(
    run: Path,
    *,
    store: Path | None = None,
    views: Sequence[str] = (),
    id_column: str | None = None,
    source: str | None = None,
    labels: Path | None = None,
    columns: Path | None = None,
    names: Path | None = None,
) -> Inputs:
    """Open what the user named, and what lies in the run's directory.

    Views in tables with an ``id_column`` are joined to the run's samples by it.
    Without ``store`` and ``views`` the store in the run is used, if there is one, and
    without ``source`` the samples are opened as ``sagl fit`` opened them.
    """
    config = read_config(run)
    if store is not None and views:
        raise ValueError("give either --store or --view, not both")
    for name in (LABELS, SOURCE):
        check_part(run, config, name)
    inputs = Inputs(sample_ids(run / LABELS))
    n = len(inputs.ids)
    record = source_record(run)
    if views:
        fitted = {view["name"]: view["width"] for view in config["views"]}
        joined = read_files(views, id_column)
        given = joined.views.as_fitted([*fitted], [*fitted.values()])
        if id_column is not None:
            given = given[_positions(inputs.ids, joined.ids, "the views of --view")]
        check_length(len(given), n, "the views given by --view", run)
        inputs = replace(inputs, views=given)
    elif store is not None:
        inputs = _with_store(inputs, store, config)
    elif "store" in record or (run / FEATURES).exists():
        place = run / record.get("store", FEATURES)
        check_part(run, config, f"{FEATURES}/{MANIFEST}")
        try:
            inputs = _with_store(inputs, place, config)
        except (ValueError, OSError) as error:
            # The features may have moved since; the report is still worth making.
            inputs = inputs.noted(f"The features were not found: {error}")
    if source is not None:
        inputs = with_samples(inputs, open_samples(source), source)
    elif "reader" in record:
        try:
            inputs = with_samples(inputs, reopen(record), str(record["source"]))
        except (ValueError, KeyError, TypeError, OSError) as error:
            inputs = inputs.noted(f"Pictures and texts are not shown: {error}")
    if labels is not None:
        truth = read_labels(labels)
        check_length(len(truth), n, str(labels), run)
        inputs = replace(inputs, labels=truth)
    if columns is not None:
        inputs = replace(inputs, columns=read_columns(columns, inputs.ids))
    if names is not None or (run / NAMES).is_file():
        n_clusters = int(config["settings"]["n_clusters"])
        names = run / NAMES if names is None else names
        known = read_names(names, run_checksum(run), n_clusters, inputs.ids)
        inputs = replace(inputs, names=known)
    return inputs


def check_length(length: int, n: int, name: str, run: Path) -> None:
    """Refuse what has not one entry per sample of the run."""
    if length != n:
        raise ValueError(
            f"{name}: {length:,} samples, but {run} was fitted on {n:,}; give those "
            "of the fit, in the same order"
        )


def with_samples(inputs: Inputs, samples: Samples, place: str) -> Inputs:
    """The inputs with pictures or texts, joined by id where ids are known."""
    ids, rows = _join(inputs.ids, samples.ids, place)
    labels = inputs.labels
    if samples.labels is not None and labels is None:
        known = [samples.labels[int(row)] for row in rows]
        labels = string_array(Path(place), known)
    return replace(inputs, ids=ids, samples=samples, sample_rows=rows, labels=labels)


def sample_ids(path: Path) -> list[str]:
    """What a run's ``labels.csv`` calls its samples, or their numbers."""
    columns = tables.read_columns(path, [None])
    ids = columns.get("sample", columns.get("row"))
    if ids is None:
        raise ValueError(f"{path} is damaged: it has no column sample")
    return [one or "" for one in ids]


def _with_store(inputs: Inputs, place: Path, config: dict[str, Any]) -> Inputs:
    """Views and labels of a store, its rows put into the order of the run."""
    names = [view["name"] for view in config["views"]]
    store = FeatureStore.open(place)
    common = store.ids_in_all(names)
    inner = len(common) == len(inputs.ids) or set(inputs.ids) <= set(common)
    joined = store.join(names, "inner" if inner else "outer")
    ids, rows = _join(inputs.ids, joined.ids, str(place))
    in_order = np.array_equal(rows, np.arange(len(joined.ids)))
    views = joined.views if in_order else joined.views[rows]
    labels = None if joined.labels is None else joined.labels[rows]
    return replace(inputs, ids=ids, views=views, labels=labels)


def _join(
    ids: Sequence[str], known: Sequence[str], place: str
) -> tuple[Sequence[str], NDArray[np.int64]]:
    """The samples' ids, and where each is among those that are there.

    Samples that have numbers instead of names take the names of as many others.
    """
    numbered = all(name == str(row) for row, name in enumerate(ids))
    if numbered and len(ids) == len(known):
        return list(known), np.arange(len(ids))
    return ids, _positions(ids, known, place)


def _positions(
    ids: Sequence[str], known: Sequence[str | None], place: str
) -> NDArray[np.int64]:
    position = {name: i for i, name in enumerate(known)}
    missing = next((name for name in ids if name not in position), None)
    if missing is not None:
        raise ValueError(
            f"{place}: it has {len(known):,} samples, and none with the id "
            f"{missing!r}; give what the run was fitted on"
        )
    return np.array([position[name] for name in ids])


def source_record(run: Path) -> dict[str, Any]:
    """Where samples and features were when the run was fitted, if it says so."""
    try:
        record = read_json(run / SOURCE)
        check_source(record)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ValueError(f"{run / SOURCE} is damaged ({error}); remove it") from None
    return dict(record)


def make_column(name: str, strings: Sequence[str | None]) -> Column:
    """A column from what its cells say: numbers, few different words, or texts."""
    cells = [(cell or "").strip() for cell in strings]
    try:
        known = np.array([float(cell) for cell in cells if cell])
        numeric = len(known) > 0 and bool(np.isfinite(known).all())
    except ValueError:
        numeric = False
    if numeric and ((known % 1 != 0).any() or len(np.unique(known)) > _MOST_CODES):
        return Column(name, "number", np.array([float(c or "nan") for c in cells]))
    if not numeric and len(set(cells)) > _MOST_CATEGORIES:
        return Column(name, "text", np.array(cells, dtype=object))
    return category_column(name, cells, numeric=numeric)


def category_column(
    name: str, values: Sequence[Any], *, numeric: bool = False
) -> Column:
    """A column of categories, in the order of their names or numbers, missing last."""
    words = [str(value) or MISSING for value in values]
    order = sorted(set(words) - {MISSING}, key=float if numeric else str)
    order += [MISSING] * (MISSING in words)
    codes = {word: code for code, word in enumerate(order)}
    coded = np.array([codes[word] for word in words])
    return Column(name, "category", coded, tuple(order))


def read_columns(path: Path, ids: Sequence[str]) -> tuple[Column, ...]:
    """The columns of a table: .csv, .tsv, .jsonl or .parquet, one row per sample.

    A column named ``id`` (or ``sample``, ``path``, ``file``) joins the rows to the
    samples by id; without one they are in the samples' order.
    """
    check_readable(path)
    columns = tables.read_columns(path, [None])
    if "" in columns:
        raise ValueError(f"{path}: each column needs a name of its own in the header")
    key = next((name for name in columns if name in _ID_COLUMNS), None)
    n = len(next(iter(columns.values())))
    rows = np.arange(n)
    if key is not None:
        rows = _positions(ids, columns.pop(key), str(path))
    elif n != len(ids):
        raise ValueError(
            f"{path}: {n} lines for {len(ids)} samples; give one line per sample, or a "
            "column named id"
        )
    return tuple(
        make_column(name, [cells[row] for row in rows])
        for name, cells in columns.items()
    )
