"""Columns that people know about their samples: what to colour points by."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

ColumnKind = Literal["category", "number", "text"]

MISSING = "(missing)"
_ID_COLUMNS = ("id", "sample", "path", "file")
# More values than this and a column of words is something to read, not to colour by.
_MOST_CATEGORIES = 500
# Whole numbers with so few values are codes: colours apart, not a scale.
_MOST_CODES = 20


@dataclass(frozen=True)
class Column:
    """One value per sample.

    Attributes
    ----------
    name : str
    kind : "category", "number" or "text"
    values : ndarray
        Codes (category), float64 with NaN where missing (number), or strings (text).
    categories : tuple of str
        What the codes mean.
    """

    name: str
    kind: ColumnKind
    values: NDArray[Any]
    categories: tuple[str, ...] = ()


def make_column(name: str, strings: Sequence[str]) -> Column:
    """A column from what its cells say: numbers, few different words, or texts.

    Examples
    --------
    >>> make_column("weight", ["1.5", "", "2"]).kind
    'number'
    >>> make_column("kind", ["cat", "dog", "cat"]).categories
    ('cat', 'dog')
    """
    cells = [cell.strip() for cell in strings]
    numbers = _numbers(cells)
    if numbers is not None:
        known = numbers[~np.isnan(numbers)]
        whole = bool((known == np.floor(known)).all())
        if not whole or len(np.unique(known)) > _MOST_CODES:
            return Column(name, "number", numbers)
        return category_column(name, cells, numeric=True)
    if len(set(cells)) > _MOST_CATEGORIES:
        return Column(name, "text", np.array(cells, dtype=object))
    return category_column(name, cells)


def category_column(
    name: str, values: Sequence[Any], *, numeric: bool = False
) -> Column:
    """A column of categories, in the order of their names or numbers."""
    words = [str(value) or MISSING for value in values]
    order = sorted(
        set(words), key=lambda word: (_as_number(word) if numeric else 0.0, word)
    )
    codes = {word: code for code, word in enumerate(order)}
    return Column(
        name, "category", np.array([codes[word] for word in words]), tuple(order)
    )


def read_columns(path: Path, ids: Sequence[str]) -> tuple[Column, ...]:
    """The columns of a CSV file with a header, one line per sample.

    A column named ``id`` (or ``sample``, ``path``, ``file``) joins the lines to the
    samples by id; without one the lines are in the samples' order.
    """
    header, lines = _table(path)
    n = len(ids)
    key = next((i for i, name in enumerate(header) if name in _ID_COLUMNS), None)
    if key is None:
        if len(lines) != n:
            raise ValueError(
                f"{path}: {len(lines)} lines for {n} samples; give one line per "
                "sample, or a column named id"
            )
        rows = lines
    else:
        line_of = {line[key]: line for line in lines}
        missing = next((i for i in ids if i not in line_of), None)
        if missing is not None:
            raise ValueError(
                f"{path}: there is no line with the {header[key]} {missing!r}; give "
                "one line per sample"
            )
        rows = [line_of[i] for i in ids]
    return tuple(
        make_column(name, [row[i] for row in rows])
        for i, name in enumerate(header)
        if i != key
    )


def _table(path: Path) -> tuple[list[str], list[list[str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header, *lines = list(csv.reader(file))
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file") from None
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not UTF-8 text; save it as UTF-8") from None
    except csv.Error as error:
        raise ValueError(f"{path}: not a table ({error})") from None
    except ValueError:
        raise ValueError(f"{path}: the file is empty; it needs a header") from None
    for number, line in enumerate(lines, start=2):
        if len(line) != len(header):
            raise ValueError(
                f"{path}: line {number} has {len(line)} cells, the header "
                f"{len(header)}; give every line as many"
            )
    names = [name.strip() for name in header]
    if len(set(names)) < len(names) or "" in names:
        raise ValueError(f"{path}: each column needs a name of its own in the header")
    return names, lines


def _numbers(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """The cells as numbers, NaN where empty; None if one is none or all are empty."""
    values = np.full(len(cells), np.nan)
    for i, cell in enumerate(cells):
        if cell:
            values[i] = _as_number(cell)
            if not np.isfinite(values[i]):
                return None
    return None if np.isnan(values).all() else values


def _as_number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("inf")
