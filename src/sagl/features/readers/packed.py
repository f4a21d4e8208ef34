"""Millions of strings in two blocks of memory."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import SupportsIndex, overload

import numpy as np


class PackedStrings(Sequence[str]):
    """A sequence of strings that is quick to pickle and small to hold.

    A list of a million strings costs a hundred bytes for each and is copied string by
    string into every worker process; this is one block of UTF-8 and one of offsets.
    File names that are not UTF-8 survive, as Python's surrogate escapes.

    Examples
    --------
    >>> names = PackedStrings(["a.jpg", "ä b.jpg"])
    >>> names[1], len(names), names == ["a.jpg", "ä b.jpg"]
    ('ä b.jpg', 2, True)
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, strings: Iterable[str]) -> None:
        encoded = [string.encode("utf-8", "surrogateescape") for string in strings]
        self._text = b"".join(encoded)
        # String i lies between bounds i and i + 1.
        self._bounds = np.zeros(len(encoded) + 1, dtype=np.int64)
        lengths = np.fromiter(map(len, encoded), np.int64, count=len(encoded))
        np.cumsum(lengths, out=self._bounds[1:])

    def __len__(self) -> int:
        return len(self._bounds) - 1

    @overload
    def __getitem__(self, index: SupportsIndex) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: SupportsIndex | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = operator.index(index)
        if not -len(self) <= i < len(self):
            raise IndexError(f"row {i} of {len(self)}")
        i %= len(self)
        return self._decoded(int(self._bounds[i]), int(self._bounds[i + 1]))

    def __iter__(self) -> Iterator[str]:
        start = 0
        for end in self._bounds[1:].tolist():
            yield self._decoded(start, end)
            start = end

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(map(operator.eq, self, other))

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:3]))
        return f"PackedStrings([{shown}{', ...' if len(self) > 3 else ''}])"

    def _decoded(self, start: int, end: int) -> str:
        return self._text[start:end].decode("utf-8", "surrogateescape")
