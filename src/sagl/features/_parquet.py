"""Tables, columns of lists, and labels from .parquet files, if pyarrow is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sagl.features._errors import file_error
from sagl.features._keys import choose_key


def read_parquet(path: Path, key: str | None) -> NDArray[Any]:
    """All columns side by side, or the rows of a single column of lists."""
    columns = _parquet_columns(path, key)
    if len(columns) == 1:
        [(name, column)] = columns.items()
        if _is_list(column.type):
            return _stack_lists(path, name, column)
    return np.column_stack([_numbers(path, *item) for item in columns.items()])


def read_parquet_labels(path: Path, key: str | None) -> NDArray[Any]:
    """The column named ``key`` or ``label``, or the only one."""
    columns = _parquet_columns(path, key)
    if key is None and "label" in columns:
        key = "label"
    name = choose_key(path, key, list(columns), "column")
    column = columns[name]
    _check_no_null(path, name, column)
    if _is_list(column.type):
        raise file_error(
            path, f"column {name!r} holds lists, expected one label per row"
        )
    return np.array(column.to_pylist())


def _parquet_columns(path: Path, key: str | None) -> dict[str, Any]:
    """The wanted column, or all but the row index that pandas may have added."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise file_error(
            path, 'reading .parquet needs pyarrow: pip install "sagl[parquet]"'
        ) from None
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            index = (schema.pandas_metadata or {}).get("index_columns", [])
            wanted = [name for name in schema.names if name not in index]
            if key is not None:
                wanted = [choose_key(path, key, schema.names, "column")]
            table = file.read(columns=wanted)
    except (pa.ArrowException, OSError) as exc:
        raise file_error(
            path, f"is cut short or not a .parquet file ({exc}); copy or write it again"
        ) from None
    if len(set(wanted)) < len(wanted):
        raise file_error(
            path, f"has columns of the same name among {wanted}; rename them"
        )
    if not wanted or table.num_rows == 0:
        raise file_error(path, "holds no rows; write one row per sample")
    return {name: table.column(name) for name in wanted}


def _is_list(arrow_type: Any) -> bool:
    from pyarrow import types

    return bool(
        types.is_list(arrow_type)
        or types.is_large_list(arrow_type)
        or types.is_fixed_size_list(arrow_type)
    )


def _numbers(path: Path, name: str, column: Any) -> NDArray[Any]:
    _check_numeric(path, name, column.type)
    _check_no_null(path, name, column)
    return np.asarray(column.to_numpy())


def _stack_lists(path: Path, name: str, column: Any) -> NDArray[Any]:
    """Rows from a column of lists."""
    import pyarrow.compute as pc

    _check_numeric(path, name, column.type.value_type)
    _check_no_null(path, name, column)
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
    if values.null_count:
        row, i = divmod(int(np.argmax(values.is_null().to_numpy())), width)
        raise file_error(
            path,
            f"row {row} (counting from 0), column {name!r}, value {i} is null; fill it "
            "or drop the row",
        )
    return np.asarray(values.to_numpy()).reshape(len(column), width)


def _check_numeric(path: Path, name: str, arrow_type: Any) -> None:
    from pyarrow import types

    if not (
        types.is_integer(arrow_type)
        or types.is_floating(arrow_type)
        or types.is_boolean(arrow_type)
    ):
        raise file_error(
            path,
            f"column {name!r} holds {arrow_type}, expected numbers; drop it, or choose "
            f"the column of features, {path.name}::COLUMN on the command line",
        )


def _check_no_null(path: Path, name: str, column: Any) -> None:
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy()))
        raise file_error(
            path,
            f"row {row} (counting from 0), column {name!r} is null; fill it or drop "
            "the row",
        )
