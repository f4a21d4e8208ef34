"""Pieces of large files, read from many processes at once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

_MOST_OPEN = 64  # well below the usual limit of a process, 1,024


class OpenFiles:
    """Files that are opened when first read from, anew in each process.

    Copies, pickled or forked, share nothing: no position in a file, no handle.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = tuple(paths)
        self._handles: dict[int, int] = {}
        self._owner = os.getpid()

    def read(self, file: int, start: int, size: int) -> bytes:
        """``size`` bytes of file number ``file``; fewer where it has been cut short."""
        return os.pread(self._handle(file), size, start)

    def _handle(self, file: int) -> int:
        if self._owner != os.getpid():  # forked: leave the parent's handles alone
            self._handles, self._owner = {}, os.getpid()
        if file not in self._handles:
            if len(self._handles) >= _MOST_OPEN:
                oldest = next(iter(self._handles))
                os.close(self._handles.pop(oldest))
            self._handles[file] = os.open(self.paths[file], os.O_RDONLY)
        return self._handles[file]

    def __getstate__(self) -> tuple[Path, ...]:
        return self.paths

    def __setstate__(self, paths: tuple[Path, ...]) -> None:
        self.__init__(paths)  # type: ignore[misc]

    def __del__(self) -> None:
        if self._owner == os.getpid():
            for handle in self._handles.values():
                os.close(handle)
