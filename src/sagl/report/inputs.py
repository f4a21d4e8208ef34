"""What a report is made from besides the run: views, pictures, texts, labels, names."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sagl.features.files import read_labels
from sagl.features.samples import Samples, Unreadable
from sagl.features.split import read_views
from sagl.report.annotations import (
    NAMES,
    Column,
    Names,
    check_names,
    read_columns,
    read_names,
)
from sagl.report.style import load
from sagl.run import FEATURES, LABELS, SOURCE, read_config
from sagl.views import Views

__all__ = ["Inputs", "open_inputs", "with_samples"]

SIDE = 80  # pixels of a thumbnail's longer side
_PIXELATED = 40  # pictures up to this size are kept pixel by pixel
_CLEAR = ("LA", "PA", "RGBA", "P")  # modes that may be transparent
_QUALITY = 72
_TEXT = 400  # characters of a text that are shown


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
            return first_words(str(self.sample(row)))
        except Unreadable:
            return ""

    def noted(self, note: str) -> Inputs:
        """The same with one more note."""
        return replace(self, notes=(*self.notes, " ".join(note.split())))


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
    with (run / LABELS).open(encoding="utf-8", newline="") as file:
        inputs = Inputs([line[0] for line in csv.reader(file)][1:])
    n = len(inputs.ids)
    record = _source_record(run)
    if views:
        given = read_views(views)
        check_length(len(given), n, "the views given by --view", run)
        inputs = replace(inputs, views=given)
    elif store is not None:
        inputs = _with_store(inputs, run, store, config)
    elif "store" in record or (run / FEATURES).exists():
        place = run / str(record.get("store", FEATURES))
        try:
            inputs = _with_store(inputs, run, place, config)
        except (ValueError, OSError) as error:
            # The features may have moved since; the report is still worth making.
            inputs = inputs.noted(f"The features were not found: {error}")
    if source is not None:
        from sagl.features.readers import open_samples

        inputs = with_samples(inputs, open_samples(source), source)
    elif "reader" in record:
        from sagl.features.readers import reopen

        try:
            inputs = with_samples(inputs, reopen(record), str(record["path"]))
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


def check_length(length: int, n: int, what: str, run: Path) -> None:
    """Refuse what has not one entry per sample of the run."""
    if length != n:
        raise ValueError(
            f"{what}: {length:,} samples, but {run} was fitted on {n:,}; give those "
            "of the fit, in the same order"
        )


def with_samples(inputs: Inputs, samples: Samples, place: str) -> Inputs:
    """The inputs with pictures or texts, joined by id where ids are known."""
    ids: Sequence[str] = inputs.ids
    if _numbered(ids) and len(samples.ids) == len(ids):
        ids, rows = list(samples.ids), np.arange(len(ids))
    else:
        rows = _positions(ids, samples.ids, place)
    labels = inputs.labels
    if samples.labels is not None and labels is None:
        labels = np.array([samples.labels[int(row)] for row in rows])
    return replace(inputs, ids=ids, samples=samples, sample_rows=rows, labels=labels)


def _source_record(run: Path) -> dict[str, Any]:
    """Where samples and features were when the run was fitted, if it says so."""
    try:
        record = json.loads((run / SOURCE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        raise ValueError(f"{run / SOURCE} is damaged; remove it") from None
    return record if isinstance(record, dict) else {}


def _with_store(
    inputs: Inputs, run: Path, place: Path, config: dict[str, Any]
) -> Inputs:
    """Views and labels of a store, its rows put into the order of the run."""
    from sagl.features.store import FeatureStore

    names = [view["name"] for view in config["views"]]
    joined = FeatureStore.open(place).join(names, "inner")
    ids: Sequence[str] = inputs.ids
    if _numbered(ids):
        check_length(len(joined.ids), len(ids), str(place), run)
        ids = list(joined.ids)
    rows = _positions(ids, joined.ids, str(place))
    in_order = len(rows) == len(joined.ids) and bool((np.diff(rows) == 1).all())
    views = joined.views if in_order else joined.views[rows]
    labels = None if joined.labels is None else joined.labels[rows]
    return replace(inputs, ids=ids, views=views, labels=labels)


def _positions(
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


class Thumbnails(NamedTuple):
    """Encoded pictures by row, whether pixels stay squares, how many were unreadable.

    They are WebP, without loss where pictures have a few pixels only, or else PNG.
    """

    images: dict[int, bytes]
    pixelated: bool
    unreadable: int


def make_thumbnails(rows: Iterable[int], sample: Callable[[int], Any]) -> Thumbnails:
    """Thumbnails of the given rows; what cannot be read is left out and counted."""
    webp = load("PIL.features").check("webp")  # as every wheel of Pillow has it
    images: dict[int, bytes] = {}
    unreadable = 0
    pixelated = True
    for row in rows:
        try:
            image = sample(row)
        except Unreadable:
            unreadable += 1
            continue
        tiny = max(image.size) <= _PIXELATED
        pixelated &= tiny
        image = image.convert("RGBA" if tiny and image.mode in _CLEAR else "RGB")
        image.thumbnail((SIDE, SIDE))
        file = io.BytesIO()
        if webp:
            image.save(file, "WEBP", lossless=tiny, exact=tiny, quality=_QUALITY)
        else:
            image.save(file, "PNG")
        images[row] = file.getvalue()
    return Thumbnails(images, pixelated and bool(images), unreadable)


def data_address(picture: bytes) -> str:
    """A thumbnail as an address that needs no network."""
    form = "png" if picture.startswith(b"\x89PNG") else "webp"
    return f"data:image/{form};base64,{base64.b64encode(picture).decode()}"


def first_words(text: str, limit: int = _TEXT) -> str:
    """The beginning of a text, marked when it goes on.

    Examples
    --------
    >>> first_words("a long story", 6)
    'a long…'
    """
    return text if len(text) <= limit else text[:limit].rstrip() + "…"
