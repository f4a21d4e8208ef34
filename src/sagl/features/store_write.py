"""Writing a feature store so that it can be killed at any moment and taken up.

A view is done in pieces of some hundred samples. In ``.extracting/VIEW`` the rows of a
piece are appended to a file of many pieces, ``00000.npy``, and then a line to the
journal of that file, ``00000.jsonl``: how many rows, and who is left out. What a killed
process wrote behind the last line of the journal is cut off. When all files have all
their pieces, whoever notices writes their headers, moves them to ``VIEW`` and enters
the view into the manifest. Each file is a function of the plan and the samples alone,
so it does not matter who writes it, or how often it is interrupted.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from sagl.features.manifest import (
    WORK,
    Manifest,
    Plan,
    Shard,
    Skipped,
    StoredView,
    check_view_name,
    is_store,
    line_fault,
    write_skipped,
)
from sagl.features.samples import reading
from sagl.storage import sha256, write_bytes, write_json

__all__ = ["UnfinishedView", "begin", "finish", "piece_rows", "unfinished"]

# Samples per piece: few, because a slow model needs a second for each; more when there
# would be too many pieces.
_PIECE_ROWS = 512
_MOST_PIECES = 4096
# Rows per file: up to 32 MB of a usual view, because reading a row from one of many
# small files costs more than the row; but so few that this many processes can divide
# the files among themselves.
_FILE_ROWS = 16_384
_FILES = 64
_LOCK = ".lock"
_PLAN, _SAMPLES = "view.json", "samples.json"


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

    ``ids`` of all samples are sorted; ``labels`` are in the same order.
    """
    check_view_name(name)
    for label in set(labels or ()):
        if fault := line_fault(label):
            raise ValueError(f"the label {label!r} cannot be kept: {fault}")
    _refuse_other_files(store, name)
    store.mkdir(parents=True, exist_ok=True)
    work = store / WORK / name
    with FileLock(store / _LOCK):
        stored = Manifest.read(store).views.get(name)
        if stored is not None:
            if stored.plan != plan:
                raise ValueError(
                    f"{store} has a view {name!r} already, "
                    f"{_difference(stored.plan, plan)}; give the new one another name "
                    "(NAME=BACKBONE)"
                )
            _clean_up(store, name)
            return None
        # Looked at under the lock: whoever has pieces to do keeps others from
        # finishing the view, and so from removing what is there.
        begun = UnfinishedView(store, name) if (work / _PLAN).exists() else None
        if begun is not None and begun.plan != plan and begun.has_pieces:
            raise ValueError(
                f"{work}: view {name!r} was begun {_difference(begun.plan, plan)}; "
                "give the same again, or remove this directory to begin anew"
            )
        if begun is None or begun.plan != plan:
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            samples = {"ids": list(ids), "labels": labels and list(labels)}
            write_json(work / _SAMPLES, samples)
            write_json(work / _PLAN, {"plan": asdict(plan), "source": dict(source)})
        view = UnfinishedView(store, name)
        if not view.has_pieces:
            shutil.rmtree(store / name, ignore_errors=True)  # of an attempt given up
        return view


def finish(store: Path, name: str) -> bool:
    """Enter a view into the manifest if all pieces are there; say whether it is in."""
    with FileLock(store / _LOCK):
        manifest = Manifest.read(store)
        if name not in manifest.views:
            view = UnfinishedView(store, name)
            if view.pending():
                return False
            view.enter(manifest)
        _clean_up(store, name)
    return True


def unfinished(store: Path) -> list[UnfinishedView]:
    """The views of a store that are being written."""
    plans = sorted((store / WORK).glob(f"*/{_PLAN}"))
    return [UnfinishedView(store, plan.parent.name) for plan in plans]


