"""Files that must not change while they are read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


class Unchanged:
    """Files that must stay as they are for as long as they are read.

    A memory map of a file that was rewritten gives other numbers; of one that shrinks
    it ends the process without a word. So ask before each pass over the data.
    """

    def __init__(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        self._known = {path: _size_and_time(path) for path in paths}

    def check(self) -> None:
        """Refuse a file of another size or time than at first; one may be removed."""
        for path, known in self._known.items():
            now = _size_and_time(path)
            if known is not None and now is not None and now != known:
                sizes = f"{known[0]:,} bytes, now {now[0]:,}"
                how = sizes if known[0] != now[0] else "it was written to"
                raise ValueError(
                    f"{path} has changed while it was in use ({how}); put back what it "
                    "was and give the same command again, or begin anew"
                )


def _size_and_time(path: str | os.PathLike[str]) -> tuple[int, int] | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
