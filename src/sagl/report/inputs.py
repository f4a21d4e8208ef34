"""What a report is made from besides the run: views, samples, labels, names."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sagl.features.files import read_labels
from sagl.features.samples import Samples, Unreadable
from sagl.features.split import read_views
from sagl.report.columns import Column, read_columns
from sagl.report.names import FILE_NAME, Names, check_names, read_names
from sagl.report.thumbnails import first_words
from sagl.run import LABELS, read_config
from sagl.views import Views

STORE = "features"  # in the run's directory, when `sagl fit` extracted them itself
SOURCE = "source.json"  # where the samples are, written by `sagl fit`


@dataclass(frozen=True)
class Inputs:
    """What is known about the samples of a run; row i is row i of ``labels.csv``.

    Attributes
    ----------
    ids : sequence of str
        A name per sample; the row's number where nothing better is known.
    views : Views or None
        The views that the run was fitted on.
    samples : Samples or None
        Pictures or texts, in an order of their own.
    sample_rows : ndarray of int or None
        Which of ``samples`` each row is.
    labels : ndarray or None
        True classes. They only score.
    columns : tuple of Column
        What else is known, for colours and the panel.
    names : Names
        What people called the clusters.
    notes : tuple of str
        What could not be found, in words for the page.
    """

    ids: Sequence[str]
    views: Views | None = None
    samples: Samples | None = None
    sample_rows: NDArray[np.int64] | None = None
    labels: NDArray[Any] | None = None
    columns: tuple[Column, ...] = ()
    names: Names = field(default_factory=Names)
    notes: tuple[str, ...] = ()

    def sample(self, row: int) -> Any:
        """The picture or text of a row."""
        if self.samples is None or self.sample_rows is None:
            raise ValueError("no pictures or texts are known for this run")
        return self.samples[int(self.sample_rows[row])]

    def text(self, row: int) -> str:
        """The beginning of a row's text; empty where it cannot be read."""
        try:
            return first_words(str(self.sample(row)))
        except Unreadable:
            return ""


def open_inputs(
    run: Path,
    *,
    store: Path | None = None,
    views: Sequence[str] = (),
    source: str | None = None,
    labels: Path | None = None,
    columns: Path | None = None,
    names: Path | None = None,
) -> Inputs:
    """Open what the user named, and what lies in the run's directory.

    Without ``store`` and ``views`` the store in the run is used, if there is one, and
    without ``source`` the place that ``sagl fit`` wrote down.
    """
    config = read_config(run)
    if store is not None and views:
        raise ValueError("give either --store or --view, not both")
    found = Inputs(_ids(run))
    n = len(found.ids)
    written = _written_source(run)
    if views:
        found = replace(found, views=read_views(views))
        check_length(len(found.views or ()), n, "the views given by --view", run)
    elif store is not None:
        found = _with_store(found, run, store, config)
    else:
        found = _with_own_store(found, run, written, config)
    if source is not None:
        from sagl.features.readers import open_samples

        found = with_samples(found, open_samples(source), source)
    else:
        found = _with_own_samples(found, written)
    if labels is not None:
        truth = read_labels(labels)
        check_length(len(truth), n, str(labels), run)
        found = replace(found, labels=truth)
    if columns is not None:
        found = replace(found, columns=read_columns(columns, found.ids))
    return _with_names(found, run, names, config)


def check_length(length: int, n: int, what: str, run: Path) -> None:
    """Refuse what has not one entry per sample of the run."""
    if length != n:
        raise ValueError(
            f"{what}: {length:,} samples, but {run} was fitted on {n:,}; give those "
            "of the fit, in the same order"
        )


def with_samples(inputs: Inputs, samples: Samples, place: str) -> Inputs:
    """The inputs with pictures or texts, joined by id where ids are known."""
    if _numbered(inputs.ids) and len(samples.ids) == len(inputs.ids):
        rows = np.arange(len(samples.ids))
        found = replace(inputs, ids=list(samples.ids), sample_rows=rows)
    else:
        rows = positions(inputs.ids, samples.ids, place)
        found = replace(inputs, sample_rows=rows)
    if samples.labels is not None and inputs.labels is None:
        classes = samples.labels
        truth = np.array([classes[int(row)] for row in rows])
        found = replace(found, labels=truth)
    return replace(found, samples=samples)


