"""What the readers of all sources share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sagl.features.decode import image_from_file
from sagl.features.readers.packed import PackedStrings
from sagl.features.samples import Kind, Unreadable


@dataclass(eq=False)
class ListedSamples(ABC):
    """Ids and labels of samples, and where they come from.

    Attributes
    ----------
    kind : "image" or "text"
    ids : sequence of str
    labels : sequence of str or None
    source : dict
        Reader and origin, as JSON.
    ignored : int
        Files, members or lines that are there but no samples.
    """

    kind: Kind
    ids: Sequence[str]
    labels: Sequence[str] | None
    source: dict[str, Any]
    ignored: int

    def __len__(self) -> int:
        return len(self.ids)

    @abstractmethod
    def __getitem__(self, row: int) -> Any:
        """One sample, decoded. Raises Unreadable when it cannot be."""

    def describe(self) -> dict[str, Any]:
        return {
            **self.source,
            "kind": self.kind,
            "samples": len(self),
            "labelled": self.labels is not None,
            "ignored": self.ignored,
        }


@dataclass(eq=False)
class ImageFiles(ListedSamples):
    """Pictures in files of their own; without ``paths`` an id is the path."""

    root: Path
    paths: Sequence[str] | None = None

    def __getitem__(self, row: int) -> Any:
        paths = self.ids if self.paths is None else self.paths
        path = paths[row]
        if not path:
            raise Unreadable("the path is missing")
        return image_from_file(self.root / path)


@dataclass(eq=False)
class Texts(ListedSamples):
    """Texts held in memory; ``problems`` says why a row has none."""

    texts: Sequence[str]
    problems: dict[int, str]

    def __getitem__(self, row: int) -> str:
        text = self.texts[row]
        row %= len(self)
        if row in self.problems:
            raise Unreadable(self.problems[row])
        return text


def make_texts(
    ids: Sequence[str],
    values: Sequence[str | None],
    labels: Sequence[str] | None,
    source: dict[str, Any],
    ignored: int = 0,
) -> Texts:
    """Texts of which some may be missing, blank or not proper Unicode."""
    found = ((row, _problem(value)) for row, value in enumerate(values))
    problems = {row: problem for row, problem in found if problem is not None}
    texts = PackedStrings(
        "" if value is None or row in problems else value
        for row, value in enumerate(values)
    )
    packed_ids = PackedStrings(ids)
    return Texts("text", packed_ids, pack(labels), source, ignored, texts, problems)


def _problem(value: str | None) -> str | None:
    if value is None:
        return "the text is missing"
    if not value.strip():
        return "the text is blank"
    return None if is_unicode(value) else "the text is not proper Unicode"


def is_unicode(string: str) -> bool:
    """Whether all characters are whole: JSON can say half of one, ``\\ud800``."""
    try:
        string.encode()
    except UnicodeEncodeError:
        return False
    return True


def pack(strings: Sequence[str] | None) -> PackedStrings | None:
    return None if strings is None else PackedStrings(strings)


def first_repeat(ids: Sequence[str]) -> tuple[int, int] | None:
    """Rows of the first two equal ids, or None when all differ.

    >>> first_repeat(["a", "b", "a"])
    (0, 2)
    """
    if len(set(ids)) == len(ids):
        return None
    first: dict[str, int] = {}
    for row, name in enumerate(ids):
        if first.setdefault(name, row) != row:
            return first[name], row
    raise AssertionError("unreachable: two ids are equal")
