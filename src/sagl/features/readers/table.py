"""Tables with a column of texts or of paths of pictures: .csv, .tsv, .parquet, .jsonl.

Without ``column`` the only column that is neither ids nor labels is read. Without
``label_column`` one named ``label`` gives the labels, if it is filled throughout. The
id is the one in ``id_column``, or the path of a picture, or the number of a text's
row, counted from 0.
"""

from __future__ import annotations

import csv
import json
import posixpath
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sagl.features._errors import file_error
from sagl.features._keys import choose_key
from sagl.features.readers.base import (
    ImageFiles,
    Texts,
    first_repeat,
    is_unicode,
    make_texts,
)
from sagl.features.readers.file_list import open_named_files
from sagl.features.readers.kinds import decide_kind
from sagl.features.samples import Kind

_Columns = dict[str, list[str | None]]
SUFFIXES = frozenset({".csv", ".tsv", ".parquet", ".jsonl"})
_LABEL = "label"


def open_table(
    path: Path,
    *,
    kind: Kind | None = None,
    column: str | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
) -> Texts | ImageFiles:
    """Samples from a column of a table."""
    columns = _read(path, [column, id_column, label_column])
    names = list(columns)
    for name in (id_column, label_column):
        if name is not None:
            choose_key(path, name, names, "column")
    labelled_by = label_column
    if _LABEL in names and _LABEL not in (column, id_column) and labelled_by is None:
        labelled_by = _LABEL
    labels = _labels(path, columns, labelled_by, asked_for=label_column is not None)
    others = [name for name in names if name not in (id_column, labelled_by)]
    column = _value_column(path, column, names, others)
    values = columns[column]
    source = {
        "reader": "table",
        "path": str(path),
        "column": column,
        "id_column": id_column,
        "label_column": None if labels is None else labelled_by,
    }
    filled = ((f"row {row}", v) for row, v in enumerate(values) if v and v.strip())
    if decide_kind(path, kind, filled) == "text":
        ids = _ids(path, columns, id_column) or list(map(str, range(len(values))))
        return make_texts(ids, values, labels, source)
    paths = [posixpath.normpath(value) if value else "" for value in values]
    ids = _ids(path, columns, id_column) or _paths_as_ids(path, column, paths)
    return open_named_files(path, ids, paths, labels, source)


def _value_column(
    path: Path, column: str | None, names: list[str], others: list[str]
) -> str:
    if column is not None:
        return choose_key(path, column, names, "column")
    if len(others) != 1:
        raise file_error(
            path,
            f"has the columns {', '.join(names)}; say which one holds the texts or "
            "paths (--column)",
        )
    return others[0]


def _labels(
    path: Path, columns: _Columns, name: str | None, *, asked_for: bool
) -> list[str] | None:
    if name is None:
        return None
    labels: list[str] = []
    for row, label in enumerate(columns[name]):
        if label is None or not label.strip() or not is_unicode(label):
            if not asked_for:
                return None
            raise file_error(
                path,
                f"row {row} (counting from 0), column {name!r}: the label is missing; "
                "fill it or drop the row",
            )
        labels.append(label)
    return labels


def _ids(path: Path, columns: _Columns, name: str | None) -> list[str]:
    return [] if name is None else _checked_ids(path, name, columns[name], "rename one")


def _paths_as_ids(path: Path, column: str, paths: Sequence[str]) -> list[str]:
    cure = "drop one, or name a column of ids (--id-column)"
    return _checked_ids(path, column, paths, cure)


def _checked_ids(
    path: Path, name: str, values: Sequence[str | None], cure: str
) -> list[str]:
    ids: list[str] = []
    where = f"(counting from 0), column {name!r}"
    for row, value in enumerate(values):
        if not value or not value.strip():
            raise file_error(path, f"row {row} {where}: it is empty; fill it")
        if not is_unicode(value):
            raise file_error(
                path, f"row {row} {where}: {value!r} is not proper Unicode"
            )
        ids.append(value)
    repeat = first_repeat(ids)
    if repeat is not None:
        one, other = repeat
        raise file_error(
            path, f"rows {one} and {other} {where}: both are {ids[one]!r}; {cure}"
        )
    return ids


