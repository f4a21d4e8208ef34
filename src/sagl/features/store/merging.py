"""Several stores into one: views side by side, rows of a view one below the other."""

from __future__ import annotations

import secrets
import shutil
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sagl.features.store.feature_store import FeatureStore
from sagl.features.store.manifest import (
    MANIFEST,
    Manifest,
    Plan,
    StoredView,
    is_store,
)
from sagl.features.store.sample_files import (
    labels_file,
    read_lines,
    read_skipped,
    samples_checksum,
    sorted_order,
    write_samples,
    write_skipped,
)
from sagl.features.store.unfinished import UnfinishedView, unfinished
from sagl.features.store.writing import begin, finish, piece_rows


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
        _finish_all(paths[0])
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


def _finish_all(store: Path) -> None:
    for view in unfinished(store):
        if not finish(store, view.name):
            raise _missing(view, f"{store}")


def _missing(view: UnfinishedView, where: str) -> ValueError:
    listed = ", ".join(f"{piece}" for piece in view.pending[:10])
    more = ", …" if len(view.pending) > 10 else ""
    return ValueError(
        f"{where}: view {view.name!r} lacks {len(view.pending)} of its "
        f"{view.plan.n_pieces} pieces ({listed}{more}); run the processes that were "
        "to do them again"
    )


def _merge_into(target: Path, paths: Sequence[Path]) -> None:
    target.mkdir()
    begun: dict[str, list[UnfinishedView]] = {}
    done: dict[str, list[FeatureStore]] = {}
    for path in paths:
        for unfinished_view in unfinished(path):
            begun.setdefault(unfinished_view.name, []).append(unfinished_view)
        if (path / MANIFEST).exists():
            store = FeatureStore.open(path)
            for name in store.names:
                done.setdefault(name, []).append(store)
    for name in begun.keys() & done.keys():
        raise ValueError(
            f"{begun[name][0].store}: view {name!r} is not finished here, and is in "
            f"{done[name][0].path}; finish it first"
        )
    for name, views in begun.items():
        _gather(target, name, views)
    for name, stores in done.items():
        if len(stores) == 1:
            _copy(target, name, stores[0])
        else:
            _append(target, name, stores)
    for path in paths:
        write_skipped(target, read_skipped(path))


def _gather(target: Path, name: str, views: Sequence[UnfinishedView]) -> None:
    """A view whose pieces were written into several stores."""
    first = views[0]
    gathered = begin(target, name, first.plan, *first.samples(), first.source)
    if gathered is None:
        return
    for view in views:
        if view.plan != first.plan:
            raise ValueError(
                f"{view.store}: view {name!r} was begun in another way than in "
                f"{first.store}; extract both with the same options"
            )
        gathered.adopt(view)
    if not finish(target, name):
        where = ", ".join(f"{view.store}" for view in views)
        raise _missing(UnfinishedView(target, name), where)


def _copy(target: Path, name: str, store: FeatureStore) -> None:
    """A view that is in one store alone, file by file."""
    view = store.manifest.views[name]
    manifest = Manifest.read_or_new(target)
    (target / name).mkdir()
    for shard in view.shards:
        shutil.copyfile(store.path / shard.file, target / shard.file)
    samples = store.manifest.samples[view.samples]
    key = write_samples(
        target,
        manifest,
        store.ids_of(name),
        _labels(store, view),
        samples.source,
    )
    manifest.views[name] = replace(view, samples=key)
    manifest.write(target)


def _append(target: Path, name: str, stores: Sequence[FeatureStore]) -> None:
    """A view whose samples are spread over several stores."""
    views = [store.manifest.views[name] for store in stores]
    for store, view in zip(stores, views, strict=True):
        if _made(view.plan) != _made(views[0].plan):
            raise ValueError(
                f"{store.path}: view {name!r} was made in another way than in "
                f"{stores[0].path}; rename one of them"
            )
    ids = [sample for store in stores for sample in store.ids_of(name)]
    try:
        order = sorted_order(ids)
    except ValueError as error:
        raise ValueError(f"view {name!r} of several stores: {error}") from None
    ordered = [ids[i] for i in order]
    plan = replace(
        views[0].plan,
        piece_rows=piece_rows(len(ids)),
        n_samples=len(ids),
        samples_sha256=samples_checksum(ordered),
    )
    labels = _all_labels(name, stores)
    merged = begin(
        target,
        name,
        plan,
        ordered,
        None if labels is None else [labels[i] for i in order],
        _source(stores, views),
    )
    if merged is None:
        return
    arrays = [view.array(s.path) for s, view in zip(stores, views, strict=True)]
    starts = np.cumsum([0, *(len(array) for array in arrays)])
    for piece in merged.pending:
        rows = np.array([order[i] for i in merged.samples_of(piece)], dtype=np.int64)
        features = np.empty((len(rows), plan.dim), plan.dtype)
        for array, start in zip(arrays, starts, strict=False):
            here = (rows >= start) & (rows < start + len(array))
            features[here] = array[rows[here] - start]
        merged.write(piece, features, [])
    finish(target, name)


def _made(plan: Plan) -> tuple[Any, ...]:
    return plan.backbone, plan.dtype, plan.dim


def _labels(store: FeatureStore, view: StoredView) -> list[str] | None:
    samples = store.manifest.samples[view.samples]
    if samples.labels_sha256 is None:
        return None
    return read_lines(store.path / labels_file(view.samples), samples.rows)


def _all_labels(name: str, stores: Sequence[FeatureStore]) -> list[str] | None:
    found = [_labels(store, store.manifest.views[name]) for store in stores]
    known = [labels for labels in found if labels is not None]
    if len(known) == len(found):
        return [label for labels in known for label in labels]
    if known:
        warnings.warn(
            f"view {name!r}: not all of the stores have labels; the merged one has "
            "none",
            stacklevel=4,
        )
    return None


def _source(stores: Sequence[FeatureStore], views: Sequence[StoredView]) -> Any:
    sources = [
        store.manifest.samples[view.samples].source
        for store, view in zip(stores, views, strict=True)
    ]
    same = all(source == sources[0] for source in sources)
    return sources[0] if same else {"merged": sources}
