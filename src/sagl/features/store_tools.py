"""Stores as wholes: verify one, merge several into one, export views for other tools.

Merging puts views side by side and rows of a view one below the other.
"""

from __future__ import annotations

import csv
import secrets
import shutil
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.lib import format as npy_format

from sagl.features import manifest as files
from sagl.features.manifest import Manifest, is_store
from sagl.features.sharded import ShardedArray
from sagl.features.store import FeatureStore, Join, write_view
from sagl.features.store_write import UnfinishedView, begin, finish, unfinished
from sagl.storage import replacing, write_bytes

__all__ = ["Format", "export", "merge", "verify"]

Format = Literal["npy", "npz", "parquet", "csv"]
_BLOCK_ROWS = 4096


def verify(path: str | Path) -> list[str]:
    """What is wrong with a store, one line per fault; an empty list when nothing is.

    Reads everything: checksums, numbers of rows, and values that are NaN or infinite.
    """
    store = FeatureStore.open(path)
    left = [
        f"{view.work}: view {view.name!r} is not finished: {len(view.pending)} "
        f"of {view.plan.n_pieces} pieces are missing; extract again"
        for view in unfinished(store.path)
    ]
    return [*map(str, store.faults(store.names, values=True)), *left]


def merge(stores: Sequence[str | Path], out: str | Path | None = None) -> Path:
    """Make one store of several, or finish one that several processes wrote to.

    Parameters
    ----------
    stores : sequence of paths
        Stores, or what ``sagl extract --shard`` left of them on several machines. A
        view that is in several of them must have been made in the same way, and of
        different samples.
    out : path, optional
        Where the merged store goes; it must not be there yet. May be left out for a
        single store, which is then finished where it is.

    Returns
    -------
    Path
        The store.
    """
    paths = [Path(store) for store in stores]
    for path in paths:
        if not is_store(path):
            raise ValueError(f"{path} is not a feature store")
    if out is None:
        if len(paths) != 1:
            raise ValueError(f"{len(paths)} stores need a place to be merged into")
        for view in unfinished(paths[0]):
            if not finish(paths[0], view.name):
                raise _missing(view, f"{paths[0]}")
        return paths[0]
    target = Path(out)
    if target.exists():
        raise ValueError(f"{target} is there already; choose another place")
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        _merge_into(temporary, paths)
        temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target


def _missing(view: UnfinishedView, where: str) -> ValueError:
    pending = view.pending
    listed = ", ".join(map(str, pending[:10])) + (", …" if len(pending) > 10 else "")
    return ValueError(
        f"{where}: view {view.name!r} lacks {len(pending)} of its "
        f"{view.plan.n_pieces} pieces ({listed}); run the processes that were to do "
        "them again"
    )


def _merge_into(target: Path, paths: Sequence[Path]) -> None:
    target.mkdir()
    begun: dict[str, list[UnfinishedView]] = {}
    done: dict[str, list[FeatureStore]] = {}
    for path in paths:
        for view in unfinished(path):
            begun.setdefault(view.name, []).append(view)
        if (path / files.MANIFEST).exists():
            store = FeatureStore.open(path)
            for name in store:
                done.setdefault(name, []).append(store)
    for name in begun.keys() & done.keys():
        raise ValueError(
            f"{begun[name][0].store}: view {name!r} is not finished here, and is in "
            f"{done[name][0].path}; finish it first"
        )
    for name, views in begun.items():
        _gather(target, name, views)
    for name, stores in done.items():
        (_copy if len(stores) == 1 else _append)(target, name, stores)
    for path in paths:
        files.write_skipped(target, files.read_skipped(path))


def _gather(target: Path, name: str, views: Sequence[UnfinishedView]) -> None:
    """A view whose files were written into several stores."""
    first = views[0]
    begin(target, name, first.plan, *first.samples(), first.source)
    for view in views:
        if view.plan != first.plan:
            raise ValueError(
                f"{view.store}: view {name!r} was begun in another way than in "
                f"{first.store}; extract both with the same options"
            )
        view.copy_files(target)
    if not finish(target, name):
        stores = ", ".join(f"{view.store}" for view in views)
        raise _missing(UnfinishedView(target, name), stores)


def _copy(target: Path, name: str, stores: Sequence[FeatureStore]) -> None:
    """A view that is in one store alone, file by file."""
    manifest, merged = stores[0].manifest, Manifest.read(target)
    view = manifest.views[name]
    (target / name).mkdir()
    for shard in view.shards:
        shutil.copyfile(manifest.inside(shard.file), target / shard.file)
    ids, labels = manifest.ids(view.samples), manifest.labels(view.samples)
    key = merged.add_samples(ids, labels, manifest.samples[view.samples].source)
    merged.views[name] = replace(view, samples=key)
    merged.write()


