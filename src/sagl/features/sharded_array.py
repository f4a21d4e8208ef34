"""A matrix that lies in several files and is read when rows of it are asked for."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from sagl.features.files import read_npy
from sagl.features.samples import file_error

__all__ = ["ShardFile", "ShardedArray", "npy_header", "open_shard"]

Array = NDArray[Any]
Rows = NDArray[np.int64]


class ShardFile(NamedTuple):
    """A ``.npy`` file and how many rows it must hold."""

    path: Path
    rows: int


class ShardedArray:
    """Rows of ``.npy`` files one after another, as if they were one matrix.

    Nothing is opened before it is needed. Indexing gives NumPy arrays, in the order
    asked for; inside, rows are read in the order of the files, file by file, because
    a random walk over a disk costs several times as much.

    All files have ``dim`` columns of ``dtype``. ``selected`` says which rows of the
    files are the rows of this array; by default all.
    """

    # Tells `Views` to leave it where it is.
    stays_on_disk = True
    ndim = 2

    def __init__(
        self,
        files: Sequence[ShardFile],
        dim: int,
        dtype: Any,
        selected: Rows | None = None,
    ) -> None:
        self.files = tuple(files)
        self.dtype = np.dtype(dtype)
        self.selected = selected
        self._starts = np.cumsum([0, *(file.rows for file in self.files)])
        rows = int(self._starts[-1]) if selected is None else len(selected)
        self.shape = (rows, dim)
        self._open: dict[int, Array] = {}

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"ShardedArray({self.shape}, {self.dtype}, {len(self.files)} files)"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": {}}  # memory maps would travel as copies

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("an array in several files cannot be had without a copy")
        whole = self._positions(slice(None))
        return np.array(self._read(whole), dtype=dtype)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            rows, *columns = key
            block = self[rows]
            if isinstance(rows, int | np.integer):
                return block[tuple(columns)]
            # NumPy pairs a list of rows with a list of columns.
            paired = not isinstance(rows, slice) and _is_list(columns[0])
            return block[(np.arange(len(block)) if paired else slice(None), *columns)]
        if isinstance(key, int | np.integer):
            return self._read(self._positions(np.array([key])))[0]
        if isinstance(key, slice):
            piece = self._within_one_file(key)
            if piece is not None:
                return piece
        return self._read(self._positions(key))

    def select(self, rows: Rows) -> ShardedArray:
        """These rows in this order, still on disk."""
        return ShardedArray(
            self.files, self.shape[1], self.dtype, self._positions(rows)
        )

    def _positions(self, key: Any) -> Rows:
        """Rows of the files that a slice, a mask or positions mean."""
        n = len(self)
        if key is Ellipsis:
            key = slice(None)
        if isinstance(key, slice):
            rows = np.arange(*key.indices(n))
        else:
            rows = np.asarray(key)
            if rows.dtype == bool:
                if rows.shape != (n,):
                    raise IndexError(
                        f"a mask of shape {rows.shape} for an array of {n} rows"
                    )
                rows = np.flatnonzero(rows)
            elif rows.size == 0:
                rows = rows.astype(np.int64)
            if rows.ndim != 1 or rows.dtype.kind not in "iu":
                raise IndexError(
                    "rows are chosen by a slice, a mask or a list of positions; got "
                    f"{rows.dtype} of shape {rows.shape}"
                )
            lowest, highest = int(rows.min(initial=0)), int(rows.max(initial=0))
            if lowest < -n or highest >= n:
                row = lowest if lowest < -n else highest
                raise IndexError(f"row {row} of an array of {n} rows")
            if lowest < 0:
                rows = np.where(rows < 0, rows + n, rows)
        rows = rows.astype(np.int64, copy=False)
        return rows if self.selected is None else self.selected[rows]

    def _within_one_file(self, key: slice) -> Array | None:
        """A piece of one file without copying it, if that is all that is asked for."""
        start, stop, step = key.indices(len(self))
        if self.selected is not None or step != 1 or start >= stop:
            return None
        shard = int(np.searchsorted(self._starts, start, side="right")) - 1
        first = int(self._starts[shard])
        if stop > self._starts[shard + 1]:
            return None
        return self._file(shard)[start - first : stop - first]

    def _read(self, rows: Rows) -> Array:
        order = None
        if (rows[1:] < rows[:-1]).any():
            order = np.argsort(rows, kind="stable")
            rows = rows[order]
        cuts = np.searchsorted(rows, self._starts).tolist()
        out = np.empty((len(rows), self.shape[1]), self.dtype)
        for shard in np.flatnonzero(np.diff(cuts)).tolist():
            a, b = cuts[shard], cuts[shard + 1]
            file, here = self._file(shard), rows[a:b] - self._starts[shard]
            if order is not None:
                out[order[a:b]] = file.take(here, axis=0)
            else:  # positions are valid; "raise" would read into a second buffer
                np.take(file, here, axis=0, out=out[a:b], mode="clip")
        return out

    def _file(self, shard: int) -> Array:
        if shard not in self._open:
            self._open[shard] = open_shard(self.files[shard], self.shape[1], self.dtype)
        return self._open[shard]


def _is_list(key: Any) -> bool:
    return isinstance(key, list | np.ndarray)


def npy_header(dtype: Any, shape: tuple[int, int]) -> bytes:
    """The header of a .npy file; NumPy leaves room in it for any number of rows."""
    descr = npy_format.dtype_to_descr(np.dtype(dtype))
    about = {"descr": descr, "fortran_order": False, "shape": shape}
    header = io.BytesIO()
    npy_format.write_array_header_1_0(header, about)
    return header.getvalue()


def open_shard(file: ShardFile, dim: int, dtype: Any) -> Array:
    """A shard as a memory map, refused when it is not of the form it should have."""
    if not file.path.is_file():
        raise file_error(file.path, "is missing; copy it back or extract again")
    array = read_npy(file.path, None)
    if array.shape != (file.rows, dim) or array.dtype != np.dtype(dtype):
        raise file_error(
            file.path,
            f"holds {array.dtype} of shape {array.shape}, the manifest says "
            f"{np.dtype(dtype)} of shape {(file.rows, dim)}; copy it back or extract "
            "again",
        )
    return np.asarray(array)  # indexing a np.memmap itself is slower