class UnfinishedView:
    """A view of a store that is being written, piece by piece."""

    def __init__(self, store: Path, name: str) -> None:
        self.store, self.name = store, name
        self.work = store / WORK / name
        with reading(self.work / _PLAN, f"remove {self.work} to begin anew"):
            about = json.loads((self.work / _PLAN).read_text(encoding="utf-8"))
        self.plan = Plan(**about["plan"])
        self.source: dict[str, Any] = about["source"]
        rows = min(_FILE_ROWS, -(-self.plan.n_samples // _FILES))
        self.pieces_per_file = max(1, rows // self.plan.piece_rows)
        self.files = [
            _ViewFile(self, number)
            for number in range(-(-self.plan.n_pieces // self.pieces_per_file))
        ]

    @property
    def has_pieces(self) -> bool:
        return any(file.entries for file in self.files)

    def pending(self, index: int = 0, count: int = 1) -> list[int]:
        """Pieces that are not done, of every ``count``-th file beginning with one."""
        return [piece for file in self.files[index::count] for piece in file.pending]

    def samples_of(self, piece: int) -> range:
        """Positions, among the sorted ids, of the samples of a piece."""
        start = piece * self.plan.piece_rows
        return range(start, min(start + self.plan.piece_rows, self.plan.n_samples))

    def samples(self) -> tuple[list[str], list[str] | None]:
        samples = json.loads((self.work / _SAMPLES).read_text(encoding="utf-8"))
        return samples["ids"], samples["labels"]

    def write(self, piece: int, features: NDArray[Any], skipped: Skipped) -> None:
        """Features of a piece, (rows, dim), and those samples that are left out.

        The pieces of a file are written in order.
        """
        self.files[piece // self.pieces_per_file].append(piece, features, skipped)

    def copy_files(self, store: Path) -> None:
        """Bring complete files to another store in which this view was begun."""
        for file in self.files:
            if not file.pending:
                features = file.path if file.path.exists() else file.partial
                for source in (features, file.journal):  # which counts the rows
                    shutil.copyfile(source, store / WORK / self.name / source.name)

    def enter(self, manifest: Manifest) -> None:
        """Give the files their names and write the manifest with this view in it."""
        skipped: Skipped = [
            (sample, reason)
            for file in self.files
            for entry in file.entries
            for sample, reason in entry["skipped"]
        ]
        if not any(file.rows for file in self.files):
            _clean_up(self.store, self.name)  # so that the next attempt reads them
            sample, reason = skipped[0]
            raise ValueError(
                f"view {self.name!r}: not one of {self.plan.n_samples:,} samples could "
                f"be used; the first is {sample}: {reason}"
            )
        shards = tuple(file.settle() for file in self.files if file.rows)
        absent = {sample for sample, _ in skipped}
        ids, labels = self.samples()
        kept = [i for i, sample in enumerate(ids) if sample not in absent]
        kept_labels = None if labels is None else [labels[i] for i in kept]
        key = manifest.add_samples([ids[i] for i in kept], kept_labels, self.source)
        manifest.views[self.name] = StoredView(self.plan, key, shards)
        write_skipped(self.store, skipped)
        manifest.write()


class _ViewFile:
    """One file of a view: the pieces it is to hold, and what became of those it has."""

    def __init__(self, view: UnfinishedView, number: int) -> None:
        first = number * view.pieces_per_file
        last = min(first + view.pieces_per_file, view.plan.n_pieces)
        self.pieces = range(first, last)
        self.path = view.store / view.name / f"{number:05d}.npy"
        self.partial = view.work / self.path.name
        self.journal = view.work / f"{number:05d}.jsonl"
        self._dim, self._dtype = view.plan.dim, np.dtype(view.plan.dtype)
        self._lock = FileLock(self.journal.with_suffix(".lock"), timeout=0)
        self._file: IO[bytes] | None = None
        self.entries = self._read_journal()

    @property
    def pending(self) -> range:
        return self.pieces[len(self.entries) :]

    @property
    def rows(self) -> int:
        return sum(entry["rows"] for entry in self.entries)

    def append(self, piece: int, features: NDArray[Any], skipped: Skipped) -> None:
        """Add the rows of the next piece, then its line to the journal."""
        file = self._opened()
        if not self.pending or self.pending[0] != piece:
            raise self._busy()
        _write_and_sync(file, np.ascontiguousarray(features, self._dtype).data)
        entry = {"rows": len(features), "skipped": skipped}
        with self.journal.open("ab") as journal:
            _write_and_sync(journal, json.dumps(entry).encode() + b"\n")
        self.entries.append(entry)
        if not self.pending:
            file.close()
            self._lock.release()

    def settle(self) -> Shard:
        """Give a complete file its header and its name."""
        if self.partial.exists():
            with self.partial.open("r+b") as file:
                _write_and_sync(file, self._header())
            self.path.parent.mkdir(exist_ok=True)
            self.partial.replace(self.path)
        name = f"{self.path.parent.name}/{self.path.name}"
        return Shard(name, self.rows, sha256(self.path))

    def _header(self) -> bytes:
        """NumPy leaves room in it for any number of rows."""
        descr = npy_format.dtype_to_descr(self._dtype)
        shape = (self.rows, self._dim)
        header = io.BytesIO()
        npy_format.write_array_header_1_0(
            header, {"descr": descr, "fortran_order": False, "shape": shape}
        )
        return header.getvalue()

    @property
    def _size(self) -> int:
        return len(self._header()) + self.rows * self._dim * self._dtype.itemsize

    def _read_journal(self) -> list[dict[str, Any]]:
        """The pieces that are whole, in the journal and in the file."""
        self.entries = []
        if self.journal.exists():
            # Behind the last line break is what a killed process left.
            with suppress(ValueError):  # or what a power cut made of it
                for line in self.journal.read_bytes().split(b"\n")[:-1]:
                    self.entries.append(json.loads(line))
        if self.rows == 0 or self.path.exists():
            return self.entries
        size = self.partial.stat().st_size if self.partial.exists() else 0
        return self.entries if size >= self._size else []

    def _opened(self) -> IO[bytes]:
        """The file, held by this process alone and cut behind its last whole piece."""
        if self._file is None:
            try:
                self._lock.acquire()
            except Timeout:
                raise self._busy() from None
            pending = self.pending
            self.entries = self._read_journal()
            if self.pending != pending:  # somebody went on with it meanwhile
                raise self._busy()
            lines = (json.dumps(entry).encode() + b"\n" for entry in self.entries)
            write_bytes(self.journal, b"".join(lines))
            self.partial.touch()
            self._file = self.partial.open("r+b")
            self._file.write(self._header())
            self._file.truncate(self._size)
            self._file.seek(self._size)
        return self._file

    def _busy(self) -> ValueError:
        return ValueError(
            f"{self.partial}: another process is writing this file; let one command "
            "extract at a time, or divide the work: --shard 0/2 and --shard 1/2"
        )


def _write_and_sync(file: IO[bytes], content: bytes | memoryview) -> None:
    file.write(content)
    file.flush()
    os.fsync(file.fileno())


def _refuse_other_files(store: Path, name: str) -> None:
    """A store is made in a new or empty directory, never among somebody's files."""
    if store.exists() and not store.is_dir():
        raise ValueError(f"{store} is a file; a feature store is a directory")
    others = {path.name for path in store.glob("*")} - {_LOCK}
    if others and not is_store(store):  # in this order: others may just begin it
        raise ValueError(
            f"{store} holds files and is no feature store; choose another directory"
        )
    for path in (store / name).glob("*"):
        if not re.fullmatch(r"\d+\.npy", path.name):
            raise ValueError(
                f"{path} is in the way; move it, or name the view otherwise"
            )


def _difference(before: Plan, now: Plan) -> str:
    """In what two plans differ first, in words."""
    a, b = (
        {**asdict(plan), **plan.backbone, "backbone": None} for plan in (before, now)
    )
    key = next(key for key in {**a, **b} if a.get(key) != b.get(key))
    return f"with {key} {a.get(key)!r} (now {b.get(key)!r})"


def _clean_up(store: Path, name: str) -> None:
    """Remove what a finished view needs no more, and what killed processes left."""
    shutil.rmtree(store / WORK / name, ignore_errors=True)
    for leftover in store.glob(".*.tmp"):
        leftover.unlink(missing_ok=True)
    with suppress(OSError):  # others are still being written
        (store / WORK).rmdir()