def _append(target: Path, name: str, stores: Sequence[FeatureStore]) -> None:
    """A view whose samples are spread over several stores."""
    plan = stores[0].manifest.views[name].plan
    parts = [store.join([name]) for store in stores]
    for store in stores:
        own = store.manifest.views[name].plan
        if (own.backbone, own.dtype, own.dim) != (plan.backbone, plan.dtype, plan.dim):
            raise ValueError(
                f"{store.path}: view {name!r} was made in another way than in "
                f"{stores[0].path}; rename one of them"
            )
    labels = [y for part in parts for y in ([] if part.labels is None else part.labels)]
    ids = [sample for part in parts for sample in part.ids]
    if 0 < len(labels) < len(ids):
        warnings.warn(
            f"view {name!r}: not all of the stores have labels; the merged has none",
            stacklevel=4,
        )
    shards = [file for part in parts for file in part.views[name].files]  # type: ignore[attr-defined]
    sources = [part.source for part in parts]
    same = all(source == sources[0] for source in sources)
    try:
        write_view(
            target,
            name,
            ids,
            ShardedArray(shards, plan.dim, plan.dtype),
            labels=labels if len(labels) == len(ids) else None,
            backbone=plan.backbone,
            source=sources[0] if same else {"merged": sources},
            batch_size=plan.batch_size,
        )
    except ValueError as error:
        raise ValueError(f"view {name!r} of several stores: {error}") from None


def export(
    store: FeatureStore,
    out: str | Path,
    form: Format = "npy",
    *,
    names: Sequence[str] | None = None,
    join: Join = "error",
) -> list[Path]:
    """Write one file per view, ``ids.txt`` and, if known, ``labels.csv`` to ``out``.

    ``npy`` holds the features, row i those of line i of ``ids.txt``; ``npz`` the
    arrays ``features`` and ``ids``; ``parquet`` the columns ``id`` and ``features``
    (lists); ``csv`` the column ``id`` and one per feature.

    Returns
    -------
    list of Path
        The files.
    """
    if form not in get_args(Format):
        raise ValueError(
            f"a store is exported as {', '.join(get_args(Format))}; not as {form!r}"
        )
    joined = store.join(names, join)
    paths = [Path(out) / f"{name}.{form}" for name in joined.views.names]
    paths.append(Path(out) / "ids.txt")
    if joined.labels is not None:
        paths.append(Path(out) / "labels.csv")
    for path in paths:
        if path.exists():
            raise ValueError(f"{path} is there already; choose another place")
    Path(out).mkdir(parents=True, exist_ok=True)
    for path, (_, array) in zip(paths, joined.views.items(), strict=False):
        with replacing(path) as temporary:
            _write(temporary, form, array, joined.ids)
    write_bytes(Path(out) / "ids.txt", files.as_lines(joined.ids))
    if joined.labels is not None:
        with replacing(paths[-1]) as temporary:
            _write_csv(temporary, joined.labels[:, None], joined.ids, ["label"])
    return paths


def _write(path: Path, form: Format, array: Any, ids: Sequence[str]) -> None:
    match form:
        case "npy":
            array[:1]  # refused if it is not as wide as it says, before a file is
            out = npy_format.open_memmap(path, "w+", array.dtype, array.shape)
            for rows in _blocks(array):
                out[rows] = array[rows]
            out.flush()
        case "npz":  # which is read into memory as well
            with path.open("wb") as file:
                np.savez(file, features=array[:], ids=np.array(ids))
        case "parquet":
            _write_parquet(path, array, ids)
        case "csv":
            _write_csv(path, array, ids, [f"f{i}" for i in range(array.shape[1])])


def _blocks(array: Any) -> Iterator[slice]:
    for start in range(0, len(array), _BLOCK_ROWS):
        yield slice(start, start + _BLOCK_ROWS)


def _write_parquet(path: Path, array: Any, ids: Sequence[str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Few tools read half precision from parquet.
    number = pa.float64() if array.dtype == np.float64 else pa.float32()
    width = array.shape[1]
    schema = pa.schema([("id", pa.string()), ("features", pa.list_(number, width))])
    with pq.ParquetWriter(path, schema) as writer:
        for rows in _blocks(array):
            values = pa.array(array[rows].ravel(), type=number, safe=False)
            features = pa.FixedSizeListArray.from_arrays(values, width)
            writer.write_batch(pa.record_batch([ids[rows], features], schema=schema))


def _write_csv(
    path: Path, array: Any, ids: Sequence[str], names: Sequence[str]
) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", *names])
        for rows in _blocks(array):
            # As text NumPy writes the shortest digits that give the same number back.
            values = array[rows].astype(str).tolist()
            lines = zip(ids[rows], values, strict=True)
            writer.writerows([sample, *row] for sample, row in lines)
