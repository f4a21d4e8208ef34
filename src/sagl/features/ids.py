"""Ids of the rows of tables: what the views of several files are joined by.

A ``.csv``, ``.tsv`` or ``.parquet`` file of features may have a column of ids. Nothing
is paired by position where a file says that this would be wrong.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sagl.features.samples import (
    check_filled,
    check_readable,
    choose_key,
    file_error,
    reading,
)
from sagl.features.tables import parquet_columns, side_by_side

Array = NDArray[Any]
Ids = list[str]

_TEXT = {".csv": ",", ".tsv": "\t"}
_PARQUET = ".parquet"
# Nobody calls a feature so.
_NAMES = frozenset(
    ("id", "ids", "sample", "sample_id", "path", "file", "filename", "uuid")
)


def read_identified(path: Path, key: str | None, id_column: str) -> tuple[Ids, Array]:
    """Ids and numbers of a table; with ``key`` the numbers of that column alone."""
    suffix = path.suffix.lower()
    if suffix not in (*_TEXT, _PARQUET):
        raise file_error(
            path,
            f"is no table, so it has no column {id_column!r} to join views by; give "
            ".csv, .tsv or .parquet, or leave out --id-column",
        )
    check_readable(path)
    with reading(path, "fill every cell below the names, with numbers but for the ids"):
        names, index = _names(path)
        choose_key(path, id_column, names, "column")
        if suffix in _TEXT:
            columns = _text_table(path, id_column)
        else:
            columns = parquet_columns(path, names)
        cells = columns.pop(id_column)
        words = [None if cell is None else str(cell) for cell in cells.to_pylist()]
        ids = check_filled(path, id_column, words, "id")
        _check_unique(path, ids)
        for name in index:
            columns.pop(name, None)
        if key is not None:
            columns = {key: columns[choose_key(path, key, [*columns], "column")]}
        if not columns:
            raise file_error(path, "holds no column but the ids; features are missing")
        return ids, side_by_side(path, columns, "take it out")


def check_no_ids(path: Path, key: str | None, *, joinable: bool) -> None:
    """Refuse a column that holds no features; say how it is read, if ``joinable``."""
    suffix = path.suffix.lower()
    if suffix not in (*_TEXT, _PARQUET) or key is not None:
        return
    check_readable(path)
    with reading(path):
        names, index = _names(path)
        wordy = _columns_of_words(path)
        features = [name for name in names if name not in index]
    cure = "take it out"
    if "" in names and suffix in _TEXT and joinable:
        raise file_error(
            path,
            "the first column has no name, as when pandas adds its row index; write it "
            "with index_label='id' and give --id-column id, or with index=False",
        )
    for name in features:
        if name.lower() not in _NAMES and name not in wordy:
            continue
        if joinable:
            cure = f"if it holds ids give --id-column {name}, else take it out"
        holds = f"{wordy[name]!r}, no number" if name in wordy else "no features"
        raise file_error(path, f"column {name!r} holds {holds}; {cure}")


def check_same_index(files: Mapping[str, Path]) -> None:
    """Refuse parquet files in which pandas kept row labels that differ."""
    first: tuple[Path, list[Any]] | None = None
    for path in files.values():
        labels = _row_labels(path) if path.suffix.lower() == _PARQUET else None
        if labels is None:
            continue
        if first is not None and first[1] != labels:
            raise file_error(
                path,
                f"has other row labels than {first[0]}, or in another order; name "
                "their column by --id-column to join the views by it, or write both "
                "with index=False",
            )
        first = first or (path, labels)


def common_rows(
    ids: Mapping[str, Ids], files: Mapping[str, Path], join: str
) -> tuple[Ids, dict[str, NDArray[np.int64]]]:
    """Ids that all views have, in the order of the first, and their rows in each.

    With ``outer`` those that any view has; −1 is a row that is not there.
    """
    place = {name: {one: row for row, one in enumerate(of)} for name, of in ids.items()}
    first = next(iter(ids))
    kept = [one for one in ids[first] if all(one in rows for rows in place.values())]
    shared = set(kept)
    if join == "outer":
        kept = list(dict.fromkeys(one for of in ids.values() for one in of))
    elif not kept or join != "inner":
        pairs = ((name, one) for name, of in ids.items() for one in of)
        lone = next(((name, one) for name, one in pairs if one not in shared), None)
        if lone is not None:
            name, one = lone
            lacking = next(files[other] for other in ids if one not in place[other])
            inner = "--join inner takes what is in all" if kept else "nothing is in all"
            cure = f"{inner}, --join outer keeps the rest, with views missing"
            raise file_error(lacking, f"has no row {one!r}, which {name!r} has; {cure}")
    rows = {n: np.array([p.get(one, -1) for one in kept]) for n, p in place.items()}
    return kept, rows


def _names(path: Path) -> tuple[list[str], list[str]]:
    """Names of the columns, and which of them are a row index of pandas."""
    if path.suffix.lower() == _PARQUET:
        import pyarrow.parquet as pq

        schema = pq.read_schema(path)
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        return list(schema.names), [name for name in index if isinstance(name, str)]
    first, _ = next(_rows(path), ([], 0))
    if any(map(_is_number, first)):
        return [], []  # there is no line of names
    return first, []


def _rows(path: Path) -> Iterator[tuple[list[str], int]]:
    """Cells of the lines that are not blank, and the number of each line, from 1."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=_TEXT[path.suffix.lower()])
        for row in reader:
            if row:
                yield [cell.strip() for cell in row], reader.line_num


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _columns_of_words(path: Path) -> dict[str, str]:
    """Columns that hold no numbers beside others that do, and what is in them."""
    if path.suffix.lower() == _PARQUET:
        import pyarrow.parquet as pq
        from pyarrow import types

        texts = (types.is_string, types.is_large_string, types.is_dictionary)
        fields = list(pq.read_schema(path))
        found = {f.name: str(f.type) for f in fields if any(t(f.type) for t in texts)}
        return found if len(found) < len(fields) else {}
    names: list[str]
    first: list[str]
    names, first, *_ = [*islice((row for row, _ in _rows(path)), 2), [], []]
    if len(first) != len(names) or any(map(_is_number, names)):
        return {}  # said better by who reads the numbers
    found = {n: c for n, c in zip(names, first, strict=True) if not _is_number(c) and c}
    return found if len(found) < len(names) else {}


