"""Checks of single parameters: what is wrong, with which value, and what is right."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, get_args

import numpy as np


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {value!r}")
    return bool(value)


def integer(name: str, value: Any, least: int) -> int:
    """A whole number of at least ``least``."""
    whole = not isinstance(value, bool) and hasattr(value, "__index__")
    if not whole or value < least:
        raise ValueError(
            f"{name} must be a whole number of at least {least}; got {value!r}"
        )
    return int(value)


def number(
    name: str,
    value: Any,
    least: float,
    *,
    strict: bool = False,
    below: float = math.inf,
    most: float = math.inf,
) -> float:
    """A number of at least ``least`` (above it if ``strict``) and below ``below``.

    With ``most`` it may be that and no more.
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        raise ValueError(f"{name} must be a number; got {value!r}")
    real = float(value)
    if not least <= real < below or real > most or (strict and real == least):
        bound = f"above {least}" if strict else f"at least {least}"
        limit = "finite" if below == math.inf else f"below {below}"
        limit = limit if most == math.inf else f"at most {most}"
        raise ValueError(f"{name} must be {bound} and {limit}; got {value!r}")
    return real


def check_choice(name: str, value: Any, names: Any) -> None:
    """Refuse a value that the ``Literal`` type ``names`` does not list.

    >>> from typing import Literal
    >>> check_choice("graph", "full", Literal["sparse", "dense"])
    Traceback (most recent call last):
    ValueError: graph must be one of 'sparse', 'dense'; got 'full'
    """
    if value not in get_args(names):
        listed = ", ".join(repr(each) for each in get_args(names))
        raise ValueError(f"{name} must be one of {listed}; got {value!r}")
