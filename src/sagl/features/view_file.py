"""One file of a view that is being written: pieces, and a journal of them.

Rows of a piece are appended to the file, and then a line to the journal: how many rows,
who is left out, and a checksum of both. What a killed process wrote behind the last
line is cut off, and so is what is not as it was written.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NotRequired, TypedDict

import numpy as np
from filelock import FileLock, Timeout
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from sagl.features.manifest import Shard, Skipped
from sagl.schema import Count, check, parse_json
from sagl.storage import sha256, write_bytes

if TYPE_CHECKING:
    from sagl.features.store_write import UnfinishedView


class ViewFile:
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
        self.done: list[Piece] = self._read_journal()

    @property
    def there(self) -> Path:
        return self.path if self.path.exists() else self.partial

    @property
    def pending(self) -> range:
        return self.pieces[len(self.done) :]

    @property
    def rows(self) -> int:
        return sum(piece["rows"] for piece in self.done)

    def append(self, piece: int, features: NDArray[Any], skipped: Skipped) -> None:
        """Add the rows of the next piece, then its line to the journal."""
        file = self._opened()
        if not self.pending or self.pending[0] != piece:
            raise self._busy()
        content = np.ascontiguousarray(features, self._dtype).data
        _write_and_sync(file, content)
        done = _piece(len(features), skipped, content)
        with self.journal.open("ab") as journal:
            _write_and_sync(journal, json.dumps(done).encode() + b"\n")
        self.done.append(done)
        if not self.pending:
            file.close()
            self._lock.release()

    def settle(self) -> Shard:
        """Give a complete file its header and its name."""
        if self.partial.exists():
            with self.partial.open("r+b") as file:
                _write_and_sync(file, self._header(self.rows))
            self.path.parent.mkdir(exist_ok=True)
            self.partial.replace(self.path)
        name = f"{self.path.parent.name}/{self.path.name}"
        return Shard(name, self.rows, sha256(self.path))

    def forget_damaged(self) -> None:
        """Forget pieces that are not as they were written: they are done once more."""
        before, self.done = self.done, self._read_journal(compare=True)
        if self.done == before:
            return
        try:
            with self._lock:
                self._write_journal()
                if self.path.exists():
                    self.path.replace(self.partial)
        except Timeout:
            raise self._busy() from None

    def _header(self, rows: int) -> bytes:
        """NumPy leaves room in it for any number of rows."""
        descr = npy_format.dtype_to_descr(self._dtype)
        form = {"descr": descr, "fortran_order": False, "shape": (rows, self._dim)}
        header = io.BytesIO()
        npy_format.write_array_header_1_0(header, form)
        return header.getvalue()

    def _read_journal(self, *, compare: bool = False) -> list[Piece]:
        """The pieces that are whole, in the journal and in the file."""
        done: list[Piece] = []
        # There is neither before the first piece, and no line behind a power cut.
        with (
            suppress(FileNotFoundError, ValueError),
            self.there.open("rb") as file,
        ):
            size = os.fstat(file.fileno()).st_size
            header = file.read(len(self._header(0)))
            # Behind the last line break is what a killed process left.
            for line in self.journal.read_bytes().split(b"\n")[:-1]:
                piece = parse_json(line.decode())
                check(Piece, piece)
                if any([*map(type, of)] != [str, str] for of in piece["skipped"]):
                    raise ValueError("a sample is left out by its id and a reason")
                n_bytes = piece["rows"] * self._dim * self._dtype.itemsize
                if file.tell() + n_bytes > size:
                    break
                if compare:
                    again = _piece(piece["rows"], piece["skipped"], file.read(n_bytes))
                    if piece.get("sha256", again["sha256"]) != again["sha256"]:
                        break
                else:
                    file.seek(n_bytes, os.SEEK_CUR)
                done.append(piece)
            rows = sum(piece["rows"] for piece in done)
            if compare and self.path.exists() and header != self._header(rows):
                return []
        return done

    def _write_journal(self) -> None:
        lines = (json.dumps(piece).encode() + b"\n" for piece in self.done)
        write_bytes(self.journal, b"".join(lines))

    def _opened(self) -> IO[bytes]:
        """The file, held by this process alone and cut behind its last whole piece."""
        if self._file is None:
            try:
                self._lock.acquire()
            except Timeout:
                raise self._busy() from None
            before, self.done = self.done, self._read_journal()
            if self.done != before:  # somebody went on with it meanwhile
                raise self._busy()
            self._write_journal()
            refuse_link(self.partial)
            self.partial.touch()
            self._file = self.partial.open("r+b")
            header = self._header(self.rows)
            self._file.write(header)
            end = len(header) + self.rows * self._dim * self._dtype.itemsize
            self._file.truncate(end)
            self._file.seek(end)
        return self._file

    def _busy(self) -> ValueError:
        return ValueError(
            f"{self.partial}: another process is writing this file; let one command "
            "extract at a time, or divide the work: --shard 0/2 and --shard 1/2"
        )


class Piece(TypedDict):
    """A line of a journal: what became of a piece."""

    rows: Count
    skipped: list[list[Any]]  # of texts, some of them no Unicode
    sha256: NotRequired[str]  # not of unfinished views of before 0.2


def _piece(
    rows: int, skipped: Sequence[Sequence[Any]], content: bytes | memoryview
) -> Piece:
    pairs = [list(pair) for pair in skipped]
    digest = hashlib.sha256(json.dumps([rows, pairs]).encode())
    digest.update(content)
    return {"rows": rows, "skipped": pairs, "sha256": digest.hexdigest()}


def refuse_link(path: Path) -> None:
    """Nothing is written to, or copied from, another place than the store."""
    if path.is_symlink():
        raise ValueError(f"{path} is a link; remove it to begin anew")


def _write_and_sync(file: IO[bytes], content: bytes | memoryview) -> None:
    try:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    except OSError as error:
        error.filename = file.name
        raise
