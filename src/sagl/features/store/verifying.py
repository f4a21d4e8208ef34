"""Whether a store is still what was written: every file, every row."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from sagl.features._errors import FileFormatError
from sagl.features.store.feature_store import FeatureStore
from sagl.features.store.manifest import SampleSet, StoredView
from sagl.features.store.sample_files import ids_file, labels_file, read_lines
from sagl.features.store.sharded_array import ShardFile, open_shard
from sagl.features.store.unfinished import unfinished
from sagl.storage import sha256


def verify(path: str | Path) -> list[str]:
    """What is wrong with a store, one line per fault; an empty list when nothing is.

    Reads everything: checksums, numbers of rows, ids that are not sorted or repeated,
    and values that are NaN or infinite.
    """
    store = FeatureStore.open(path)
    faults: list[str] = []
    for key, samples in store.manifest.samples.items():
        faults.extend(_sample_faults(store.path, key, samples))
    for name, view in store.manifest.views.items():
        faults.extend(_view_faults(store, name, view))
    for view_ in unfinished(store.path):
        faults.append(
            f"{view_.work}: view {view_.name!r} is not finished: {len(view_.pending)} "
            f"of {view_.plan.n_pieces} pieces are missing; extract again"
        )
    return faults


def _sample_faults(store: Path, key: str, samples: SampleSet) -> Iterator[str]:
    files = {ids_file(key): samples.ids_sha256}
    if samples.labels_sha256 is not None:
        files[labels_file(key)] = samples.labels_sha256
    for name, checksum in files.items():
        path = store / name
        try:
            lines = read_lines(path, samples.rows)
        except FileFormatError as error:
            yield str(error)
            continue
        if sha256(path) != checksum:
            yield f"{path}: its content is not what was written; copy it back"
        elif name == ids_file(key):
            for row, (a, b) in enumerate(pairwise(lines), 1):
                if a >= b:
                    yield f"{path}: line {row + 1}, {b!r}, does not come after {a!r}"
                    break


def _view_faults(store: FeatureStore, name: str, view: StoredView) -> Iterator[str]:
    samples = store.manifest.samples.get(view.samples)
    if samples is None or samples.rows != view.rows:
        ids = "none" if samples is None else f"{samples.rows:,}"
        yield f"{store.path}: view {name!r} has {view.rows:,} rows and {ids} ids"
    for shard in view.shards:
        path = store.path / shard.file
        try:
            array = open_shard(
                ShardFile(path, shard.rows), view.plan.dim, view.plan.dtype
            )
        except FileFormatError as error:
            yield str(error)
            continue
        if sha256(path) != shard.sha256:
            yield f"{path}: its content is not what was written; extract it again"
        bad = ~np.isfinite(array)
        if bad.any():
            row, column = (int(i) for i in np.argwhere(bad)[0])
            yield (
                f"{path}: row {row}, column {column} is {array[row, column]}; "
                f"{int(bad.any(axis=1).sum())} of its rows hold NaN or infinity"
            )
