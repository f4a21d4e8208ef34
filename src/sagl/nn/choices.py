"""Named choices: a misspelt one is refused, never taken for something else."""

from __future__ import annotations

from typing import Any, get_args


def check_choice(name: str, value: Any, choices: Any) -> None:
    """Refuse a value that the ``Literal`` type ``choices`` does not list.

    >>> from typing import Literal
    >>> check_choice("graph", "full", Literal["sparse", "dense"])
    Traceback (most recent call last):
    ValueError: graph must be one of 'sparse', 'dense'; got 'full'
    """
    if value not in get_args(choices):
        names = ", ".join(repr(choice) for choice in get_args(choices))
        raise ValueError(f"{name} must be one of {names}; got {value!r}")
