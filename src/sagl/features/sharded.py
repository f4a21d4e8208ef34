"""Rows of several files as one matrix, read when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sagl.features.files import read_array
from sagl.features.manifest import CURE
from sagl.features.samples import file_error
from sagl.unchanged import Unchanged

Array = NDArray[Any]
Rows = NDArray[np.int64]


class ShardedArray:
    """Rows of ``.npy`` files one after another, as if they were one matrix.

    Nothing is opened before it is needed. Inside, rows are read in the order of the
    files, because a random walk over a disk costs several times as much.

    ``files`` are paths with the number of rows in each; ``selected`` says which of
    their rows are the rows of this array; by default all. −1 is a row of NaN.
    """

    stays_on_disk = True  # so that `Views` leaves it there
    ndim = 2

    def __init__(
        self,
        files: Sequence[tuple[Path, int]],
        dim: int,
        dtype: Any,
        selected: Rows | None = None,
    ) -> None:
        self.files = tuple(files)
        self.dtype = np.dtype(dtype)
        self._starts = np.cumsum([0, *(rows for _, rows in self.files)])
        self._rows = np.arange(self._starts[-1]) if selected is None else selected
        self.shape = (len(self._rows), dim)
        self._open: dict[int, tuple[Array, Unchanged]] = {}

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"ShardedArray({self.shape}, {self.dtype}, {len(self.files)} files)"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": {}}  # memory maps would travel as copies

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("an array in several files cannot be had without a copy")
        return np.array(self[:], dtype=dtype)

    def __getitem__(self, key: Any) -> Any:
        rows, *columns = key if isinstance(key, tuple) else (key,)
        positions = np.asarray(self._rows[rows])  # by the rules of NumPy
        if positions.ndim > 1:
            raise IndexError("rows are a number, a slice, a mask or a list of numbers")
        block = self._read(np.atleast_1d(positions))
        if positions.ndim == 0:
            return block[(0, *columns)]
        # NumPy pairs a list of rows with a list of columns.
        paired = columns and not isinstance(rows, slice) and np.ndim(columns[0]) > 0
        return block[(np.arange(len(block)) if paired else slice(None), *columns)]

    def _read(self, rows: Rows) -> Array:
        order = None
        if (rows[1:] < rows[:-1]).any():
            order = np.argsort(rows, kind="stable")
            rows = rows[order]
        cuts = np.searchsorted(rows, self._starts).tolist()
        # Memory is taken only when files are known to be as large as they should.
        files = {i: self._file(i) for i in np.flatnonzero(np.diff(cuts)).tolist()}
        out = np.empty((len(rows), self.shape[1]), self.dtype)
        if len(rows) and rows[0] < 0:  # in no file
            out[:] = np.nan
        for shard, file in files.items():
            a, b = cuts[shard], cuts[shard + 1]
            here = rows[a:b] - self._starts[shard]
            if order is not None:
                out[order[a:b]] = file.take(here, axis=0)
            else:  # positions are valid; "raise" would read into a second buffer
                np.take(file, here, axis=0, out=out[a:b], mode="clip")
        return out

    def _file(self, shard: int) -> Array:
        """A shard as a memory map, refused when it has not the form it should have."""
        path, rows = self.files[shard]
        if shard not in self._open:
            shape, unchanged = (rows, self.shape[1]), Unchanged([path])
            if not path.is_file():
                raise file_error(path, f"is missing; {CURE}")
            array = read_array(path)
            if array.shape != shape or array.dtype != self.dtype:
                raise file_error(
                    path,
                    f"holds {array.dtype} of shape {array.shape}, the manifest says "
                    f"{self.dtype} of shape {shape}; {CURE}",
                )
            # Indexing a np.memmap itself is slower.
            self._open[shard] = np.asarray(array), unchanged
        array, unchanged = self._open[shard]
        unchanged.check()
        return array
