"""Stores as wholes: verify one, merge several into one, export views for other tools.

Merging puts views side by side and rows of a view one below the other.
"""

from __future__ import annotations

import csv
import secrets
import shutil
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Literal, get_args

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from sagl.features.manifest import (
    MANIFEST,
    Manifest,
    StoredView,
    as_lines,
    is_store,
    read_lines,
    read_skipped,
    write_skipped,
)
from sagl.features.samples import FileFormatError
from sagl.features.store import (
    FeatureStore,
    Join,
    ShardedArray,
    open_shard,
    write_view,
)
from sagl.features.store_write import (
    UnfinishedView,
    begin,
    finish,
    npy_header,
    unfinished,
)
from sagl.storage import replacing, sha256, write_bytes

__all__ = ["Format", "export", "merge", "verify"]

Format = Literal["npy", "npz", "parquet", "csv"]
_BLOCK_ROWS = 4096


def verify(path: str | Path) -> list[str]:
    """What is wrong with a store, one line per fault; an empty list when nothing is.

    Reads everything: checksums, numbers of rows, and values that are NaN or infinite.
    """
    store = Path(path)
    manifest = Manifest.open(store)
    faults: list[str] = []
    for key in manifest.samples:
        faults.extend(_sample_faults(manifest, key))
    for name, view in manifest.views.items():
        known = manifest.samples.get(view.samples)
        if known is None or known.rows != view.rows:
            ids = "none" if known is None else f"{known.rows:,}"
            faults.append(
                f"{store}: view {name!r} has {view.rows:,} rows and {ids} ids"
            )
        faults.extend(_view_faults(store, view))
    for left in unfinished(store):
        faults.append(
            f"{left.work}: view {left.name!r} is not finished: {len(left.pending())} "
            f"of {left.plan.n_pieces} pieces are missing; extract again"
        )
    return faults


def _sample_faults(manifest: Manifest, key: str) -> Iterator[str]:
    samples = manifest.samples[key]
    files = {manifest.ids_file(key): samples.ids_sha256}
    if samples.labels_sha256 is not None:
        files[manifest.labels_file(key)] = samples.labels_sha256
    for path, checksum in files.items():
        try:
            read_lines(path, samples.rows)
        except FileFormatError as error:
            yield str(error)
            continue
        if sha256(path) != checksum:
            yield f"{path}: its content is not what was written; copy it back"


def _view_faults(store: Path, view: StoredView) -> Iterator[str]:
    for shard in view.shards:
        path = store / shard.file
        try:
            array = open_shard(path, (shard.rows, view.plan.dim), view.plan.dtype)
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
    pending = view.pending()
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
        if (path / MANIFEST).exists():
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
        write_skipped(target, read_skipped(path))


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
    manifest, merged = stores[0].manifest, Manifest.read_or_new(target)
    view = manifest.views[name]
    (target / name).mkdir()
    for shard in view.shards:
        shutil.copyfile(manifest.store / shard.file, target / shard.file)
    ids, labels = manifest.ids(view.samples), manifest.labels(view.samples)
    key = merged.add_samples(ids, labels, manifest.samples[view.samples].source)
    merged.views[name] = replace(view, samples=key)
    merged.write()


def _append(target: Path, name: str, stores: Sequence[FeatureStore]) -> None:
    """A view whose samples are spread over several stores."""
    plan = stores[0].manifest.views[name].plan
    ids: list[str] = []
    labels: list[str] = []
    files, sources = [], []
    for store in stores:
        joined, own = store.join([name]), store.manifest.views[name].plan
        if (own.backbone, own.dtype, own.dim) != (plan.backbone, plan.dtype, plan.dim):
            raise ValueError(
                f"{store.path}: view {name!r} was made in another way than in "
                f"{stores[0].path}; rename one of them"
            )
        ids += joined.ids
        labels += [] if joined.labels is None else joined.labels.tolist()
        files += joined.views[name].files  # type: ignore[attr-defined]
        sources.append(joined.source)
    if 0 < len(labels) < len(ids):
        warnings.warn(
            f"view {name!r}: not all of the stores have labels; the merged has none",
            stacklevel=4,
        )
    same = all(source == sources[0] for source in sources)
    try:
        write_view(
            target,
            name,
            ids,
            ShardedArray(files, plan.dim, plan.dtype),
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
            _WRITERS[form](temporary, array, joined.ids)
    write_bytes(Path(out) / "ids.txt", as_lines(joined.ids))
    if joined.labels is not None:
        with replacing(paths[-1]) as temporary:
            _write_csv(temporary, joined.labels[:, None], joined.ids, ["label"])
    return paths


def _blocks(array: Any, ids: Sequence[str]) -> Iterator[tuple[Any, Sequence[str]]]:
    for start in range(0, len(array), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        yield np.ascontiguousarray(array[rows]), ids[rows]


def _write_features(file: IO[bytes], array: Any, ids: Sequence[str]) -> None:
    file.write(npy_header(array.dtype, array.shape))
    for block, _ in _blocks(array, ids):
        file.write(block.data)


def _write_npy(path: Path, array: NDArray[Any], ids: Sequence[str]) -> None:
    with path.open("wb") as file:
        _write_features(file, array, ids)


def _write_npz(path: Path, array: NDArray[Any], ids: Sequence[str]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        with archive.open("features.npy", "w", force_zip64=True) as file:
            _write_features(file, array, ids)
        with archive.open("ids.npy", "w", force_zip64=True) as file:
            npy_format.write_array(file, np.array(ids), allow_pickle=False)


def _write_parquet(path: Path, array: NDArray[Any], ids: Sequence[str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Few tools read half precision from parquet.
    number = pa.float64() if array.dtype == np.float64 else pa.float32()
    width = array.shape[1]
    schema = pa.schema([("id", pa.string()), ("features", pa.list_(number, width))])
    with pq.ParquetWriter(path, schema) as writer:
        for block, names in _blocks(array, ids):
            values = pa.array(block.ravel(), type=number, safe=False)
            features = pa.FixedSizeListArray.from_arrays(values, width)
            columns = [pa.array(names, type=pa.string()), features]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def _write_csv(
    path: Path, array: Any, ids: Sequence[str], names: Sequence[str] | None = None
) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", *(names or (f"f{i}" for i in range(array.shape[1])))])
        for block, names in _blocks(array, ids):
            # As text NumPy writes the shortest digits that give the same number back.
            rows = block.astype(str).tolist()
            writer.writerows([i, *row] for i, row in zip(names, rows, strict=True))


_WRITERS: dict[str, Callable[[Path, Any, Sequence[str]], None]] = {
    "npy": _write_npy,
    "npz": _write_npz,
    "parquet": _write_parquet,
    "csv": _write_csv,
}
