"""Tables of features: numbers, and ids by which the views of several files are joined.

Numbers of .csv, .tsv and .parquet files are read by pyarrow. Nothing is paired by
position where a file says that this would be wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sagl.features.samples import (
    check_filled,
    choose_key,
    file_error,
    first_repeat,
    reading,
)
from sagl.features.tables import (
    PARQUET,
    TEXT,
    Head,
    check_names,
    is_number,
    parquet_columns,
    parquet_head,
    rows,
)

# Nobody calls a feature so.
_ID_NAMES = {"id", "ids", "sample", "sample_id", "path", "file", "filename", "uuid"}


def _read_head(path: Path) -> Head:
    return parquet_head(path) if path.suffix.lower() == PARQUET else _text_head(path)


def _text_head(path: Path) -> Head:
    """Names of the columns; where the first line holds numbers already, counted."""
    start = list(islice((row for row in rows(path) if row[1]), 2))
    lines = [[cell.strip() for cell in cells] for _, cells in start]
    names = bool(start) and _are_names(*lines)
    if len(start) <= names:
        raise file_error(path, "holds no rows of numbers; write one row per sample")
    if not names:
        return Head([f"{i}" for i in range(len(lines[0]))])
    cells = zip(*lines, strict=False)
    words = {name: cell for name, cell in cells if cell and not is_number(cell)}
    whole = len(lines[0]) == len(lines[1])  # else it is said better where it is read
    return Head(lines[0], words if whole else {}, start[0][0])


def _are_names(cells: list[str], second: Sequence[str] = ()) -> bool:
    """Whether the first line names the columns, and does not yet hold numbers."""
    numbers = [cell for cell in cells if is_number(cell)]
    if not numbers:
        return True
    # pandas names columns 0, 1, 2, ... by default; above decimals that is no data.
    decimals = not all(cell.lstrip("-").isdigit() for cell in second)
    counted = numbers == [f"{i}" for i in range(len(numbers))]
    return counted and len(cells) > 1 and (decimals or len(numbers) < len(cells))


def read_number_table(path: Path, key: str | None) -> NDArray[Any]:
    """All numbers of a .csv or .tsv, below its line of names; ``key`` must be None."""
    if key is not None:
        raise file_error(path, f"a table is read whole; leave out the key {key!r}")
    head = _text_head(path)
    if head.skip and head.names[0] == "":
        raise file_error(
            path, "begins with the row index of pandas; write it with index=False"
        )
    return np.column_stack(_text_numbers(path, head))


def _text_numbers(path: Path, head: Head, id_column: str | None = None) -> list[Any]:
    """The columns of a table of text: numbers, and ids as they are written."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    of = [pa.string() if name == id_column else pa.float64() for name in head.names]
    types = {f"{i}": kind for i, kind in enumerate(of)}
    # One thread counts the rows, to name the bad one.
    options = arrow.ReadOptions(
        use_threads=False, column_names=list(types), skip_rows=head.skip
    )
    try:
        table = arrow.read_csv(
            path,
            options,
            arrow.ParseOptions(delimiter=TEXT[path.suffix.lower()]),
            arrow.ConvertOptions(column_types=types, null_values=[]),
        )
    except pa.ArrowInvalid as error:
        raise file_error(
            path,
            f"cannot be read as numbers ({error}; columns are counted from 0); fill "
            f"every cell with one, separated by {TEXT[path.suffix.lower()]!r}",
        ) from None
    return list(table.columns)


