"""Writing a feature store so that it can be killed at any moment and taken up.

A view is done in pieces (``unfinished.py``), small ones, so that little is lost. When
all are there, whoever notices writes them into files of a size that is good to read and
enters the view into the manifest. Each step is a rename, and each file a function of
the plan and the samples alone; so it does not matter who does it, in which order, or
how often it is interrupted.
"""

from __future__ import annotations

import hashlib
import io
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sagl.features.store.manifest import (
    WORK,
    Manifest,
    Plan,
    Shard,
    StoredView,
    check_view_name,
    is_store,
)
from sagl.features.store.sample_files import (
    line_fault,
    write_bytes,
    write_samples,
    write_skipped,
)
from sagl.features.store.unfinished import UnfinishedView, is_begun

# Samples per piece: few, because a slow model needs a second for each; more when there
# would be too many pieces.
_PIECE_ROWS = 512
_MOST_PIECES = 4096
# Rows per file: 32 MB of a usual view. Reading a row from one of many small files costs
# more than the row.
_FILE_ROWS = 16_384
_LOCK = ".lock"
_NUMBERED = re.compile(r"\d+\.npy")


def piece_rows(n_samples: int) -> int:
    """How many samples are done in one go: a function of their number alone."""
    return _PIECE_ROWS * -(-n_samples // (_PIECE_ROWS * _MOST_PIECES))


def begin(
    store: Path,
    name: str,
    plan: Plan,
    ids: Sequence[str],
    labels: Sequence[str] | None,
    source: Mapping[str, Any],
) -> UnfinishedView | None:
    """Begin a view, or take it up; None when the store has it already.

    Parameters
    ----------
    ids : sequence of str
        Of all samples, sorted.
    labels : sequence of str or None
        In the same order.
    """
    check_view_name(name)
    for label in set(labels or ()):
        if fault := line_fault(label):
            raise ValueError(f"the label {label!r} cannot be kept: {fault}")
    _refuse_other_directory(store)
    store.mkdir(parents=True, exist_ok=True)
    with _locked(store):
        if _has(store, name, plan):
            return None
        _refuse_other_files(store / name)
        if is_begun(store, name):
            # Looked at under the lock: whoever has pieces to do keeps others from
            # finishing the view, and so from removing what is there.
            view = UnfinishedView(store, name)
            if _is_same(view, plan):
                return view
            shutil.rmtree(view.work)
        return UnfinishedView.start(store, name, plan, ids, labels, source)


def finish(store: Path, name: str) -> bool:
    """Enter a view into the manifest if all pieces are there; say whether it is in."""
    with _locked(store):
        manifest = Manifest.read_or_new(store)
        if name not in manifest.views:
            view = UnfinishedView(store, name)
            if view.pending:
                return False
            _enter(manifest, view)
        _clean_up(store, name)
    return True


def _enter(manifest: Manifest, view: UnfinishedView) -> None:
    receipts = view.receipts()
    skipped = [pair for receipt in receipts for pair in receipt.skipped]
    if not any(receipt.rows for receipt in receipts):
        _clean_up(view.store, view.name)  # so that the next attempt reads them again
        sample, reason = skipped[0]
        raise ValueError(
            f"view {view.name!r}: not one of {view.plan.n_samples:,} samples could be "
            f"used; the first is {sample}: {reason}"
        )
    absent = {sample for sample, _ in skipped}
    ids, labels = view.samples()
    kept = [i for i, sample in enumerate(ids) if sample not in absent]
    shards = _write_files(view.store, view.name, view.features(receipts))
    key = write_samples(
        view.store,
        manifest,
        [ids[i] for i in kept],
        None if labels is None else [labels[i] for i in kept],
        view.source,
    )
    manifest.views[view.name] = StoredView(view.plan, key, shards)
    write_skipped(view.store, skipped)
    manifest.write(view.store)


def _write_files(
    store: Path, name: str, pieces: Iterable[NDArray[Any]]
) -> tuple[Shard, ...]:
    """The rows of all pieces in files of one size."""
    (store / name).mkdir(exist_ok=True)
    for old in (store / name).glob("[0-9]*.npy"):  # of an attempt that was dropped
        old.unlink()
    shards = []
    for number, rows in enumerate(_regrouped(pieces, _FILE_ROWS)):
        file = f"{name}/{number:05d}.npy"
        content = io.BytesIO()
        np.save(content, rows)
        write_bytes(store / file, content.getvalue())
        checksum = hashlib.sha256(content.getbuffer()).hexdigest()
        shards.append(Shard(file, len(rows), checksum))
    return tuple(shards)


def _regrouped(pieces: Iterable[NDArray[Any]], size: int) -> Iterator[NDArray[Any]]:
    """The same rows, ``size`` at a time."""
    held: list[NDArray[Any]] = []
    for piece in pieces:
        held.append(piece)
        if sum(map(len, held)) >= size:
            rows = np.concatenate(held)
            while len(rows) >= size:
                yield rows[:size]
                rows = rows[size:]
            held = [rows]
    rows = np.concatenate(held)
    if len(rows):
        yield rows


def _refuse_other_directory(store: Path) -> None:
    """A store is made in a new or empty directory, never among somebody's files."""
    if store.exists() and not store.is_dir():
        raise ValueError(f"{store} is a file; a feature store is a directory")
    if not store.is_dir() or is_store(store):
        return
    if any(path.name != _LOCK for path in store.iterdir()):
        raise ValueError(
            f"{store} holds files and is no feature store; choose another directory"
        )


def _refuse_other_files(directory: Path) -> None:
    """What is to be a view's directory holds nothing that is not a view's."""
    if directory.is_dir():
        for path in directory.iterdir():
            if not (_NUMBERED.fullmatch(path.name) or path.name.endswith(".tmp")):
                raise ValueError(
                    f"{path} is in the way; move it, or name the view otherwise"
                )


def _has(store: Path, name: str, plan: Plan) -> bool:
    there = Manifest.read_or_new(store).views.get(name)
    if there is None:
        return False
    if there.plan != plan:
        raise ValueError(
            f"{store} has a view {name!r} already, {_difference(there.plan, plan)}; "
            "give the new one another name (NAME=BACKBONE)"
        )
    _clean_up(store, name)
    return True


def _is_same(view: UnfinishedView, plan: Plan) -> bool:
    """Whether what was begun can be taken up; refuses to throw pieces away."""
    if view.plan != plan and len(view.pending) < view.plan.n_pieces:
        raise ValueError(
            f"{view.work}: view {view.name!r} was begun "
            f"{_difference(view.plan, plan)}; give the same again, or remove this "
            "directory to begin anew"
        )
    return view.plan == plan


def _difference(before: Plan, now: Plan) -> str:
    """In what two plans differ, in words."""
    a, b = asdict(before), asdict(now)
    if a["samples_sha256"] != b["samples_sha256"]:
        return (
            f"with other samples ({a['n_samples']:,} of them, now {b['n_samples']:,})"
        )
    if a["backbone"] != b["backbone"]:
        key = next(
            k
            for k in {**a["backbone"], **b["backbone"]}
            if a["backbone"].get(k) != b["backbone"].get(k)
        )
        return (
            f"with another backbone ({key} {a['backbone'].get(key)!r}, now "
            f"{b['backbone'].get(key)!r})"
        )
    key = next(k for k in a if a[k] != b[k])
    return f"with {key} {a[key]} (now {b[key]})"


def _clean_up(store: Path, name: str) -> None:
    """Remove what a finished view needs no more, and what killed processes left."""
    shutil.rmtree(store / WORK / name, ignore_errors=True)
    for directory in (store, store / name):
        for leftover in directory.glob(".*.tmp"):
            leftover.unlink(missing_ok=True)
    work = store / WORK
    if work.is_dir() and not any(work.iterdir()):
        work.rmdir()


@contextmanager
def _locked(store: Path) -> Iterator[None]:
    """One process at a time; the lock goes when its holder dies."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system: one process is safe anyway
        yield
        return
    with (store / _LOCK).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
