"""Patterns such as ``data-{000..004}.tar``, as webdataset and shells write them."""

from __future__ import annotations

import re

_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d+)\.\.(\d+)")


def expand_braces(pattern: str) -> list[str]:
    """Every name that a pattern stands for, in order.

    >>> expand_braces("a-{08..10}.tar")
    ['a-08.tar', 'a-09.tar', 'a-10.tar']
    >>> expand_braces("{train,test}-{0..1}.tar")
    ['train-0.tar', 'train-1.tar', 'test-0.tar', 'test-1.tar']
    """
    braces = _BRACES.search(pattern)
    if braces is None:
        return [pattern]
    start, end = pattern[: braces.start()], pattern[braces.end() :]
    return [
        start + item + rest for item in _items(braces[1]) for rest in expand_braces(end)
    ]


def _items(inside: str) -> list[str]:
    limits = _RANGE.fullmatch(inside)
    if limits is None:
        return inside.split(",")
    first, last = limits.groups()
    if int(first) > int(last):
        raise ValueError(f"{{{inside}}}: the range runs backwards; write it forwards")
    width = len(first)
    return [f"{number:0{width}d}" for number in range(int(first), int(last) + 1)]