def read_identified(
    path: Path, key: str | None, id_column: str
) -> tuple[list[str], NDArray[Any]]:
    """Ids and numbers of a table; with ``key`` the numbers of that column alone."""
    if path.suffix.lower() not in (*TEXT, PARQUET):
        raise file_error(
            path,
            f"is no table, so it has no column {id_column!r} to join views by; give "
            ".csv, .tsv or .parquet, or leave out --id-column",
        )
    with reading(path):
        head = _read_head(path)
        check_names(path, head.names)
        choose_key(path, id_column, head.names, "column")
        if path.suffix.lower() == PARQUET:
            columns = parquet_columns(path, head.names)
        else:
            numbers = _text_numbers(path, head, id_column)
            columns = dict(zip(head.names, numbers, strict=True))
        cells = columns.pop(id_column).to_pylist()
        words = [None if cell is None else str(cell) for cell in cells]
        ids = check_filled(path, id_column, words, "id")
        if (repeat := first_repeat(ids)) is not None:
            raise file_error(path, f"{repeat}; ids must differ")
        names = [name for name in head.features if name in columns]
        if key is not None:
            names = [choose_key(path, key, names, "column")]
        columns = {name: columns[name] for name in names}
        if not columns:
            raise file_error(path, "holds no column but the ids; features are missing")
        return ids, _side_by_side(path, columns, "take it out")


def check_no_ids(path: Path, key: str | None, *, joinable: bool) -> None:
    """Refuse a column that holds no features; say how it is read, if ``joinable``."""
    if path.suffix.lower() not in (*TEXT, PARQUET) or key is not None:
        return
    with reading(path):
        head = _read_head(path)
    if head.skip and "" in head.names and joinable:
        raise file_error(
            path,
            "the first column has no name, as when pandas adds its row index; write it "
            "with index_label='id' and give --id-column id, or with index=False",
        )
    cure = "take it out"
    for name in head.features:
        # Columns of words alone are said to be no numbers where they are read.
        wordy = name in head.words and len(head.words) < len(head.names)
        if not wordy and name.lower() not in _ID_NAMES:
            continue
        if joinable:
            cure = f"if it holds ids give --id-column {name}, else take it out"
        holds = f"{head.words[name]!r}, no number" if wordy else "no features"
        raise file_error(path, f"column {name!r} holds {holds}; {cure}")


def check_same_index(files: Iterable[Path]) -> None:
    """Refuse parquet files in which pandas kept row labels that differ."""
    first: tuple[Path, dict[str, Any]] | None = None
    for path in files:
        if path.suffix.lower() != PARQUET:
            continue
        with reading(path):
            if not (index := parquet_head(path).kept):  # it only counts the rows
                continue
            labels = parquet_columns(path, index)
        first = first or (path, labels)
        if [*first[1].values()] != [*labels.values()]:
            raise file_error(
                path,
                f"has other row labels than {first[0]}, or in another order; name "
                "their column by --id-column to join the views by it, or write both "
                "with index=False",
            )


def read_parquet(path: Path, key: str | None) -> NDArray[Any]:
    """Numbers: all columns side by side, or the rows of a single column of lists.

    What is null becomes NaN, which whoever uses the numbers refuses.
    """
    head = parquet_head(path)
    if key is None:
        names = head.features
    else:
        names = [choose_key(path, key, head.names, "column")]
    columns = parquet_columns(path, names)
    cure = f"drop it, or choose the column of features: {path.name}::COLUMN"
    return _side_by_side(path, columns, cure)


def _side_by_side(path: Path, columns: Mapping[str, Any], cure: str) -> NDArray[Any]:
    """Columns of numbers, or the rows of a single column of lists; (n, d).

    ``cure`` is what to do about one of something else.
    """
    import pyarrow.compute as pc
    from pyarrow import types

    width = 1
    [name, column], *others = columns.items()
    is_list = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    if not others and any(is_(column.type) for is_ in is_list):
        widths = pc.unique(pc.list_value_length(column)).to_pylist()
        if len(widths) > 1 or not widths[0]:
            held = " and of ".join(map(str, widths[:2]))
            raise file_error(
                path,
                f"column {name!r} holds lists of {held} values; make all equally long",
            )
        columns, width = {name: pc.list_flatten(column)}, widths[0]
    for name, column in columns.items():
        number = types.is_integer, types.is_floating, types.is_boolean
        if not any(is_(column.type) for is_ in number):
            raise file_error(
                path, f"column {name!r} holds {column.type}, expected numbers; {cure}"
            )
    numbers = [column.to_numpy() for column in columns.values()]
    return np.column_stack(numbers).reshape(-1, width * len(numbers))
