"""The feature store: features of many samples through several models, on disk.

Reading: views joined by the ids of their samples. Writing is in ``store_write``,
checking, merging and exporting in ``store_tools``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sagl.features.manifest import (
    CURE,
    MANIFEST,
    Manifest,
    Shard,
    StoredView,
    is_store,
    line_fault,
    make_plan,
    read_skipped,
    sorted_order,
)
from sagl.features.samples import file_error, reading, string_array
from sagl.features.sharded import ShardedArray
from sagl.features.store_write import begin, finish, piece_rows, unfinished
from sagl.schema import CHANGED
from sagl.storage import sha256
from sagl.views import Views

__all__ = [
    "FeatureStore",
    "Join",
    "Joined",
    "OverlapWarning",
    "ShardedArray",
    "is_store",
    "read_skipped",
    "write_view",
]

Rows = NDArray[np.int64]
Join = Literal["error", "inner", "outer"]


class OverlapWarning(UserWarning):
    """Views hold different samples, and only those in all of them are taken."""


@dataclass(frozen=True)
class Joined:
    """Samples of several views: those in all of them, or in any."""

    ids: list[str]  # in the order of the rows
    views: Views  # on disk until rows are asked for
    labels: NDArray[np.str_] | None  # if the store knows them, for evaluation alone
    source: dict[str, Any]  # where the samples came from


def join_ids(
    ids: Mapping[str, list[str]], places: Mapping[str, Path], join: Join
) -> tuple[list[str], dict[str, Rows | None]]:
    """Ids that all views have, in the order of the first, and their rows in each.

    None is all rows as they are. With ``outer`` the ids that any view has, sorted; −1
    is a row that is not there. ``places`` say where each view comes from.
    """
    if join not in get_args(Join):
        raise ValueError(f"join must be error, inner or outer; got {join!r}")
    sets: list[list[str]] = []  # the different ones
    for of in ids.values():
        if of not in sets:
            sets.append(of)
    kept = sets[0]
    if join == "outer" and len(sets) > 1:
        kept = sorted(set(chain.from_iterable(sets)))
    elif len(sets) > 1:
        shared = set(kept).intersection(*sets)
        kept = [one for one in kept if one in shared]
        _check_shared(ids, shared, places, join)
    rows = [None if of == kept else _rows_in(of, kept) for of in sets]
    return kept, {name: rows[sets.index(of)] for name, of in ids.items()}


def _rows_in(ids: list[str], wanted: list[str]) -> Rows:
    row = {sample: i for i, sample in enumerate(ids)}
    return np.array([row.get(sample, -1) for sample in wanted], dtype=np.int64)


def _check_shared(
    ids: Mapping[str, list[str]],
    shared: set[str],
    places: Mapping[str, Path],
    join: Join,
) -> None:
    """Refuse views of different samples, or warn that some are left out."""
    pairs = ((name, one) for name, of in ids.items() for one in of)
    lone = next(((name, one) for name, one in pairs if one not in shared), None)
    if lone is None:
        return
    counts = ", ".join(f"{name} {len(of):,}" for name, of in ids.items())
    all_ = f"{len(shared):,} are in all of them"
    overlap = f"the views hold different samples: {counts}; {all_}"
    has, one = lone
    lacking = next(name for name, of in ids.items() if one not in of)
    if join == "error" or not shared:
        inner = "join 'inner' takes those" if shared else "nothing can be joined so"
        raise ValueError(
            f"{places[lacking]}: {overlap}, and {one!r} of {has!r} is not in "
            f"{lacking!r}: {inner}, 'outer' keeps all, with views missing"
        )
    warnings.warn(f"{places[lacking]}: {overlap} and taken", OverlapWarning, 5)


class FeatureStore(Mapping[str, ShardedArray]):
    """Features of the same samples through several models, in a directory.

    A mapping of the views' names to their matrices, so ``SAGL(10).fit(store)`` and
    ``Views(store)`` work. Matrices stay on disk until rows of them are asked for.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from sagl.features.store import FeatureStore, write_view
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_view(folder, "dino", ["b", "a"], np.float32([[1, 1], [2, 2]]))
    ...     write_view(folder, "clip", ["a", "b"], np.float32([[3], [4]]))
    ...     store = FeatureStore.open(folder)
    ...     store, store.ids, store["dino"][:].tolist(), store["clip"][:].tolist()
    (FeatureStore(2 samples: clip 1, dino 2), ['a', 'b'], [[2.0, 2.0], [1.0, 1.0]], \
[[3.0], [4.0]])
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self._ids: dict[str, list[str]] = {}  # by the key of the samples

    @classmethod
    def open(cls, path: str | Path) -> FeatureStore:
        """Open the store in a directory; only its manifest is read."""
        return cls(Path(path), Manifest.open(Path(path)))

    @property
    def names(self) -> tuple[str, ...]:
        """The views' names, in order."""
        return tuple(self.manifest.views)

    @cached_property
    def ids(self) -> list[str]:
        """Ids of the samples that are in every view, in the order of the rows."""
        return self.ids_in_all(self.names)

    def ids_in_all(self, names: Sequence[str]) -> list[str]:
        """Ids of the samples that are in each of these views."""
        keys = {self.manifest.views[name].samples: name for name in names}
        first, *others = map(self.ids_of, keys.values())
        return sorted(set(first).intersection(*others)) if others else first

    def ids_of(self, name: str) -> list[str]:
        """Ids of one view's rows."""
        key = self.manifest.views[name].samples
        if key not in self._ids:
            self._ids[key] = self.manifest.ids(key)
        return self._ids[key]

    def join(self, names: Sequence[str] | None = None, join: Join = "error") -> Joined:
        """Views with their ids and labels.

        Parameters
        ----------
        names : sequence of str, optional
            Which views, in this order; by default all.
        join : {"error", "inner", "outer"}, default="error"
            What to do about samples that are not in every one of these views: refuse,
            leave them out with an ``OverlapWarning``, or keep them, with rows of NaN
            in the views that they miss.
        """
        chosen = self.names if names is None else tuple(names)
        for name in chosen:
            if name not in self.manifest.views:
                raise ValueError(f"{self.path}: {self._no_view(name)}")
        if not chosen or len(set(chosen)) < len(chosen):
            raise ValueError(
                f"{self.path}: choose each view once; got {', '.join(chosen)}"
            )
        ids, rows = self._join(chosen, join)
        known: dict[str, str] = {}
        for key, name in {self.manifest.views[n].samples: n for n in chosen}.items():
            labels = self.manifest.labels(key)
            if labels is not None:
                known = dict(zip(self.ids_of(name), labels, strict=True)) | known
        labelled = None
        if known and all(sample in known for sample in ids):
            labelled = string_array(self.path, [known[sample] for sample in ids])
        views = Views({name: self._array(name, rows[name]) for name in chosen})
        first = self.manifest.views[chosen[0]].samples
        return Joined(ids, views, labelled, self.manifest.samples[first].source)

    def views(self, names: Sequence[str] | None = None, join: Join = "error") -> Views:
        """Row-aligned views; see ``join``."""
        return self.join(names, join).views

    def _join(
        self, names: Sequence[str], join: Join
    ) -> tuple[list[str], dict[str, Rows | None]]:
        ids = {name: self.ids_of(name) for name in names}
        return join_ids(ids, dict.fromkeys(names, self.path), join)

    def _array(self, name: str, rows: Rows | None) -> ShardedArray:
        view, inside = self.manifest.views[name], self.manifest.inside
        files = [(inside(shard.file), shard.rows) for shard in view.shards]
        return ShardedArray(files, view.dim, view.dtype, rows)

    def __getitem__(self, name: str) -> ShardedArray:
        if name not in self.manifest.views:
            raise KeyError(self._no_view(name))
        # As a mapping the store promises that row i of all views is one sample.
        return self._array(name, self._join(self.names, "error")[1][name])

    def files(self, names: Sequence[str]) -> list[Path]:
        """The manifest, and the features of these views."""
        arrays = (self._array(name, None) for name in names)
        features = [path for array in arrays for path, _ in array.files]
        return [self.path / MANIFEST, *features]

    def check_files(self, names: Sequence[str]) -> None:
        """Refuse views of which a file is not as it was written.

        What is read row by row later on is not compared with anything.
        """
        for fault in self.faults(names):
            raise fault

    def faults(
        self, names: Sequence[str], *, values: bool = False
    ) -> Iterator[ValueError]:
        """What is not as it was written; all files of these views are read.

        With ``values``, those that are NaN or infinite are faults, too.
        """
        views = [self.manifest.views[name] for name in names]
        checks = [
            partial(self._sample_faults, key)
            for key in dict.fromkeys(view.samples for view in views)
        ]
        checks += [
            partial(self._shard_faults, view, shard, values)
            for view in views
            for shard in view.shards
        ]
        for look in checks:
            try:
                yield from look()
            except ValueError as error:
                yield error

    def _sample_faults(self, key: str) -> Iterator[ValueError]:
        for read in (self.manifest.ids, self.manifest.labels):
            try:
                read(key)
            except ValueError as error:
                yield error

    def _shard_faults(
        self, view: StoredView, shard: Shard, values: bool
    ) -> Iterator[ValueError]:
        path = self.manifest.inside(shard.file)
        with reading(path, CURE):
            changed = sha256(path) != shard.sha256
        if changed:
            yield file_error(path, f"{CHANGED}; {CURE}")
        if values:
            array = ShardedArray([(path, shard.rows)], view.dim, view.dtype)[:]
            bad = ~np.isfinite(array)
            if bad.any():
                row, column = np.argwhere(bad)[0].tolist()
                yield file_error(
                    path,
                    f"row {row}, column {column} is {array[row, column]}; "
                    f"{bad.any(axis=1).sum()} of its rows hold NaN or infinity",
                )

    def _no_view(self, name: str) -> str:
        return f"no view {name!r}; there are {', '.join(self.names)}"

    def __iter__(self) -> Iterator[str]:
        return iter(self.manifest.views)

    def __len__(self) -> int:
        return len(self.manifest.views)

    def __repr__(self) -> str:
        views = self.manifest.views.items()
        listed = ", ".join(f"{name} {view.dim}" for name, view in views)
        counts = sorted({view.rows for _, view in views})
        samples = " to ".join(f"{n}" for n in (counts[0], counts[-1])[: len(counts)])
        return f"FeatureStore({samples} samples: {listed})"

    def describe(self) -> dict[str, Any]:
        """What there is, as JSON: ``sagl store info``."""
        samples = self.manifest.samples.values()
        views = {
            name: {
                "model": view.backbone.get("model"),
                "rows": view.rows,
                "dim": view.dim,
                "dtype": view.dtype,
                "files": len(view.shards),
                "bytes": view.rows * view.dim * np.dtype(view.dtype).itemsize,
                "backbone": view.backbone,
            }
            for name, view in self.manifest.views.items()
        }
        return {
            "store": str(self.path),
            "samples": len(self.ids),
            "labelled": any(s.labels_sha256 is not None for s in samples),
            "skipped": len({sample for sample, _ in read_skipped(self.path)}),
            "unfinished": [view.name for view in unfinished(self.path)],
            "sources": [s.source for s in samples],
            "views": views,
        }


