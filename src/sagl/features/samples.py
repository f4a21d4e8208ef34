"""What features are extracted from: pictures or texts, each with an id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

Kind = Literal["image", "text"]


class Unreadable(ValueError):  # noqa: N818
    """A sample that cannot be read; the message says why, in a few words."""


class Samples(Protocol):
    """A source of samples. It can be pickled: worker processes read from copies.

    Attributes
    ----------
    kind : "image" or "text"
        What a sample is: a Pillow image in mode RGB, or a str.
    ids : sequence of str
        A unique name per sample, the same on every machine: the path below the root,
        the key in a shard, the line number. In the order of the source.
    labels : sequence of str or None
        A class per sample where the source knows one. For evaluation alone.
    """

    @property
    def kind(self) -> Kind: ...
    @property
    def ids(self) -> Sequence[str]: ...
    @property
    def labels(self) -> Sequence[str] | None: ...

    def __getitem__(self, row: int) -> Any:
        """One sample, decoded. Raises Unreadable when it cannot be."""
        ...

    def describe(self) -> dict[str, Any]:
        """Where the samples come from, as JSON: what a store says about its source."""
        ...