def _ids(run: Path) -> list[str]:
    """What the samples are called in the run's table."""
    with (run / LABELS).open(encoding="utf-8", newline="") as file:
        return [line[0] for line in csv.reader(file)][1:]


def _written_source(run: Path) -> dict[str, Any]:
    """Where samples and features were when the run was fitted, if it says so."""
    try:
        about = json.loads((run / SOURCE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        raise ValueError(f"{run / SOURCE} is damaged; remove it") from None
    return about if isinstance(about, dict) else {}


def _with_store(
    inputs: Inputs, run: Path, store: Path, config: dict[str, Any]
) -> Inputs:
    """Views and labels of a store, its rows put into the order of the run."""
    from sagl.features.store import FeatureStore

    names = [view["name"] for view in config["views"]]
    joined = FeatureStore.open(store).join(names, "inner")
    if _numbered(inputs.ids):
        check_length(len(joined.ids), len(inputs.ids), str(store), run)
        ids, rows = list(joined.ids), np.arange(len(joined.ids))
    else:
        ids, rows = list(inputs.ids), positions(inputs.ids, joined.ids, str(store))
    in_order = len(rows) == len(joined.ids) and bool((np.diff(rows) == 1).all())
    views = joined.views if in_order else joined.views[rows]
    labels = None if joined.labels is None else joined.labels[rows]
    return replace(inputs, ids=ids, views=views, labels=labels)


def _with_own_store(
    inputs: Inputs, run: Path, written: dict[str, Any], config: dict[str, Any]
) -> Inputs:
    place = run / str(written.get("store", STORE))
    if "store" not in written and not place.exists():
        return inputs
    try:
        return _with_store(inputs, run, place, config)
    except (ValueError, OSError) as error:
        # The features may have moved since; the report is still worth making.
        return _noted(inputs, f"The features were not found: {error}")


def _with_own_samples(inputs: Inputs, written: dict[str, Any]) -> Inputs:
    if "reader" not in written:
        return inputs
    try:
        return with_samples(inputs, reopen(written), str(written["path"]))
    except (ValueError, KeyError, TypeError, OSError) as error:
        return _noted(inputs, f"Pictures and texts are not shown: {error}")


def _noted(inputs: Inputs, note: str) -> Inputs:
    return replace(inputs, notes=(*inputs.notes, " ".join(note.split())))


def positions(
    wanted: Sequence[str], there: Sequence[str], place: str
) -> NDArray[np.int64]:
    """Where each wanted id is among those that are there."""
    position = {name: i for i, name in enumerate(there)}
    missing = next((name for name in wanted if name not in position), None)
    if missing is not None:
        raise ValueError(
            f"{place}: it has {len(there):,} samples, and none with the id "
            f"{missing!r}; give what the run was fitted on"
        )
    return np.array([position[name] for name in wanted])


def _numbered(ids: Sequence[str]) -> bool:
    """Whether the samples have numbers instead of names."""
    return all(name == str(row) for row, name in enumerate(ids))


def reopen(about: dict[str, Any]) -> Samples:
    """The samples of which this is the description."""
    from sagl.features.readers import open_samples

    place = about["path"]
    options: tuple[str, ...] = ("split",)
    match about["reader"]:
        case "data set":
            place = f"{about['name']}:{place}"
        case "table":
            options = ("kind", "column", "id_column", "label_column")
        case "lines" | "file list" | "shards":
            options = ("kind",)
    return open_samples(place, **{name: about.get(name) for name in options})


def _with_names(
    inputs: Inputs, run: Path, path: Path | None, config: dict[str, Any]
) -> Inputs:
    if path is None:
        path = run / FILE_NAME
        if not path.is_file():
            return inputs
    names = read_names(path)
    n_clusters = int(config["settings"]["n_clusters"])
    check_names(names, path, run, n_clusters, inputs.ids)
    return replace(inputs, names=names)
