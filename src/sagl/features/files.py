"""Arrays of features, and labels, from the files that people already have.

``.npy`` stays on disk (memory-mapped); ``.npz``, ``.safetensors``, ``.csv``, ``.tsv``
and ``.parquet`` are read into memory. Nothing is ever unpickled. Whatever is wrong with
a file ends in a :class:`FileFormatError` of one line that begins with its path.
"""

from __future__ import annotations

import csv
import json
import math
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

Array = NDArray[Any]
Reader = Callable[[Path, str | None], Array]

# A first line that says one of these heads a column of labels; any other word could
# be a label itself.
_LABEL_HEADERS = {"label", "labels", "class", "target", "y"}

_SAFETENSORS_TYPES = {
    *("BOOL", "U8", "U16", "U32", "U64", "I8", "I16", "I32", "I64"),
    *("F16", "F32", "F64"),
}


class FileFormatError(ValueError):
    """A file that is missing or not what it should be; the message is one line."""


def read_array(path: str | os.PathLike[str], key: str | None = None) -> Array:
    """Read an array of real numbers, rows x columns, with the type it was stored in.

    Parameters
    ----------
    path : str or path
        A ``.npy``, ``.npz``, ``.safetensors``, ``.csv``, ``.tsv`` or ``.parquet`` file.
        Tables of text may begin with a line of column names. A parquet file holds
        either one number per cell (a row index kept by pandas is left out) or one
        column of equally long lists. bfloat16 becomes float32.
    key : str, optional
        Which array of a ``.npz`` or ``.safetensors`` file, or which column of a
        ``.parquet`` file. Needed when the file holds several arrays.

    Returns
    -------
    ndarray of one or two dimensions
        A read-only memory map for ``.npy``. NaN and infinity are not looked for.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sagl.features.files import read_array
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "small.csv"
    ...     _ = path.write_text("width,height\\n1,2.5\\n3,4\\n")
    ...     read_array(path)
    array([[1. , 2.5],
           [3. , 4. ]])
    """
    path = Path(path)
    array = _read(path, key, _ARRAY_READERS)
    if array.dtype.kind not in "biuf":
        raise _error(
            path,
            f"holds values of type {array.dtype}, expected real numbers; convert them, "
            "e.g. array.astype('float32'), and save again",
        )
    if array.ndim not in (1, 2):
        raise _error(
            path,
            f"holds an array of shape {array.shape}, expected rows x columns; "
            "reshape it to one row per sample and save again",
        )
    return array


def read_labels(path: str | os.PathLike[str], key: str | None = None) -> Array:
    """Read one label per sample: whole numbers or strings.

    Parameters
    ----------
    path : str or path
        A file of one of the kinds of :func:`read_array`. In a table the column named
        ``label`` is taken, or the only column. A file of text with a single column may
        begin with a header: ``label``, ``labels``, ``class``, ``target`` or ``y``, or
        any word above numbers.
    key : str, optional
        Which array, or which column instead of ``label``.

    Returns
    -------
    ndarray of shape (n,)
        Integers (whole floats are converted), booleans or strings.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sagl.features.files import read_labels
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "labels.csv"
    ...     _ = path.write_text("id,label\\na.jpg,cat\\nb.jpg,dog\\n")
    ...     read_labels(path).tolist()
    ['cat', 'dog']
    """
    path = Path(path)
    labels = _read(path, key, _LABEL_READERS)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise _error(
            path,
            f"holds an array of shape {labels.shape}, expected one label per sample; "
            "save a one-dimensional array",
        )
    if labels.dtype.kind == "S":
        labels = _decoded(path, labels)
    if labels.dtype.kind == "f":
        labels = _whole(path, labels)
    if labels.dtype.kind not in "biuU":
        raise _error(
            path,
            f"holds values of type {labels.dtype}, expected whole numbers or strings; "
            "convert them, e.g. labels.astype(str), and save again",
        )
    return labels


