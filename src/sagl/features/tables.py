"""Tables: .csv and .tsv, .jsonl and .parquet, as numbers, labels or columns of strings.

A table of features may have a column of ids, by which the views of several files are
joined. Nothing is paired by position where a file says that this would be wrong.

Numbers are read by pyarrow. Strings of text files are read by Python's ``csv`` and
``json``: pyarrow's csv reader takes a quote that is never closed for a cell to the end
of the file, and its JSON reader refuses columns of mixed types and turns texts that
look like dates into dates.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sagl.features.samples import (
    check_filled,
    check_growth,
    choose_key,
    file_error,
    most_bytes,
    reading,
    string_array,
)
from sagl.schema import parse_json

__all__ = ["TABLE_SUFFIXES", "read_columns"]

TEXT = {".csv": ",", ".tsv": "\t"}
PARQUET = ".parquet"
TABLE_SUFFIXES = frozenset({*TEXT, PARQUET, ".jsonl"})
Columns = dict[str, list[str | None]]  # None for what is not there

# These head a column of labels; any other word could be a label itself.
_LABEL_HEADERS = {"label", "labels", "class", "target", "y"}
# Nobody calls a feature so.
_ID_NAMES = {"id", "ids", "sample", "sample_id", "path", "file", "filename", "uuid"}
_AS_TEXT = "save it as UTF-8 text"
_CELL = 8  # bytes that one takes, if only to say that it is missing
_BATCH_ROWS = 1 << 16


def text_lines(path: Path) -> Iterator[str]:
    """Lines of a file of UTF-8 text, with their ends."""
    with reading(path, _AS_TEXT), path.open(encoding="utf-8-sig", newline="") as text:
        for line in text:
            if "\0" in line:  # as UTF-16 and binary files have
                raise ValueError("it has a zero byte")
            yield line


def rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Number (from 1) and cells of each line; a blank line has no cells."""
    limit = csv.field_size_limit(sys.maxsize)  # a cell may hold a whole document
    try:
        reader = csv.reader(text_lines(path), delimiter=_delimiter(path), strict=True)
        with reading(path, _AS_TEXT):
            for cells in reader:
                yield reader.line_num, cells
    finally:
        csv.field_size_limit(limit)


def _delimiter(path: Path) -> str:
    return TEXT[path.suffix.lower()]


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000, pyarrow does not


def read_table_labels(path: Path, key: str | None) -> NDArray[Any]:
    """The column named ``key`` or ``label``, or the only one, below its header."""
    columns = read_columns(path, [key], labels=True)
    if key is None:
        key = next((name for name in columns if name.lower() == "label"), None)
    name = choose_key(path, key, list(columns), "column")
    labels = check_filled(path, name, columns[name], "label")
    strings = string_array(path, [label.strip() for label in labels])
    for dtype in (np.int64, np.float64):
        try:
            return strings.astype(dtype)
        except OverflowError:  # too long to be counted: an identifier, kept as text
            break
        except ValueError:
            continue
    return strings


def read_columns(
    path: Path, wanted: Sequence[str | None], *, labels: bool = False
) -> Columns:
    """Columns of a table as strings; of a parquet file those that are ``wanted``.

    The first of ``wanted`` is the column that is read, if it is known. A file of text
    with a single column of ``labels`` may do without a line of names.
    """
    match path.suffix.lower():
        case ".parquet":
            with reading(path):
                columns = _parquet_columns(path, wanted, labels=labels)
        case ".jsonl":
            columns = _json_columns(path)
        case _:
            columns = _text_columns(path, labels=labels and wanted[0] is None)
    if not columns or not next(iter(columns.values())):
        raise file_error(path, "holds no rows; write one per sample")
    return columns


def _text_columns(path: Path, *, labels: bool) -> Columns:
    lines = list(rows(path))
    while lines and not lines[-1][1]:  # blank lines at the end are nothing
        lines.pop()
    if labels and max((len(cells) for _, cells in lines), default=0) == 1:
        first, *others = (cells[0].strip() if cells else "" for _, cells in lines)
        numbered = bool(others) and all(map(is_number, others))
        named = first.lower() in _LABEL_HEADERS or (numbered and not is_number(first))
        return {first: [*others]} if first and named else {"label": [first, *others]}
    filled = ((number, cells) for number, cells in lines if cells)
    names = [name.strip() for name in next(filled, (0, []))[1]]
    check_names(path, names)
    table = []
    for number, cells in filled:
        if len(cells) != len(names):
            given = f"line {number} has {len(cells)} cells, expected {len(names)}"
            raise file_error(path, f"{given}; quote cells with {_delimiter(path)!r}")
        table.append(cells)
    return {name: [cells[i] for cells in table] for i, name in enumerate(names)}


def check_names(path: Path, names: list[str]) -> None:
    if not names:
        raise file_error(path, "holds no line of column names")
    if len(set(names)) < len(names):
        raise file_error(
            path, f"has columns of the same name among {names}; rename them"
        )


