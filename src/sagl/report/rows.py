"""What figures need to know of a method's row in a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

Kind = Literal["without labels", "with class names", "with labels"]

# Of the rows that are set apart, those that use names of classes, not labels.
_CLASS_NAMES = ("zero-shot", "lafter")


class MethodRow(Protocol):
    """The part of ``sagl.experiments.compare_table.Row`` that is drawn."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def supervised(self) -> bool: ...
    @property
    def mean(self) -> Mapping[str, float]: ...
    @property
    def sd(self) -> Mapping[str, float]: ...
    @property
    def seconds(self) -> float | None: ...
    @property
    def published_acc(self) -> float | None: ...


def kind(row: MethodRow) -> Kind:
    """What a method is told about the classes."""
    if not row.supervised:
        return "without labels"
    return "with class names" if row.name in _CLASS_NAMES else "with labels"
