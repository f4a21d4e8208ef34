"""The feature store: features of many samples through several models, on disk.

Reading: views joined by the ids of their samples. Writing is in ``store_write``,
checking, merging and exporting in ``store_tools``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sagl.features.manifest import (
    Manifest,
    is_store,
    line_fault,
    make_plan,
    read_skipped,
    sorted_order,
)
from sagl.features.samples import file_error, string_array
from sagl.features.sharded import CURE, ShardedArray
from sagl.features.store_write import begin, finish, piece_rows, unfinished
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

Array = NDArray[Any]
Rows = NDArray[np.int64]
Join = Literal["error", "inner", "outer"]


class OverlapWarning(UserWarning):
    """Views hold different samples, and only those in all of them are taken."""


@dataclass(frozen=True)
class Joined:
    """Samples of several views of a store: those in all of them, or in any."""

    ids: list[str]  # in the order of the rows
    views: Views  # on disk until rows are asked for
    labels: NDArray[np.str_] | None  # if the store knows them, for evaluation alone
    source: dict[str, Any]  # where the samples came from


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
        self._ids: dict[str, list[str]] = {}

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

    def ids_of(self, name: str) -> list[str]:
        """Ids of one view's rows."""
        return self._ids_in(self.manifest.views[name].samples)

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
        self._check_overlap(chosen, join)
        keys = self._keys(chosen)
        ids = self.ids_in_all(chosen)
        if join == "outer":
            ids = sorted({one for key in keys for one in self._ids_in(key)})
        known: dict[str, str] = {}
        for key in keys:
            if (lines := self.manifest.labels(key)) is not None:
                known = dict(zip(self._ids_in(key), lines, strict=True)) | known
                path = self.manifest.labels_file(key)
        labels = None
        if known and all(sample in known for sample in ids):
            labels = string_array(path, [known[sample] for sample in ids])
        arrays = {name: self._array(name, ids) for name in chosen}
        source = self.manifest.samples[keys[0]].source
        return Joined(ids, Views(arrays), labels, source)

    def views(self, names: Sequence[str] | None = None, join: Join = "error") -> Views:
        """Row-aligned views; see ``join``."""
        return self.join(names, join).views

    def __getitem__(self, name: str) -> ShardedArray:
        if name not in self.manifest.views:
            raise KeyError(self._no_view(name))
        # As a mapping the store promises that row i of all views is one sample.
        self._check_overlap(self.names, "error")
        return self._array(name)

    def _no_view(self, name: str) -> str:
        return f"no view {name!r}; there are {', '.join(self.names)}"

    def __iter__(self) -> Iterator[str]:
        return iter(self.manifest.views)

    def __len__(self) -> int:
        return len(self.manifest.views)

    def __repr__(self) -> str:
        views = self.manifest.views.items()
        listed = ", ".join(f"{name} {view.plan.dim}" for name, view in views)
        counts = sorted({view.rows for _, view in views})
        samples = " to ".join(f"{n}" for n in (counts[0], counts[-1])[: len(counts)])
        return f"FeatureStore({samples} samples: {listed})"

    def describe(self) -> dict[str, Any]:
        """What there is, as JSON: ``sagl store info``."""
        samples = self.manifest.samples.values()
        views = {
            name: {
                "model": (plan := view.plan).backbone.get("model"),
                "rows": view.rows,
                "dim": plan.dim,
                "dtype": plan.dtype,
                "files": len(view.shards),
                "bytes": view.rows * plan.dim * np.dtype(plan.dtype).itemsize,
                "backbone": plan.backbone,
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

    def _ids_in(self, key: str) -> list[str]:
        if key not in self._ids:
            self._ids[key] = self.manifest.ids(key)
        return self._ids[key]

    def _check_overlap(self, names: Sequence[str], join: Join) -> None:
        if join not in get_args(Join):
            raise ValueError(f"join must be error, inner or outer; got {join!r}")
        if join == "outer" or len(self._keys(names)) == 1:
            return
        counts = ", ".join(
            f"{name} {self.manifest.views[name].rows:,}" for name in names
        )
        common = len(self.ids_in_all(names))
        overlap = (
            f"{self.path}: the views hold different samples: {counts}; {common:,} are "
            "in all of them"
        )
        if join == "error" or common == 0:
            inner = "join 'inner' takes those" if common else "nothing can be joined so"
            cure = f"{inner}, 'outer' keeps all, with views missing"
            raise ValueError(f"{overlap}: {cure}")
        warnings.warn(f"{overlap} and taken", OverlapWarning, stacklevel=4)

    def _keys(self, names: Sequence[str]) -> list[str]:
        """The different sets of samples of these views, in order."""
        return list(dict.fromkeys(self.manifest.views[name].samples for name in names))

    def ids_in_all(self, names: Sequence[str]) -> list[str]:
        """Ids of the samples that are in each of these views."""
        first, *others = map(self._ids_in, self._keys(names))
        return sorted(set(first).intersection(*others)) if others else first

    def _array(self, name: str, ids: list[str] | None = None) -> ShardedArray:
        """A view's features, all or those of some samples."""
        view = self.manifest.views[name]
        if (n := len(self._ids_in(view.samples))) != view.rows:
            fault = f"view {name!r} has {view.rows:,} rows and {n:,} ids"
            raise file_error(self.path, f"{fault}; {CURE}")
        inside = self.manifest.inside
        files = [(inside(shard.file), shard.rows) for shard in view.shards]
        array = ShardedArray(files, view.plan.dim, view.plan.dtype)
        if ids is None or len(ids) == view.rows:  # a subset of as many is the set
            return array
        row = {sample: i for i, sample in enumerate(self._ids_in(view.samples))}
        rows = np.array([row.get(sample, -1) for sample in ids], dtype=np.int64)
        return ShardedArray(files, view.plan.dim, view.plan.dtype, rows)


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
        for piece in view.pending():
            rows = order[view.samples_of(piece)]
            view.write(piece, np.asarray(features[rows]), [])
        finish(view.store, name)