def _json_columns(path: Path) -> Columns:
    """The fields of the first object; others may lack some, or have more."""
    columns: Columns = {}
    for number, line in enumerate(text_lines(path), start=1):
        if not line.strip():
            continue
        try:
            record = parse_json(line)
        except ValueError as error:
            raise file_error(path, f"line {number} is not JSON ({error})") from None
        if not isinstance(record, dict):
            raise file_error(
                path, f"line {number} holds no JSON object such as {{'text': '...'}}"
            )
        if not columns:
            columns = {name: [] for name in record}
            most_rows = most_bytes(path) // (_CELL * max(1, len(columns)))
        if number > most_rows:
            raise file_error(path, f"line {number}: too few of the fields of the first")
        for name, column in columns.items():
            column.append(_string(record.get(name)))
    return columns


def _string(value: Any) -> str | None:
    """Numbers as they are written; JSON's lists and objects are no samples."""
    return None if value is None or isinstance(value, dict | list) else str(value)


def _parquet_columns(
    path: Path, wanted: Sequence[str | None], *, labels: bool
) -> Columns:
    """Columns of one number or string per cell: those named, or all that are so."""
    from pyarrow import types

    head = parquet_head(path)
    names = head.features
    named = [name for name in wanted if name is not None]
    if labels and not named and "label" in names:
        named = ["label"]
    binary = (types.is_nested, types.is_binary, types.is_large_binary)
    other = {k: t for k, t in head.types.items() if any(is_(t) for is_ in binary)}
    for name in named:
        choose_key(path, name, head.names, "column")
        if name in other:
            raise file_error(
                path,
                f"column {name!r} holds {other[name]}, expected strings; pictures in "
                f"parquet files are read by hf-dataset:{path.parent}",
            )
    if named and (labels or wanted[0] is not None):  # leave others unread
        names = [name for name in names if name == "label"]
    kept = {*named, *names}.difference(other)
    columns = parquet_columns(path, [name for name in head.names if name in kept])
    return {k: [_string(v) for v in c.to_pylist()] for k, c in columns.items()}


class Head(NamedTuple):
    """What a table of features says of its columns."""

    names: list[str]
    words: Mapping[str, str] = {}  # of these, those that hold no numbers; an example
    skip: int = 0  # of a file of text, lines up to the names, if there are any
    types: Mapping[str, Any] = {}  # of a parquet file
    kept: Sequence[str] = ()  # of a parquet file, a row index of pandas

    @property
    def features(self) -> list[str]:
        return [name for name in self.names if name not in self.kept]


def parquet_head(path: Path) -> Head:
    import pyarrow.parquet as pq
    from pyarrow import types

    schema = pq.read_schema(path)
    check_names(path, schema.names)
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    kept = [name for name in index if isinstance(name, str)]  # else rows are counted
    texts = (types.is_string, types.is_large_string, types.is_dictionary)
    words = {f.name: str(f.type) for f in schema if any(is_(f.type) for is_ in texts)}
    of = {field.name: field.type for field in schema}
    return Head(schema.names, words, types=of, kept=kept)


def parquet_columns(path: Path, names: Sequence[str]) -> dict[str, Any]:
    """Columns by name, read piece by piece: a few bytes can stand for any number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    batches: list[Any] = []
    taken = 0
    with pq.ParquetFile(path) as file:
        rows = _check_claims(path, file.metadata, names)
        for batch in file.iter_batches(rows, columns=[*names]):
            taken += sum(map(_size_of, batch.columns))
            check_growth(path, taken)
            batches.append(batch)
    if not any(batch.num_rows for batch in batches):
        raise file_error(path, "holds no rows; write one row per sample")
    table = pa.Table.from_batches(batches)
    return {name: table.column(name) for name in names}


def _check_claims(path: Path, about: Any, names: Sequence[str]) -> int:
    """How many rows to read at once, if what the file says of itself can be true."""
    largest = n_bytes = 0
    wanted = set(names)
    for group in map(about.row_group, range(about.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            above = accumulate(column.path_in_schema.split("."), "{}.{}".format)
            if not wanted.isdisjoint(above):
                largest = max(largest, column.total_uncompressed_size)
                n_bytes += max(_CELL * column.num_values, largest)
    check_growth(path, n_bytes)
    # One string of a dictionary may be meant by every row.
    return min(_BATCH_ROWS, max(1, most_bytes(path) // max(1, 4 * largest)))


def _size_of(column: Any) -> int:
    """Bytes of a column; what a dictionary holds counts as often as it is meant."""
    import pyarrow.compute as pc
    from pyarrow import types

    if not types.is_dictionary(column.type):
        return int(column.nbytes)
    words = column.dictionary
    if types.is_string(words.type) or types.is_large_string(words.type):
        return int(pc.sum(pc.binary_length(words).take(column.indices)).as_py() or 0)
    if types.is_nested(words.type):
        raise ValueError(f"a column holds {column.type}")
    return _CELL * len(column)
