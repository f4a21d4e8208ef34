"""Arrays of features and labels from files that people have; predictions to files.

``.npy`` stays on disk (memory-mapped); ``.npz``, ``.safetensors``, ``.csv``, ``.tsv``
and ``.parquet`` are read into memory. Nothing is ever unpickled. Whatever is wrong with
a file ends in a :class:`FileFormatError` of one line that begins with its path.
"""

from __future__ import annotations

import csv
import io
import math
import os
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray
from safetensors import safe_open

from sagl.features.number_tables import read_number_table, read_parquet
from sagl.features.samples import (
    FileFormatError,
    check_growth,
    choose_key,
    file_error,
    reading,
)
from sagl.features.tables import read_table_labels
from sagl.storage import check_writable, replacing, write_text

__all__ = [
    "SUFFIXES",
    "FileFormatError",
    "check_prediction_path",
    "parse_view_option",
    "prediction_table",
    "read_array",
    "read_labels",
    "write_predictions",
]

Array = NDArray[Any]
Reader = Callable[[Path, str | None], Array]

_HEAD = 1 << 14  # bytes that hold any header: NumPy takes up to 10,000
_BLOCK = 1 << 20


def read_array(path: str | os.PathLike[str], key: str | None = None) -> Array:
    """An array of real numbers, rows x columns, with the type it was stored in.

    ``key`` says which array of a ``.npz`` or ``.safetensors`` file, or which column of
    a ``.parquet`` file, where there are several. Of a ``.npy`` it is a read-only memory
    map. Tables of text may begin with a line of names; a parquet file holds one number
    per cell (a row index that pandas kept is left out) or a column of equally long
    lists; bfloat16 becomes float32. NaN and infinity are not looked for.
    """
    path = Path(path)
    array = _read(path, key, _ARRAY_READERS)
    if array.dtype.kind not in "biuf":
        raise file_error(
            path,
            f"holds values of type {array.dtype}, expected real numbers; convert them",
        )
    if array.ndim not in (1, 2):
        raise file_error(
            path, f"holds an array of shape {array.shape}, expected rows x columns"
        )
    return array


def read_labels(path: str | os.PathLike[str], key: str | None = None) -> Array:
    """One label per sample: whole numbers (also as floats), booleans or strings.

    Files are as for ``read_array``. In a table the column named ``label`` is taken, or
    the only one, which may do without a header in a file of text; or that of ``key``.
    """
    path = Path(path)
    labels = _read(path, key, _LABEL_READERS)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise file_error(
            path, f"has the shape {labels.shape}, expected one label per sample"
        )
    if labels.dtype.kind == "S":
        with reading(path):
            labels = np.char.decode(labels, "utf-8")
    if labels.dtype.kind == "f":
        numbers = labels.astype(np.float64)
        bad = (numbers != np.floor(numbers)) | ~(np.abs(numbers) < 2.0**63)
        if bad.any():
            row = int(np.argmax(bad))
            raise file_error(
                path,
                f"label {row} (counting from 0) is {labels[row]}; labels must be whole "
                "64-bit numbers or strings, without missing values",
            )
        labels = labels.astype(np.int64)
    if labels.dtype.kind not in "biuU":
        raise file_error(
            path,
            f"has the type {labels.dtype}, expected whole numbers or strings: convert",
        )
    return labels


def parse_view_option(text: str) -> tuple[str, Path, str | None]:
    """The parts of ``NAME=FILE`` or ``NAME=FILE::KEY``.

    Without ``NAME=`` the view is named after the file, so a path that contains ``=``
    needs a name.

    >>> name, path, key = parse_view_option("dino=features.npz::train")
    >>> name, path.name, key
    ('dino', 'features.npz', 'train')
    """
    target, has_key, key = text.partition("::")
    name, has_name, file = target.partition("=")
    if not has_name:
        name, file = Path(target).stem, target
    parts = {"name": name.strip(), "file": file.strip(), "key": key or not has_key}
    if missing := [part for part, given in parts.items() if not given]:
        raise FileFormatError(
            f"{text!r}: the {missing[-1]} is missing; write NAME=FILE or NAME=FILE::KEY"
        )
    # The shell leaves the ~ of NAME=~/FILE as it is.
    return name.strip(), Path(file.strip()).expanduser(), key or None


def is_archive(path: Path) -> bool:
    """Whether it is a file that may hold several arrays, by name."""
    return path.suffix.lower() in _ARCHIVES and path.is_file()


def views_in(path: Path, wanted: Sequence[str] | None = None) -> list[str]:
    """The arrays in an archive, or those wanted, as ``NAME=FILE::NAME``."""
    with reading(path):
        if path.suffix.lower() == ".npz":
            with zipfile.ZipFile(path) as archive:
                names = [name.removesuffix(".npy") for name in archive.namelist()]
        else:
            with safe_open(path, framework="pt") as file:
                names = sorted(file.keys())
    if wanted is None:
        wanted = names or [choose_key(path, None, names, "array")]  # refused
    chosen = [choose_key(path, name, names, "array") for name in wanted]
    return [f"{name}={path}::{name}" for name in chosen]


def _read(path: Path, key: str | None, readers: Mapping[str, Reader]) -> Array:
    reader = readers.get(path.suffix.lower())
    with reading(path):
        if reader is not None:
            return reader(path, key)
    raise file_error(
        path, f"unsupported suffix {path.suffix!r}; use one of {', '.join(readers)}"
    )


def _read_npy(path: Path, key: str | None) -> Array:
    """A read-only memory map."""
    if key is not None:
        raise file_error(path, f".npy holds one array without a key; leave out {key!r}")
    with path.open("rb") as file:
        form = _read_npy_header(path, file.read(_HEAD), path.stat().st_size)
        return np.memmap(path, form.dtype, "r", form.offset, form.shape, form.order)


