"""Views and labels on disk: named one by one, in a store, or in a known layout.

A directory to compare on holds ``train`` and, if there is one, ``test``; each of them
one file per view (the file's name is the view's) and ``labels`` in the same formats:

    pets/train/dino.npy  pets/train/clip.npy  pets/train/labels.npy
    pets/test/dino.npy   pets/test/clip.npy   pets/test/labels.npy

``train`` and ``test`` may be feature stores, and so may the directory itself: then the
fitted samples are scored. A store knows its labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sagl.features.files import (
    SUFFIXES,
    is_archive,
    parse_view_option,
    read_array,
    read_labels,
    views_in,
)
from sagl.features.manifest import is_store
from sagl.features.number_tables import (
    check_no_ids,
    check_same_index,
    read_identified,
)
from sagl.features.store import FeatureStore, Join, Joined, join_ids
from sagl.views import Views

_LABELS = "labels"


def read_views(options: Sequence[str]) -> Views:
    """The views of ``NAME=FILE`` options; what is wrong with one names its file."""
    return read_files(options, joinable=False).views


def read_files(
    options: Sequence[str],
    id_column: str | None = None,
    join: Join = "error",
    *,
    joinable: bool = True,
) -> Joined:
    """The same, in tables joined by the ids in a column; without, ids are numbers.

    ``joinable`` says whether an error may advise to name such a column.
    """
    files: dict[str, Path] = {}
    arrays: dict[str, Any] = {}
    ids: dict[str, list[str]] = {}
    complete = True  # no sample misses a view
    for option in options:
        name, path, key = parse_view_option(option)
        if name in arrays:
            raise ValueError(
                f"--view {option}: there is a view {name!r} already; name it "
                "differently with NAME=FILE"
            )
        files[name] = path
        if id_column is None:
            check_no_ids(path, key, joinable=joinable)
            arrays[name] = read_array(path, key)
        else:
            ids[name], arrays[name] = read_identified(path, key, id_column)
        arrays[name].flags.writeable = False  # so that it need not be checked again
        try:
            one = Views({name: arrays[name]})
            one.check_numbers()
            complete &= one.present is None
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    if id_column is None:
        check_same_index(files.values())
    else:
        samples, rows = join_ids(ids, files, join)
        arrays = {name: _rows_of(array, rows[name]) for name, array in arrays.items()}
        complete &= all(of is None or (of >= 0).all() for of in rows.values())
    views = Views(arrays)
    if id_column is None:
        samples = [f"{row}" for row in range(len(views))]
    views.mark_checked(complete=complete)
    views.check_values(missing=True)
    return Joined(samples, views, None, {})


def holds_features(path: Path) -> bool:
    """Whether it is a store or an archive, and not samples for a backbone."""
    return is_store(path) or is_archive(path)


def _rows_of(array: NDArray[Any], rows: NDArray[np.int64] | None) -> NDArray[Any]:
    """These rows, or all; of −1 a row of NaN."""
    if rows is None:
        return array
    taken: NDArray[Any] = array[rows]
    if (rows < 0).any():
        taken = taken.astype(np.result_type(taken.dtype, np.float32), copy=False)
        taken[rows < 0] = np.nan
    return taken


def read_input(
    store: str | Path | None,
    files: Sequence[str] | None,
    names: Sequence[str] | None = None,
    join: Join = "error",
    id_column: str | None = None,
) -> Joined:
    """Views of a store, of an archive, or of ``NAME=FILE`` options: one of these."""
    if store is not None and not files and is_archive(Path(store)):
        return _read_archive(Path(store), names)
    if (store is None) == (not files):
        raise ValueError("give a feature store, or views with --view; one of the two")
    if files:
        return read_files(files, id_column, join)
    return open_input(Path(str(store)), names, join)


def _read_archive(path: Path, names: Sequence[str] | None) -> Joined:
    try:
        return read_files(views_in(path, names))
    except ValueError as error:
        if names is not None:
            raise
        fault = f"{error}; --views NAME,… takes some of its arrays, by name"
        raise ValueError(fault) from None


def open_input(path: Path, names: Sequence[str] | None, join: Join) -> Joined:
    """Views of a store; their source is the reader's record, store and views."""
    if path.suffix in SUFFIXES and path.is_file():
        raise ValueError(f"{path} is a file of features: --view NAME={path}")
    if path.is_dir() and not is_store(path):
        raise ValueError(
            f"{path} is not a feature store; make one with sagl extract {path}"
        )
    from sagl.features.readers import absolute

    store = FeatureStore.open(path)
    joined = store.join(names, join)
    store.check_files(joined.views.names)
    place = {"store": str(path.resolve()), "views": list(joined.views.names)}
    return replace(joined, source={**absolute(joined.source), **place})