def parse_view_option(text: str) -> tuple[str, Path, str | None]:
    """Split ``NAME=FILE`` or ``NAME=FILE::KEY`` into its parts.

    Without ``NAME=`` the view is named after the file, so a path that contains ``=``
    needs a name.

    Examples
    --------
    >>> from sagl.features.files import parse_view_option
    >>> name, path, key = parse_view_option("dino=features.npz::train")
    >>> name, path.name, key
    ('dino', 'features.npz', 'train')
    """
    usage = "write NAME=FILE or NAME=FILE::KEY"
    target, has_key, key = text.partition("::")
    name, has_name, file = target.partition("=")
    if not has_name:
        name, file = Path(target).stem, target
    if not file.strip():
        raise FileFormatError(f"{text!r}: the file is missing; {usage}")
    if not name.strip():
        raise FileFormatError(f"{text!r}: the name before '=' is empty; {usage}")
    if has_key and not key:
        raise FileFormatError(f"{text!r}: the key after '::' is empty; {usage}")
    # The shell leaves the ~ of NAME=~/FILE as it is.
    return name.strip(), Path(file.strip()).expanduser(), key or None


def _error(path: Path, text: str) -> FileFormatError:
    return FileFormatError(f"{path}: {' '.join(text.split())}")


def _read(path: Path, key: str | None, readers: Mapping[str, Reader]) -> Array:
    _check_file(path)
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise _error(
            path, f"unsupported suffix {path.suffix!r}; use one of {', '.join(readers)}"
        )
    try:
        return reader(path, key)
    except OSError as exc:
        raise _error(path, f"cannot be read: {exc}") from exc


def _check_file(path: Path) -> None:
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise _error(path, "is a directory; give the path of a file")
        if not stat.S_ISREG(status.st_mode):
            raise _error(path, "is not a regular file; save the data to a file first")
        with path.open("rb"):
            pass
    except FileNotFoundError:
        raise _error(path, "no such file") from None
    except PermissionError:
        raise _error(path, "permission denied; make the file readable") from None
    except OSError as exc:
        raise _error(path, f"cannot be opened: {exc.strerror}") from None
    if status.st_size == 0:
        raise _error(path, "the file is empty (0 bytes); write or copy it again")


def _decoded(path: Path, labels: Array) -> Array:
    try:
        return np.char.decode(labels, "utf-8")
    except UnicodeDecodeError as exc:
        raise _error(
            path, f"holds labels that are not UTF-8 ({exc}); save them as strings"
        ) from None


def _whole(path: Path, labels: Array) -> Array:
    bad = ~np.isfinite(labels) | (labels != np.floor(labels))
    if bad.any():
        row = int(np.argmax(bad))
        raise _error(
            path,
            f"label {row} (counting from 0) is {labels[row]}; "
            "labels must be whole numbers or strings, without missing values",
        )
    return labels.astype(np.int64)


def _choose(path: Path, key: str | None, names: list[str], what: str) -> str:
    """The array or column to read: ``key``, or the only one there is."""
    listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    if not names:
        raise _error(path, f"holds no {what}; save at least one")
    if key is None and len(names) > 1:
        raise _error(
            path,
            f"holds {len(names)} {what}s ({listed}); choose one by its key, "
            f"{path.name}::KEY on the command line",
        )
    if key is not None and key not in names:
        raise _error(path, f"has no {what} {key!r}; choose one of: {listed}")
    return names[0] if key is None else key


# Binary formats -----------------------------------------------------------------------


def _read_npy(path: Path, key: str | None) -> Array:
    if key is not None:
        raise _error(path, f".npy holds one array without a key; leave out {key!r}")
    with path.open("rb") as file:
        try:
            if npy_format.read_magic(file) == (1, 0):
                shape, _, dtype = npy_format.read_array_header_1_0(file)
            else:
                shape, _, dtype = npy_format.read_array_header_2_0(file)
        except ValueError as exc:
            raise _error(
                path, f"is not a .npy file ({exc}); write it with np.save"
            ) from None
        expected = file.tell() + dtype.itemsize * math.prod(shape)
    if dtype.hasobject:
        raise _pickled(path)
    found = path.stat().st_size
    if found < expected:
        raise _error(
            path,
            f"is cut short: {dtype} of shape {shape} needs {expected} bytes, found "
            f"{found}; copy or write it again",
        )
    return _mapped(path)


