"""Tables: .csv and .tsv, .jsonl and .parquet, as numbers, labels or columns of strings.

Text is read by Python's ``csv`` and ``json`` and not by pyarrow, whose csv reader takes
a quote that is never closed for a cell to the end of the file, and whose JSON reader
refuses columns of mixed types and turns texts that look like dates into dates.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sagl.features.samples import (
    FileFormatError,
    check_text,
    choose_key,
    file_error,
    shorten,
)

__all__ = ["TABLE_SUFFIXES", "read_columns", "read_number_table", "read_parquet"]

TABLE_SUFFIXES = frozenset({".csv", ".tsv", ".parquet", ".jsonl"})
Columns = dict[str, list[str | None]]  # None for what is not there
_Line = tuple[int, list[str]]  # its number in the file, its cells

# These head a column of labels; any other word could be a label itself.
_LABEL_HEADERS = {"label", "labels", "class", "target", "y"}


def _lines(path: Path, *, strip: bool = True) -> Iterator[_Line]:
    """Number (from 1) and cells of each line; a blank line has no cells."""
    check_text(path)
    limit = csv.field_size_limit(sys.maxsize)  # a cell may hold a whole document
    try:
        with path.open(encoding="utf-8-sig", newline="") as text:
            reader = csv.reader(text, delimiter=_delimiter(path), strict=True)
            for cells in reader:
                yield reader.line_num, [c.strip() for c in cells] if strip else cells
    except (UnicodeDecodeError, csv.Error) as error:
        raise file_error(
            path, f"is not a text file ({error}); save it as UTF-8 text"
        ) from None
    finally:
        csv.field_size_limit(limit)


def _delimiter(path: Path) -> str:
    return "\t" if path.suffix.lower() == ".tsv" else ","


def _ragged(path: Path, line: _Line, width: int, cure: str) -> FileFormatError:
    number, cells = line
    return file_error(
        path,
        f"line {number} ends at column {len(cells)} (cell {shorten(cells[-1])}), "
        f"expected {width} columns; {cure}",
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000, NumPy does not


def read_number_table(path: Path, key: str | None) -> NDArray[Any]:
    """All numbers of a .csv or .tsv, below its line of names; ``key`` must be None."""
    if key is not None:
        raise file_error(
            path, f"a table of text is read whole; leave out the key {key!r}"
        )
    start = list(islice((line for line in _lines(path) if line[1]), 2))
    has_names = bool(start) and _is_header(path, *start)
    if len(start) <= has_names:
        raise file_error(path, "holds no rows of numbers; write one row per sample")
    skipped, width = start[0][0] * has_names, len(start[0][1])
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
    except ValueError as error:
        raise _bad_cell(path, skipped, width, str(error)) from None
    if table.shape[1] != width:
        raise _bad_cell(path, skipped, width, "columns and names differ in number")
    return table


def _is_header(path: Path, first: _Line, second: _Line | None = None) -> bool:
    """Whether the first line names the columns, and does not yet hold numbers."""
    number, cells = first
    counted = [str(i) for i in range(len(cells))]
    has_numbers = any(map(_is_number, cells))
    if cells[0] == "" and cells[1:] and (cells[1:] == counted[:-1] or not has_numbers):
        raise file_error(
            path,
            f"line {number}, column 1: '' where a name should be, as when pandas adds "
            "its row index; write the file with index=False",
        )
    if not has_numbers:
        return True
    # pandas names columns 0, 1, 2, ... by default; above decimals that is no data.
    if second is None or len(cells) == 1 or cells != counted:
        return False
    return not all(cell.lstrip("-").isdigit() for cell in second[1])


def _bad_cell(path: Path, skipped: int, width: int, otherwise: str) -> FileFormatError:
    """Find the first cell that stopped NumPy, to name it."""
    for number, cells in _lines(path):
        if number <= skipped or not cells:
            continue
        if len(cells) != width:
            cure = "give every line the same number of cells"
            return _ragged(path, (number, cells), width, cure)
        for i, cell in enumerate(cells, start=1):
            if not _is_number(cell):
                return file_error(
                    path,
                    f"line {number}, column {i}: {shorten(cell)} is not a number; "
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
    for number, cells in lines[has_header:]:
        if not cells or (column < len(cells) and not cells[column]):
            raise file_error(
                path,
                f"line {number}, column {column + 1}: the label is empty; fill it or "
                "drop the sample",
            )
        if len(cells) != width:
            cure = f"quote labels that contain {_delimiter(path)!r}"
            raise _ragged(path, (number, cells), width, cure)
        labels.append(cells[column])
    if not labels:
        raise file_error(path, "holds a header but no labels; write one per line")
    strings = np.array(labels)
    for dtype in (np.int64, np.float64):
        try:
            return strings.astype(dtype)
        except OverflowError:  # too long to be counted: an identifier, kept as text
            break
        except ValueError:
            continue
    return strings


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


def read_columns(path: Path, wanted: Sequence[str | None]) -> Columns:
    """Columns of a table as strings; of a parquet file those that are ``wanted``.

    The first of ``wanted`` is the column of samples, if it is known.
    """
    match path.suffix.lower():
        case ".parquet":
            columns = _parquet_strings(path, wanted)
        case ".jsonl":
            columns = _json_columns(path)
        case _:
            columns = _text_columns(path)
    if not columns or not next(iter(columns.values())):
        raise file_error(path, "holds no rows; write one per sample")
    return columns


def _text_columns(path: Path) -> Columns:
    lines = (line for line in _lines(path, strip=False) if line[1])
    names = [name.strip() for name in next(lines, (0, []))[1]]
    _check_names(path, names)
    columns: list[list[str | None]] = [[] for _ in names]
    for number, cells in lines:
        if len(cells) != len(names):
            raise file_error(
                path,
                f"line {number} has {len(cells)} cells, expected {len(names)}; quote "
                f"cells that contain {_delimiter(path)!r}",
            )
        for column, cell in zip(columns, cells, strict=True):
            column.append(cell)
    return dict(zip(names, columns, strict=True))


def _check_names(path: Path, names: list[str]) -> None:
    if not names:
        raise file_error(path, "holds no line of column names")
    if len(set(names)) < len(names):
        raise file_error(
            path, f"has columns of the same name among {names}; rename them"
        )


def _json_columns(path: Path) -> Columns:
    """The fields of the first object; others may lack some, or have more."""
    columns: Columns = {}
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    record = json.loads(line)
                except ValueError as error:
                    raise file_error(
                        path, f"line {number} is not JSON ({error})"
                    ) from None
                if not isinstance(record, dict):
                    raise file_error(
                        path,
                        f"line {number} holds no JSON object such as {{'text': '...'}}",
                    )
                columns = columns or {name: [] for name in record}
                for name, column in columns.items():
                    column.append(_string(record.get(name)))
    except UnicodeDecodeError as error:
        raise file_error(path, f"is not UTF-8 text ({error}); write it again") from None
    return columns


def _string(value: Any) -> str | None:
    """Numbers as they are written; JSON's lists and objects are no samples."""
    return None if value is None or isinstance(value, dict | list) else str(value)


