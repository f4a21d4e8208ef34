"""Tables of numbers, and labels, from .csv and .tsv files."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sagl.features._errors import FileFormatError, file_error
from sagl.features._keys import choose_key

_Line = tuple[int, list[str]]  # its number in the file, its cells

# A first line that says one of these heads a column of labels; any other word could
# be a label itself.
_LABEL_HEADERS = {"label", "labels", "class", "target", "y"}


def read_text(path: Path, key: str | None) -> NDArray[Any]:
    """The whole table, below its line of names if it has one; ``key`` must be None."""
    if key is not None:
        raise file_error(
            path, f"a table of text is read whole; leave out the key {key!r}"
        )
    start = list(islice((line for line in _lines(path) if line[1]), 2))
    has_names = bool(start) and _is_header(path, *start)
    if len(start) <= has_names:
        raise file_error(path, "holds no rows of numbers; write one row per sample")
    number, first = start[0]
    skipped, width = number if has_names else 0, len(first)
    try:
        table = np.loadtxt(
            path,
            delimiter=_delimiter(path),
            comments=None,
            quotechar='"',
            skiprows=skipped,
            ndmin=2,
            encoding="utf-8-sig",
        )
    except ValueError as exc:
        raise _bad_cell(path, skipped, width, str(exc)) from None
    if table.shape[1] != width:
        raise _bad_cell(path, skipped, width, "columns and names differ in number")
    return table


def _is_header(path: Path, first: _Line, second: _Line | None = None) -> bool:
    """Whether the first line names the columns, and does not yet hold numbers."""
    number, cells = first
    if len(cells) > 1 and cells[0] == "":
        others = cells[1:]
        if _are_counted(others) or not any(map(_is_number, others)):
            raise file_error(
                path,
                f"line {number}, column 1: '' where a name should be, as when pandas "
                "adds its row index; write the file with index=False",
            )
    if not any(map(_is_number, cells)):
        return True
    # pandas names columns 0, 1, 2, ... by default; above decimals that is no data.
    if second is None or len(cells) == 1 or not _are_counted(cells):
        return False
    return not all(cell.lstrip("-").isdigit() for cell in second[1])


def _are_counted(cells: list[str]) -> bool:
    return cells == [str(i) for i in range(len(cells))]


def _bad_cell(path: Path, skipped: int, width: int, otherwise: str) -> FileFormatError:
    """Find the first cell that stopped NumPy, to name it."""
    for line, cells in _lines(path):
        if line <= skipped or not cells:
            continue
        if len(cells) != width:
            cure = "give every line the same number of cells"
            return _ragged(path, line, cells, width, cure)
        for i, cell in enumerate(cells, start=1):
            if not _is_number(cell):
                return file_error(
                    path,
                    f"line {line}, column {i}: {_short(cell)} is not a number; "
                    f"fill every cell with one, separated by {_delimiter(path)!r}",
                )
    return file_error(path, f"cannot be read as numbers ({otherwise}); write it again")


def read_text_labels(path: Path, key: str | None) -> NDArray[Any]:
    """The column named ``key`` or ``label``, or the only one, below its header."""
    lines = list(_lines(path))
    while lines and not lines[-1][1]:  # blank lines at the end are no labels
        lines.pop()
    if not lines:
        raise file_error(path, "holds no labels; write one per line")
    column, has_header = _label_column(path, key, [cells for _, cells in lines])
    width = len(lines[0][1])
    labels = []
    for line, cells in lines[has_header:]:
        if not cells or (column < len(cells) and not cells[column]):
            raise file_error(
                path,
                f"line {line}, column {column + 1}: the label is empty; fill it or "
                "drop the sample",
            )
        if len(cells) != width:
            cure = f"quote labels that contain {_delimiter(path)!r}"
            raise _ragged(path, line, cells, width, cure)
        labels.append(cells[column])
    if not labels:
        raise file_error(path, "holds a header but no labels; write one per line")
    return _numbers_or_strings(labels)


def _label_column(
    path: Path, key: str | None, lines: list[list[str]]
) -> tuple[int, bool]:
    """Position of the labels, and whether the first line is a header."""
    first = lines[0]
    lowered = [cell.lower() for cell in first]
    if key is not None:
        return first.index(choose_key(path, key, first, "column")), True
    if "label" in lowered:
        return lowered.index("label"), True
    if len(first) > 1:
        raise file_error(
            path,
            f"has {len(first)} columns, none named 'label'; name one so, or choose "
            f"one by its name, {path.name}::COLUMN on the command line",
        )
    above_numbers = (
        len(lines) > 1
        and first != []
        and not _is_number(first[0])
        and all(_is_number(cells[0]) for cells in lines[1:] if cells)
    )
    return 0, above_numbers or bool(_LABEL_HEADERS.intersection(lowered))


def _numbers_or_strings(cells: list[str]) -> NDArray[Any]:
    strings = np.array(cells)
    for dtype in (np.int64, np.float64):
        try:
            return strings.astype(dtype)
        except OverflowError:  # too long to be counted: an identifier, kept as text
            return strings
        except ValueError:
            continue
    return strings


def _lines(path: Path) -> Iterator[_Line]:
    """Number (from 1) and stripped cells of each line; a blank line has no cells."""
    cure = "save it as UTF-8 text"
    with path.open("rb") as file:
        if b"\0" in file.read(2**16):
            raise file_error(path, f"is not a text file (it has a zero byte); {cure}")
    try:
        with path.open(encoding="utf-8-sig", newline="") as text:
            reader = csv.reader(text, delimiter=_delimiter(path))
            for cells in reader:
                yield reader.line_num, [cell.strip() for cell in cells]
    except (UnicodeDecodeError, csv.Error) as exc:
        raise file_error(path, f"is not a text file ({exc}); {cure}") from None


def _delimiter(path: Path) -> str:
    return "\t" if path.suffix.lower() == ".tsv" else ","


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000, NumPy does not


def _ragged(
    path: Path, line: int, cells: list[str], width: int, cure: str
) -> FileFormatError:
    return file_error(
        path,
        f"line {line} ends at column {len(cells)} (cell {_short(cells[-1])}), "
        f"expected {width} columns; {cure}",
    )


def _short(cell: str) -> str:
    return repr(cell if len(cell) <= 40 else cell[:37] + "...")
