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
from typing import Any

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
from sagl.features.sharded_array import ShardedArray
from sagl.features.store_tools import Join, export, merge, verify
from sagl.features.store_write import begin, finish, piece_rows, unfinished
from sagl.views import Views

__all__ = [
    "FeatureStore",
    "Join",
    "Joined",
    "OverlapWarning",
    "ShardedArray",
    "export",
    "is_store",
    "merge",
    "read_skipped",
    "verify",
    "write_view",
]


class OverlapWarning(UserWarning):
    """Views hold different samples, and only those in all of them are taken."""


@dataclass(frozen=True)
class Joined:
    """Samples that several views of a store have in common."""

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
        path = Path(path)
        return cls(path, Manifest.open(path))

    @property
    def names(self) -> tuple[str, ...]:
        """The views' names, in order."""
        return tuple(self.manifest.views)

    @cached_property
    def ids(self) -> list[str]:
        """Ids of the samples that are in every view, in the order of the rows."""
        return self._common(self.names)

    def join(self, names: Sequence[str] | None = None, join: Join = "error") -> Joined:
        """Views with their ids and labels.

        Parameters
        ----------
        names : sequence of str, optional
            Which views, in this order; by default all.
        join : {"error", "inner"}, default="error"
            What to do about samples that are not in every one of these views: refuse,
            or leave them out with an ``OverlapWarning``.
        """
        chosen = self._checked(names)
        self._check_overlap(chosen, join)
        ids = self._common(chosen)
        arrays = {name: self._array(name, ids) for name in chosen}
        return Joined(ids, Views(arrays), *self._about(chosen, ids))

    def views(self, names: Sequence[str] | None = None, join: Join = "error") -> Views:
        """Row-aligned views; see ``join``."""
        return self.join(names, join).views

    def __getitem__(self, name: str) -> ShardedArray:
        if name not in self.manifest.views:
            raise KeyError(f"no view {name!r}; there are {', '.join(self.names)}")
        # As a mapping the store promises that row i of all views is one sample.
        self._check_overlap(self.names, "error")
        return self.manifest.views[name].array(self.path)

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
        views = {}
        for name, view in self.manifest.views.items():
            plan = view.plan
            views[name] = {
                "model": plan.backbone.get("model"),
                "rows": view.rows,
                "dim": plan.dim,
                "dtype": plan.dtype,
                "files": len(view.shards),
                "bytes": view.rows * plan.dim * np.dtype(plan.dtype).itemsize,
                "backbone": plan.backbone,
            }
        samples = self.manifest.samples.values()
        return {
            "store": str(self.path),
            "samples": len(self.ids),
            "labelled": any(s.labels_sha256 is not None for s in samples),
            "skipped": len({sample for sample, _ in read_skipped(self.path)}),
            "unfinished": [view.name for view in unfinished(self.path)],
            "sources": [s.source for s in samples],
            "views": views,
        }

    def ids_of(self, name: str) -> list[str]:
        """Ids of one view's rows."""
        return self._ids_in(self.manifest.views[name].samples)

    def _ids_in(self, key: str) -> list[str]:
        if key not in self._ids:
            self._ids[key] = self.manifest.ids(self.path, key)
        return self._ids[key]

    def _checked(self, names: Sequence[str] | None) -> tuple[str, ...]:
        if names is None:
            return self.names
        for name in names:
            if name not in self.manifest.views:
                raise ValueError(
                    f"{self.path}: there is no view {name!r}; there are "
                    f"{', '.join(self.names)}"
                )
        if not names or len(set(names)) < len(names):
            raise ValueError(
                f"{self.path}: choose each view once; got {', '.join(names) or 'none'}"
            )
        return tuple(names)

    def _check_overlap(self, names: Sequence[str], join: Join) -> None:
        if join not in ("error", "inner"):
            raise ValueError(f"join must be 'error' or 'inner'; got {join!r}")
        if len(self._keys(names)) == 1:
            return
        rows = {name: self.manifest.views[name].rows for name in names}
        counts = ", ".join(f"{name} {n:,}" for name, n in rows.items())
        common = len(self._common(names))
        overlap = (
            f"{self.path}: the views hold different samples: {counts}; {common:,} are "
            "in all of them"
        )
        if join == "error" or common == 0:
            cure = "join 'inner' takes those" if common else "nothing can be joined"
            raise ValueError(f"{overlap}: {cure}")
        warnings.warn(f"{overlap} and taken", OverlapWarning, stacklevel=4)

    def _keys(self, names: Sequence[str]) -> list[str]:
        """The different sets of samples of these views, in order."""
        return list(dict.fromkeys(self.manifest.views[name].samples for name in names))

    def _common(self, names: Sequence[str]) -> list[str]:
        first, *others = self._keys(names)
        ids = self._ids_in(first)
        for key in others:
            there = set(self._ids_in(key))
            ids = [sample for sample in ids if sample in there]
        return ids

    def _array(self, name: str, ids: list[str]) -> ShardedArray:
        view = self.manifest.views[name]
        array = view.array(self.path)
        if len(ids) == view.rows:  # a subset of as many is the set itself
            return array
        row = {sample: i for i, sample in enumerate(self._ids_in(view.samples))}
        return array.select(np.array([row[sample] for sample in ids], dtype=np.int64))

    def _about(
        self, names: Sequence[str], ids: list[str]
    ) -> tuple[NDArray[np.str_] | None, dict[str, Any]]:
        """Labels of these samples, and their source, from the first that has any."""
        keys = self._keys(names)
        source = self.manifest.samples[keys[0]].source
        for key in keys:
            labels = self.manifest.labels(self.path, key)
            if labels is not None:
                known = dict(zip(self._ids_in(key), labels, strict=True))
                return np.array([known[sample] for sample in ids]), source
        return None, source


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
) -> None:
    """Add features that are there already to a store, which is made if need be.

    Parameters
    ----------
    store : str or Path
    name : str
        The view's name.
    ids : sequence of str
        One per row. The store keeps rows sorted by id.
    features : array of shape (n, dim)
        Read in pieces: it may be a memory map.
    labels : sequence of str, optional
        One per row, for evaluation alone.
    dtype : optional
        Of the stored features; by default that of the array.
    backbone, source : mapping, optional
        What to remember about the model and about the samples, as JSON.
    """
    if len(features.shape) != 2 or len(features) != len(ids):
        raise ValueError(
            f"view {name!r}: {len(ids)} ids for features of shape {features.shape}; "
            "one id per row is needed"
        )
    for i, sample in enumerate(ids):
        if fault := line_fault(sample):
            raise ValueError(f"view {name!r}: the id of row {i}, {sample!r}: {fault}")
    order = sorted_order(ids)
    sorted_ids = [ids[i] for i in order]
    dtype = features.dtype if dtype is None else dtype
    rows = piece_rows(len(ids))
    plan = make_plan(sorted_ids, backbone or {}, dtype, features.shape[1], rows)
    sorted_labels = None if labels is None else [labels[i] for i in order]
    view = begin(Path(store), name, plan, sorted_ids, sorted_labels, source or {})
    if view is None:
        return
    for piece in view.pending():
        positions = [order[i] for i in view.samples_of(piece)]
        view.write(piece, np.asarray(features[np.array(positions, np.int64)]), [])
    finish(view.store, name)