def write_view(
    store: str | Path,
    name: str,
    ids: Sequence[str],
    features: Any,
    *,
    labels: Sequence[str] | None = None,
    dtype: Any = None,
    backbone: Mapping[str, Any] | None = None,
    source: Mapping[str, Any] | None = None,
    batch_size: int | None = None,
) -> None:
    """Add features that are there already to a store, which is made if need be.

    Parameters
    ----------
    ids, labels : sequence of str
        One per row; labels are for evaluation alone. The store sorts rows by id.
    features : array of shape (n, dim)
        Read in pieces: it may be a memory map.
    dtype : optional
        Of the stored features; by default that of the array.
    backbone, source, batch_size : optional
        What to remember about the model and about the samples, as JSON, and about how
        many of them were embedded together.
    """
    if len(features.shape) != 2 or len(features) != len(ids):
        raise ValueError(
            f"view {name!r}: {len(ids)} ids for features of shape {features.shape}; "
            "one id per row is needed"
        )
    for i, sample in enumerate(ids):
        if fault := line_fault(sample):
            raise ValueError(f"view {name!r}: the id of row {i}, {sample!r}: {fault}")
    order = np.array(sorted_order(ids), dtype=np.int64)
    sorted_ids = [ids[i] for i in order]
    sorted_labels = None if labels is None else [labels[i] for i in order]
    plan = make_plan(
        sorted_ids,
        backbone or {},
        features.dtype if dtype is None else dtype,
        features.shape[1],
        piece_rows(len(ids)),
        batch_size,
    )
    view = begin(Path(store), name, plan, sorted_ids, sorted_labels, source or {})
    if view is not None:
        for piece in view.pending:
            rows = order[view.samples_of(piece)]
            view.write(piece, np.asarray(features[rows]), [])
        finish(view.store, name)