def _mapped(path: Path) -> Array:
    try:
        array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as exc:
        raise _error(path, f"is damaged ({exc}); copy or write it again") from exc
    return array


def _pickled(path: Path) -> FileFormatError:
    return _error(
        path,
        "holds Python objects, which are stored as pickle and never loaded here; save "
        "again with a plain type, e.g. array.astype('float32') or labels.astype(str)",
    )


def _read_npz(path: Path, key: str | None) -> Array:
    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            is_cut = file.read(2) == b"PK"
        fault = "is cut short" if is_cut else "is not a .npz file (not a zip archive)"
        raise _error(path, f"{fault}; copy it or write it with np.savez again")
    try:
        with np.load(path, allow_pickle=False) as archive:
            name = _choose(path, key, list(archive.files), "array")
            array = archive[name]
    except FileFormatError:
        raise
    except (ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as exc:
        if "pickle" in str(exc):
            raise _pickled(path) from None
        raise _error(path, f"is damaged ({exc}); copy or write it again") from exc
    if not isinstance(array, np.ndarray):
        raise _error(path, f"{name!r} is not a NumPy array; write it with np.savez")
    return array


def _read_safetensors(path: Path, key: str | None) -> Array:
    try:
        with safe_open(path, framework="np") as file:
            name = _choose(path, key, sorted(file.keys()), "tensor")
            dtype = file.get_slice(name).get_dtype()
            if dtype in _SAFETENSORS_TYPES:
                return np.asarray(file.get_tensor(name))
    except SafetensorError as exc:
        raise _error(
            path,
            f"is cut short or not a .safetensors file ({exc}); copy or write it again",
        ) from None
    if dtype == "BF16":
        return _read_bfloat16(path, name)
    raise _error(
        path, f"tensor {name!r} is {dtype}, which NumPy lacks; save it as float32"
    )


def _read_bfloat16(path: Path, name: str) -> Array:
    """NumPy has no bfloat16, but it is the upper half of a float32."""
    with path.open("rb") as file:
        header_size = int.from_bytes(file.read(8), "little")
        entry = json.loads(file.read(header_size))[name]
        file.seek(entry["data_offsets"][0], os.SEEK_CUR)
        upper = np.fromfile(file, dtype="<u2", count=math.prod(entry["shape"]))
    widened = upper.astype(np.uint32)
    widened <<= 16
    return widened.view(np.float32).reshape(entry["shape"])


# Text ---------------------------------------------------------------------------------


def _delimiter(path: Path) -> str:
    return "\t" if path.suffix.lower() == ".tsv" else ","


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Number (from 1) and stripped cells of each line; a blank line has no cells."""
    cure = "save it as UTF-8 text"
    with path.open("rb") as file:
        if b"\0" in file.read(2**16):
            raise _error(path, f"is not a text file (it has a zero byte); {cure}")
    try:
        with path.open(encoding="utf-8-sig", newline="") as text:
            reader = csv.reader(text, delimiter=_delimiter(path))
            for cells in reader:
                yield reader.line_num, [cell.strip() for cell in cells]
    except (UnicodeDecodeError, csv.Error) as exc:
        raise _error(path, f"is not a text file ({exc}); {cure}") from None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000, NumPy does not


def _read_csv(path: Path, key: str | None) -> Array:
    if key is not None:
        raise _error(path, f"a table of text is read whole; leave out the key {key!r}")
    start = list(islice((line for line in _lines(path) if line[1]), 2))
    names = _column_names(path, start)
    if len(start) <= bool(names):
        raise _error(path, "holds no rows of numbers; write one row per sample")
    skipped = start[0][0] if names else 0
    width = len(start[0][1])
    try:
        table = np.loadtxt(
            str(path),
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


def _column_names(path: Path, start: list[tuple[int, list[str]]]) -> list[str]:
    """The first line if it names columns, or nothing if it already holds numbers."""
    if not start:
        return []
    first = start[0][1]
    if len(first) > 1 and first[0] == "" and _are_names(first[1:]):
        raise _error(
            path,
            f"line {start[0][0]}, column 1: '' where a name should be, as when pandas "
            "adds its row index; write the file with index=False",
        )
    if not any(map(_is_number, first)):
        return first
    # pandas names columns 0, 1, 2, ... by default; above decimals that is no data.
    decimals = len(start) > 1 and not all(c.lstrip("-").isdigit() for c in start[1][1])
    return first if decimals and len(first) > 1 and _are_names(first) else []


def _are_names(cells: list[str]) -> bool:
    counted = [str(i) for i in range(len(cells))]
    return cells == counted or not any(map(_is_number, cells))


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
                return _error(
                    path,
                    f"line {line}, column {i}: {_short(cell)} is not a number; "
                    f"fill every cell with one, separated by {_delimiter(path)!r}",
                )
    return _error(path, f"cannot be read as numbers ({otherwise}); write it again")


def _ragged(
    path: Path, line: int, cells: list[str], width: int, cure: str
) -> FileFormatError:
    return _error(
        path,
        f"line {line} ends at column {len(cells)} (cell {_short(cells[-1])}), "
        f"expected {width} columns; {cure}",
    )


def _short(cell: str) -> str:
    return repr(cell if len(cell) <= 40 else cell[:37] + "...")


def _read_csv_labels(path: Path, key: str | None) -> Array:
    lines = list(_lines(path))
    while lines and not lines[-1][1]:  # blank lines at the end are no labels
        lines.pop()
    if not lines:
        raise _error(path, "holds no labels; write one per line")
    column, has_header = _label_column(path, key, [cells for _, cells in lines])
    width = len(lines[0][1])
    labels = []
    for line, cells in lines[has_header:]:
        if not cells or (column < len(cells) and not cells[column]):
            raise _error(
                path,
                f"line {line}, column {column + 1}: the label is empty; fill it or "
                "drop the sample",
            )
        if len(cells) != width:
            cure = f"quote labels that contain {_delimiter(path)!r}"
            raise _ragged(path, line, cells, width, cure)
        labels.append(cells[column])
    if not labels:
        raise _error(path, "holds a header but no labels; write one per line")
    return _numbers_or_strings(labels)


def _label_column(
    path: Path, key: str | None, lines: list[list[str]]
) -> tuple[int, bool]:
    """Position of the labels, and whether the first line is a header."""
    first = lines[0]
    lowered = [cell.lower() for cell in first]
    if key is not None:
        return first.index(_choose(path, key, first, "column")), True
    if "label" in lowered:
        return lowered.index("label"), True
    if len(first) > 1:
        raise _error(
            path,
            f"has {len(first)} columns, none named 'label'; name one so, or choose "
            f"one by its name, {path.name}::COLUMN on the command line",
        )
    above_numbers = (
        len(lines) > 1
        and not _is_number("".join(first))
        and all(_is_number(cells[0]) for cells in lines[1:] if cells)
    )
    return 0, above_numbers or bool(_LABEL_HEADERS.intersection(lowered))


def _numbers_or_strings(cells: list[str]) -> Array:
    strings = np.array(cells)
    for dtype in (np.int64, np.float64):
        try:
            return strings.astype(dtype)
        except (ValueError, OverflowError):
            continue
    return strings


# Parquet ------------------------------------------------------------------------------


def _parquet_columns(path: Path, key: str | None) -> dict[str, Any]:
    """The wanted column, or all but the row index that pandas may have added."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise _error(
            path, 'reading .parquet needs pyarrow: pip install "sagl[parquet]"'
        ) from None
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            index = (schema.pandas_metadata or {}).get("index_columns", [])
            wanted = [name for name in schema.names if name not in index]
            if key is not None:
                wanted = [_choose(path, key, schema.names, "column")]
            table = file.read(columns=wanted)
    except (pa.ArrowException, OSError) as exc:
        raise _error(
            path, f"is cut short or not a .parquet file ({exc}); copy or write it again"
        ) from None
    if len(set(wanted)) < len(wanted):
        raise _error(path, f"has columns of the same name among {wanted}; rename them")
    if not wanted or table.num_rows == 0:
        raise _error(path, "holds no rows; write one row per sample")
    return {name: table.column(name) for name in wanted}