def _text_table(path: Path, id_column: str) -> dict[str, Any]:
    import pyarrow as pa
    from pyarrow import csv as arrow

    names, line = next(_rows(path))
    if len(set(names)) < len(names):
        raise file_error(path, f"has columns of the same name among {names}")
    types = {name: pa.float64() for name in names} | {id_column: pa.string()}
    table = arrow.read_csv(
        path,
        arrow.ReadOptions(use_threads=False, column_names=names, skip_rows=line),
        arrow.ParseOptions(delimiter=_TEXT[path.suffix.lower()]),
        arrow.ConvertOptions(column_types=types, null_values=[]),
    )
    return {name: table.column(name) for name in names}


def _row_labels(path: Path) -> list[Any] | None:
    """The row index that pandas kept; None where it only counts the rows."""
    with reading(path):
        _, index = _names(path)
        if not index:
            return None
        columns = parquet_columns(path, index).values()
        return list(zip(*(column.to_pylist() for column in columns), strict=True))


def _check_unique(path: Path, ids: Sequence[str]) -> None:
    if not ids:
        raise file_error(path, "holds no rows; write one per sample")
    first: dict[str, int] = {}
    for row, one in enumerate(ids):
        if first.setdefault(one, row) != row:
            raise file_error(
                path,
                f"rows {first[one]} and {row} (counting from 0) have the same id "
                f"{one!r}; ids must differ",
            )