def _parquet_columns(
    path: Path, choose: Callable[[Any, list[str]], list[str]]
) -> dict[str, Any]:
    """Columns chosen by the schema and the names that are no row index of pandas."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            index = (schema.pandas_metadata or {}).get("index_columns", [])
            names = choose(schema, [name for name in schema.names if name not in index])
            _check_names(path, names)
            table = file.read(columns=names)
    except (pa.ArrowException, OSError) as error:
        raise file_error(
            path,
            f"is cut short or not a .parquet file ({error}); copy or write it again",
        ) from None
    if table.num_rows == 0:
        raise file_error(path, "holds no rows; write one row per sample")
    return {name: table.column(name) for name in names}


def _parquet_strings(path: Path, wanted: Sequence[str | None]) -> Columns:
    """Columns of one number or string per cell: those named, or all that are so."""
    named = [name for name in wanted if name is not None]

    def choose(schema: Any, others: list[str]) -> list[str]:
        plain = {field.name for field in schema if not _holds_more(field.type)}
        for name in named:
            choose_key(path, name, schema.names, "column")
            if name not in plain:
                raise file_error(
                    path,
                    f"column {name!r} holds {schema.field(name).type}, expected "
                    "strings; pictures inside of parquet files are read by "
                    f"hf-dataset:{path.parent}",
                )
        if wanted[0] is not None:  # the column is known: leave the others unread
            others = [name for name in others if name == "label"]
        kept = {*named, *plain.intersection(others)}
        return [name for name in schema.names if name in kept]

    return {
        name: [_string(value) for value in column.to_pylist()]
        for name, column in _parquet_columns(path, choose).items()
    }


def _holds_more(arrow_type: Any) -> bool:
    from pyarrow import types

    binary = types.is_binary(arrow_type) or types.is_large_binary(arrow_type)
    return bool(types.is_nested(arrow_type) or binary)


def _chosen_parquet(path: Path, key: str | None) -> dict[str, Any]:
    def choose(schema: Any, others: list[str]) -> list[str]:
        return (
            others if key is None else [choose_key(path, key, schema.names, "column")]
        )

    return _parquet_columns(path, choose)


def read_parquet(path: Path, key: str | None) -> NDArray[Any]:
    """All columns side by side, or the rows of a single column of lists."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = _chosen_parquet(path, key)
    [name, column], *others = columns.items()
    is_list = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    lists = not others and any(check(column.type) for check in is_list)
    for name, column in columns.items():
        number = column.type.value_type if lists else column.type
        if not pa.types.is_primitive(number) or pa.types.is_temporal(number):
            raise file_error(
                path,
                f"column {name!r} holds {number}, expected numbers; drop it, or choose "
                f"the column of features, {path.name}::COLUMN on the command line",
            )
        _check_no_null(path, name, column)
    if not lists:
        return np.column_stack([column.to_numpy() for column in columns.values()])
    lengths = pc.list_value_length(column).to_numpy()
    width = int(lengths[0])
    if (lengths != width).any():
        row = int(np.argmax(lengths != width))
        raise file_error(
            path,
            f"row {row} (counting from 0), column {name!r} has {lengths[row]} values, "
            f"expected {width} as in row 0; make all lists equally long",
        )
    values = pc.list_flatten(column)
    _check_no_null(path, name, values, width)
    return np.asarray(values.to_numpy()).reshape(len(column), width)


def read_parquet_labels(path: Path, key: str | None) -> NDArray[Any]:
    """The column named ``key`` or ``label``, or the only one."""
    columns = _chosen_parquet(path, key)
    if key is None and "label" in columns:
        key = "label"
    name = choose_key(path, key, list(columns), "column")
    _check_no_null(path, name, columns[name])
    labels = columns[name].to_pylist()
    if isinstance(labels[0], list):
        raise file_error(
            path, f"column {name!r} holds lists, expected one label per row"
        )
    return np.array(labels)


def _check_no_null(path: Path, name: str, column: Any, width: int = 1) -> None:
    """Refuse what is missing, in cells of ``width`` values."""
    if column.null_count:
        row, i = divmod(int(np.argmax(column.is_null().to_numpy())), width)
        value = f", value {i}" if width > 1 else ""
        raise file_error(
            path,
            f"row {row} (counting from 0), column {name!r}{value} is null; fill it or "
            "drop the row",
        )
