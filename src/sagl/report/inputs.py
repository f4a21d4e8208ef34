"""What is known about a run's samples: views, pictures, texts, labels, columns, names.

Row i is row i of the run's ``labels.csv`` throughout. What comes with ids is joined by
them, never by position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sagl.features import tables
from sagl.features.files import read_labels
from sagl.features.manifest import MANIFEST
from sagl.features.readers import open_samples, reopen
from sagl.features.samples import Samples, Unreadable, check_readable
from sagl.features.split import read_files
from sagl.features.store import FeatureStore
from sagl.run import CONFIG, FEATURES, LABELS, SOURCE, check_part, read_config
from sagl.run_files import SavedNames, check_source
from sagl.schema import check, parse_json, read_json
from sagl.storage import sha256
from sagl.views import Views

__all__ = ["Inputs", "open_inputs", "with_samples"]

MISSING = "(missing)"
NAMES = "names.json"  # read from the run's directory when it lies there
_TEXT = 400  # characters of a text that are shown
_ID_COLUMNS = ("id", "sample", "path", "file")
# More values than this and a column of words is something to read, not to colour by.
_MOST_CATEGORIES = 500
# Whole numbers with so few values are codes: colours apart, not a scale.
_MOST_CODES = 20
_FORMAT, _VERSION = "sagl-names", 1


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
class Names:
    """What a person said about a run's clusters and samples."""

    clusters: Mapping[int, str] = field(default_factory=dict)  # by number, if named
    # Samples marked as wrong: the row in labels.csv and the id.
    wrong: Mapping[int, str] = field(default_factory=dict)
    run: str = ""  # checksum of the run they belong to

    def label_of(self, cluster: int) -> str:
        """What a cluster is called that nobody has named."""
        return f"Cluster {cluster}"

    def name_of(self, cluster: int) -> str:
        """What a cluster is called."""
        return self.clusters.get(cluster) or self.label_of(cluster)


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
    inputs = Inputs(_sample_ids(run / LABELS))
    n = len(inputs.ids)
    record = _source_record(run)
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
        names = run / NAMES if names is None else names
        given_names = read_names(names)
        n_clusters = int(config["settings"]["n_clusters"])
        check_names(given_names, names, run, n_clusters, inputs.ids)
        inputs = replace(inputs, names=given_names)
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
        labels = np.array([samples.labels[int(row)] for row in rows])
    return replace(inputs, ids=ids, samples=samples, sample_rows=rows, labels=labels)


def _sample_ids(path: Path) -> list[str]:
    ids = tables.read_columns(path, [None]).get("sample")
    if ids is None:
        raise ValueError(f"{path} is damaged: it has no column sample")
    return [one or "" for one in ids]


def _with_store(inputs: Inputs, place: Path, config: dict[str, Any]) -> Inputs:
    """Views and labels of a store, its rows put into the order of the run."""
    names = [view["name"] for view in config["views"]]
    joined = FeatureStore.open(place).join(names, "inner")
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


def _source_record(run: Path) -> dict[str, Any]:
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


def run_checksum(run: Path) -> str:
    """What tells a run from all others: its configuration names all other files."""
    return sha256(run / CONFIG)


def read_names(path: str | Path) -> Names:
    """Read the names and marks that the explorer of a report exported."""
    path = Path(path)
    check_readable(path)
    try:
        content = parse_json(path.read_text(encoding="utf-8-sig"))
        if content["format"] != _FORMAT:
            raise ValueError(f"its format is {content['format']!r}")
        version = content["version"]
        if version == _VERSION:
            check(SavedNames, content)
            clusters = {int(k): name for k, name in content["clusters"].items()}
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(
            f"{path}: not the names of a run ({type(error).__name__}: {error}); export "
            "the names again in the explorer of a report (Names as JSON)"
        ) from None
    if version != _VERSION:
        raise ValueError(
            f"{path}: of version {version!r}, this sagl reads {_VERSION}: upgrade sagl"
        )
    wrong = {mark["row"]: mark["sample"] for mark in content["wrong"]}
    return Names(clusters, wrong, content["run"])


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
        sample = ids[row] if 0 <= row < len(ids) else None
        if sample != name:
            actual = "not there" if sample is None else repr(sample)
            raise ValueError(
                f"{path}: row {row} is marked as {name!r}, but it is {actual}; give "
                "the same --store or --source as for the report they come from"
            )