def _read_parquet(path: Path, key: str | None) -> Array:
    columns = _parquet_columns(path, key)
    if len(columns) == 1:
        [(name, column)] = columns.items()
        if _is_list(column.type):
            return _stack_lists(path, name, column)
    return np.column_stack([_numbers(path, *item) for item in columns.items()])


def _is_list(arrow_type: Any) -> bool:
    from pyarrow import types

    return bool(
        types.is_list(arrow_type)
        or types.is_large_list(arrow_type)
        or types.is_fixed_size_list(arrow_type)
    )


def _numbers(path: Path, name: str, column: Any) -> Array:
    _check_numeric(path, name, column.type)
    _check_no_null(path, name, column)
    return np.asarray(column.to_numpy())


def _check_numeric(path: Path, name: str, arrow_type: Any) -> None:
    from pyarrow import types

    if not (
        types.is_integer(arrow_type)
        or types.is_floating(arrow_type)
        or types.is_boolean(arrow_type)
    ):
        raise _error(
            path,
            f"column {name!r} holds {arrow_type}, expected numbers; drop it, or choose "
            f"the column of features, {path.name}::COLUMN on the command line",
        )


def _check_no_null(path: Path, name: str, column: Any) -> None:
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy()))
        raise _error(
            path,
            f"row {row} (counting from 0), column {name!r} is null; fill it or drop "
            "the row",
        )