def _read(path: Path, wanted: Sequence[str | None]) -> _Columns:
    """Columns as strings, with None for what is not there."""
    match path.suffix.lower():
        case ".parquet":
            columns = _read_parquet(path, wanted)
        case ".jsonl":
            columns = _read_json_lines(path)
        case _:
            columns = _read_text(path)
    if not columns or not next(iter(columns.values())):
        raise file_error(path, "holds no rows; write one per sample")
    return columns


def _read_text(path: Path) -> _Columns:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    try:
        with (
            _long_cells(),
            path.open(encoding="utf-8-sig", newline="") as file,
        ):
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            names = [name.strip() for name in next(reader, [])]
            _check_names(path, names)
            columns: list[list[str | None]] = [[] for _ in names]
            for cells in reader:
                if not cells:
                    continue  # a blank line
                if len(cells) != len(names):
                    raise file_error(
                        path,
                        f"line {reader.line_num} has {len(cells)} cells, expected "
                        f"{len(names)}; quote cells that contain {delimiter!r}",
                    )
                for column, cell in zip(columns, cells, strict=True):
                    column.append(cell)
    except (UnicodeDecodeError, csv.Error) as error:
        raise file_error(
            path, f"is not a table in UTF-8 ({error}); write it again"
        ) from None
    return dict(zip(names, columns, strict=True))


@contextmanager
def _long_cells() -> Iterator[None]:
    """Let a cell hold a whole document."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _check_names(path: Path, names: list[str]) -> None:
    if not names:
        raise file_error(path, "holds no line of column names")
    if len(set(names)) < len(names):
        raise file_error(path, f"has columns of the same name among {names}")


def _read_json_lines(path: Path) -> _Columns:
    """The fields of the first object; others may lack some, or have more."""
    columns: _Columns = {}
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                record = _json_object(path, number, line)
                columns = columns or {name: [] for name in record}
                for name, column in columns.items():
                    column.append(_string(record.get(name)))
    except UnicodeDecodeError as error:
        raise file_error(path, f"is not UTF-8 text ({error}); write it again") from None
    return columns


def _json_object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise file_error(path, f"line {number} is not JSON ({error})") from None
    if not isinstance(record, dict):
        raise file_error(
            path, f"line {number} holds no JSON object such as {{'text': '...'}}"
        )
    return record


def _read_parquet(path: Path, wanted: Sequence[str | None]) -> _Columns:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise file_error(
            path, 'reading .parquet needs pyarrow: pip install "sagl[parquet]"'
        ) from None
    named = [name for name in wanted if name is not None]
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            for name in named:
                choose_key(path, name, schema.names, "column")
            index = (schema.pandas_metadata or {}).get("index_columns", [])
            kept = [
                name
                for name in schema.names
                if name in named or (name not in index and _is_plain(schema, name))
            ]
            if wanted[0] is not None:  # the column is known: leave the others unread
                kept = [name for name in kept if name in (*named, _LABEL)]
            _check_names(path, kept)
            for name in kept:
                _check_plain(path, schema, name)
            table = file.read(columns=kept)
    except (pa.ArrowException, OSError) as error:
        raise file_error(
            path, f"is cut short or not a .parquet file ({error}); write it again"
        ) from None
    return {
        name: [_string(value) for value in table.column(name).to_pylist()]
        for name in kept
    }


def _is_plain(schema: Any, name: str) -> bool:
    """Whether a column holds one number or string per cell."""
    from pyarrow import types

    indices = schema.get_all_field_indices(name)
    kinds = [schema.field(i).type for i in indices]
    return not any(
        types.is_nested(kind) or types.is_binary(kind) or types.is_large_binary(kind)
        for kind in kinds
    )


def _check_plain(path: Path, schema: Any, name: str) -> None:
    if not _is_plain(schema, name):
        raise file_error(
            path,
            f"column {name!r} holds {schema.field(name).type}, expected strings; "
            f"pictures inside of parquet files are read by hf-dataset:{path.parent}",
        )


def _string(value: Any) -> str | None:
    """Numbers as they are written; JSON's lists and objects are no samples."""
    if value is None or isinstance(value, dict | list):
        return None
    return str(value)