def true_labels(given: Joined, file: Path | None) -> NDArray[Any]:
    """Labels to score with: those of a file, else the store's own."""
    labels = given.labels if file is None else read_labels(file)
    if labels is None:
        raise ValueError("there are no labels to score with; give --labels")
    return labels


@dataclass(frozen=True)
class Part:
    """Files of some samples: ``NAME=FILE`` of each view, and the labels if known.

    Of a feature store, its path and the names of the views.
    """

    views: tuple[str, ...]
    labels: str | None = None
    store: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The views' names."""
        if self.store is not None:
            return self.views
        return tuple(parse_view_option(option)[0] for option in self.views)

    @property
    def files(self) -> list[Path]:
        """All files that ``read`` reads."""
        if self.store is not None:
            return FeatureStore.open(self.store).files(self.views)
        named = [parse_view_option(option)[1] for option in self.views]
        return named if self.labels is None else [*named, Path(self.labels)]

    def check_files(self) -> None:
        """Refuse a store that is damaged; other files are whole if they can be read."""
        if self.store is not None:
            FeatureStore.open(self.store).check_files(self.views)

    def read(self) -> tuple[Views, NDArray[Any] | None]:
        """Views and labels, as many of the one as of the other."""
        if self.store is not None:
            joined = FeatureStore.open(self.store).join(self.views, "inner")
            return joined.views, joined.labels
        views = read_views(self.views)
        labels = None if self.labels is None else read_labels(self.labels)
        if labels is not None and len(labels) != len(views):
            raise ValueError(
                f"{self.labels}: {len(labels)} labels for {len(views)} samples"
            )
        return views, labels


@dataclass(frozen=True)
class Source:
    """What is compared on. Without a test part the fitted samples are scored."""

    name: str
    train: Part
    test: Part | None = None

    @property
    def scored(self) -> Part:
        """The part whose samples are scored."""
        return self.train if self.test is None else self.test


def find_source(directory: Path, views: Sequence[str] | None = None) -> Source:
    """A directory with ``train`` and perhaps ``test`` in it, or a feature store.

    ``views`` picks some of the views, in this order; by default all, by name.
    """
    name, train, test = (
        directory.resolve().name,
        directory / "train",
        directory / "test",
    )
    if is_store(directory):
        return Source(name, _find_part(directory, views))
    if not train.is_dir():
        raise ValueError(
            f"{directory}: there is no directory train in it; expected train/VIEW.npy, "
            "train/labels.npy and perhaps the same under test, or a feature store"
        )
    fitted = _find_part(train, views)
    return Source(
        name, fitted, _find_part(test, fitted.names) if test.is_dir() else None
    )


def _find_part(directory: Path, wanted: Sequence[str] | None) -> Part:
    files: dict[str, Path] = {}
    if is_store(directory):
        known = list(FeatureStore.open(directory))
    else:
        for path in sorted(directory.iterdir()):
            if path.suffix.lower() in SUFFIXES and not path.name.startswith("."):
                if path.stem in files:
                    raise ValueError(
                        f"{path}: {files[path.stem].name} has the same name"
                    )
                files[path.stem] = path
        known = [name for name in files if name != _LABELS]
    if not known:
        raise ValueError(f"{directory}: no view in it; expected files such as clip.npy")
    names = known if wanted is None else list(wanted)
    for name in names:
        if name not in known:
            raise ValueError(
                f"{directory}: there is no view {name!r}, only {', '.join(known)}"
            )
    if not files:
        return Part(tuple(names), store=str(directory))
    labels = files.get(_LABELS)
    options = tuple(f"{name}={files[name]}" for name in names)
    return Part(options, None if labels is None else str(labels))