def _stack_lists(path: Path, name: str, column: Any) -> Array:
    """Rows from a column of lists, one chunk at a time (a chunk has a size limit)."""
    import pyarrow.compute as pc

    _check_numeric(path, name, column.type.value_type)
    _check_no_null(path, name, column)
    lengths = pc.list_value_length(column).to_numpy()
    width = int(lengths[0])
    if (lengths != width).any():
        row = int(np.argmax(lengths != width))
        raise _error(
            path,
            f"row {row} (counting from 0), column {name!r} has {lengths[row]} values, "
            f"expected {width} as in row 0; make all lists equally long",
        )
    blocks, first = [], 0
    for chunk in column.chunks:
        values = chunk.flatten()
        if values.null_count:
            row, i = divmod(
                int(np.argmax(values.is_null().to_numpy(zero_copy_only=False))), width
            )
            raise _error(
                path,
                f"row {first + row} (counting from 0), column {name!r}, value {i} is "
                "null; fill it or drop the row",
            )
        numbers = values.to_numpy(zero_copy_only=False)
        blocks.append(numbers.reshape(len(chunk), width))
        first += len(chunk)
    return np.concatenate(blocks)


def _read_parquet_labels(path: Path, key: str | None) -> Array:
    columns = _parquet_columns(path, key)
    name = "label" if "label" in columns else _choose(path, key, [*columns], "column")
    column = columns[name]
    _check_no_null(path, name, column)
    if _is_list(column.type):
        raise _error(path, f"column {name!r} holds lists, expected one label per row")
    return np.array(column.to_pylist())


_ARRAY_READERS: dict[str, Reader] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".safetensors": _read_safetensors,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".parquet": _read_parquet,
}
_LABEL_READERS: dict[str, Reader] = {
    **_ARRAY_READERS,
    ".csv": _read_csv_labels,
    ".tsv": _read_csv_labels,
    ".parquet": _read_parquet_labels,
}