def _read_npz(path: Path, key: str | None) -> Array:
    """The array named ``key``, or the only one."""
    with zipfile.ZipFile(path) as archive:
        members = {file.removesuffix(".npy"): file for file in archive.namelist()}
        chosen = members[choose_key(path, key, list(members), "array")]
        data = _read_member(path, archive, archive.getinfo(chosen))
    form = _read_npy_header(path, data[:_HEAD], len(data))
    array = np.ndarray(form.shape, form.dtype, data, form.offset, order=form.order)
    array.flags.writeable = False
    return array


def _read_member(
    path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo
) -> bytearray:
    """A member's bytes, and never more of them than it says there are."""
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{info.filename} is compressed as NumPy never does")
    check_growth(path, info.file_size)
    data = bytearray(info.file_size)
    at = 0
    with archive.open(info) as member:
        while block := member.read(_BLOCK):  # all at once it would be inflated whole
            data[at : at + len(block)] = block
            at += len(block)
    return data[:at]


class _Form(NamedTuple):
    """What the header of a .npy file says, and where it ends."""

    shape: tuple[int, ...]
    order: Literal["C", "F"]
    dtype: np.dtype[Any]
    offset: int


def _read_npy_header(path: Path, head: bytes | bytearray, size: int) -> _Form:
    """The header among the first bytes, checked against the ``size`` that is there.

    NumPy believes its headers, and takes memory for what they claim.
    """
    file = io.BytesIO(head)
    version = npy_format.read_magic(file)
    if version not in _NPY_HEADERS:
        raise ValueError(f"version {version} of the format, which is not for numbers")
    try:
        shape, fortran, dtype = _NPY_HEADERS[version](file)
    except MemoryError:
        raise ValueError("its header is nested too deeply") from None
    if dtype.hasobject:
        raise file_error(
            path,
            "holds Python objects, which are stored as pickle and never loaded here; "
            "save again with a plain type, e.g. array.astype('float32')",
        )
    if any(type(length) is not int or length < 0 for length in shape):
        raise ValueError(f"its header claims the shape {shape}")
    if dtype.itemsize == 0:
        raise ValueError("its header claims values of no bytes")
    expected = file.tell() + dtype.itemsize * math.prod(shape)
    if size < expected:
        raise ValueError(f"{expected:,} bytes expected, {size:,} found")
    return _Form(shape, "F" if fortran else "C", dtype, file.tell())


def _read_safetensors(path: Path, key: str | None) -> Array:
    """The tensor named ``key``, or the only one; what NumPy lacks becomes float32."""
    with safe_open(path, framework="pt") as file:
        tensor = file.get_tensor(choose_key(path, key, sorted(file.keys()), "tensor"))
    try:
        array: Array = tensor.numpy()
    except TypeError:  # bfloat16, and floats of eight bits
        array = tensor.float().numpy()
    return array


def check_prediction_path(path: Path) -> None:
    """Refuse an output that could not be written, before any work is done."""
    check_writable(path, "predictions are written as", ".csv", ".npy")


def write_predictions(
    path: Path,
    clusters: NDArray[np.int64],
    confidence: NDArray[np.float64],
    ids: Sequence[str] | None = None,
    more: Mapping[str, Sequence[Any]] | None = None,
) -> None:
    """Cluster and confidence per sample (.csv), or the clusters alone (.npy)."""
    if path.suffix.lower() == ".npy":
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.save(file, clusters)
        return
    write_text(path, prediction_table(clusters, confidence, ids, more))


def prediction_table(
    clusters: NDArray[np.int64],
    confidence: NDArray[np.float64],
    ids: Sequence[str] | None = None,
    more: Mapping[str, Sequence[Any]] | None = None,
) -> str:
    """CSV text with the columns sample, cluster and confidence, and any ``more``.

    Where samples have no ids, the first column is ``row``: that of the arrays, from 0.

    >>> print(prediction_table(np.array([7]), np.array([0.5])).split())
    ['row,cluster,confidence', '0,7,0.5']
    """
    names = range(len(clusters)) if ids is None else ids
    if len(names) != len(clusters):
        raise ValueError(f"{len(names)} ids for {len(clusters)} samples")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    more = more or {}
    first = "row" if are_rows(names) else "sample"
    writer.writerow([first, "cluster", "confidence", *more])
    columns = [clusters.tolist(), confidence.tolist(), *map(list, more.values())]
    writer.writerows(zip(names, *columns, strict=True))
    return text.getvalue()


def are_rows(names: Iterable[Any]) -> bool:
    """Whether samples are but numbered, from 0.

    >>> are_rows(["0", "1"]), are_rows(["1", "2"])
    (True, False)
    """
    return all(str(name) == str(row) for row, name in enumerate(names))


def predictions_in(
    path: Path, columns: Mapping[str, Sequence[str | None]]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Clusters and confidences among the columns of this file."""
    with reading(path):
        clusters = np.array(columns["cluster"], dtype=np.int64)
        return clusters, np.array(columns["confidence"], dtype=np.float64)


_NPY_HEADERS = {
    (1, 0): npy_format.read_array_header_1_0,
    (2, 0): npy_format.read_array_header_2_0,
}
_ARRAY_READERS: dict[str, Reader] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".safetensors": _read_safetensors,
    ".csv": read_number_table,
    ".tsv": read_number_table,
    ".parquet": read_parquet,
}
SUFFIXES = frozenset(_ARRAY_READERS)
_ARCHIVES = (".npz", ".safetensors")
_LABEL_READERS: dict[str, Reader] = {
    **_ARRAY_READERS,
    **dict.fromkeys((".csv", ".tsv", ".parquet"), read_table_labels),
}
