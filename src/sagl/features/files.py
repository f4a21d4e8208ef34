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
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from sagl.features.samples import (
    FileFormatError,
    check_readable,
    choose_key,
    file_error,
)
from sagl.features.tables import (
    read_number_table,
    read_parquet,
    read_parquet_labels,
    read_text_labels,
)
from sagl.storage import check_writable, replacing, write_text

__all__ = [
    "SUFFIXES",
    "FileFormatError",
    "check_prediction_path",
    "parse_view_option",
    "prediction_table",
    "read_array",
    "read_labels",
    "read_prediction_table",
    "write_predictions",
]

Array = NDArray[Any]
Reader = Callable[[Path, str | None], Array]


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
        raise file_error(
            path,
            f"holds values of type {array.dtype}, expected real numbers; convert them, "
            "e.g. array.astype('float32'), and save again",
        )
    if array.ndim not in (1, 2):
        raise file_error(
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
        raise file_error(
            path,
            f"holds an array of shape {labels.shape}, expected one label per sample; "
            "save a one-dimensional array",
        )
    if labels.dtype.kind == "S":
        labels = _decoded(path, labels)
    if labels.dtype.kind == "f":
        labels = _whole(path, labels)
    if labels.dtype.kind not in "biuU":
        raise file_error(
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


def _read(path: Path, key: str | None, readers: Mapping[str, Reader]) -> Array:
    check_readable(path)
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise file_error(
            path, f"unsupported suffix {path.suffix!r}; use one of {', '.join(readers)}"
        )
    try:
        return reader(path, key)
    except OSError as exc:
        raise file_error(path, f"cannot be read: {exc}") from exc


def _decoded(path: Path, labels: Array) -> Array:
    try:
        return np.char.decode(labels, "utf-8")
    except UnicodeDecodeError as exc:
        raise file_error(
            path, f"holds labels that are not UTF-8 ({exc}); save them as strings"
        ) from None


def _whole(path: Path, labels: Array) -> Array:
    numbers = labels.astype(np.float64)
    bad = (numbers != np.floor(numbers)) | ~(np.abs(numbers) < 2.0**63)
    if bad.any():
        row = int(np.argmax(bad))
        raise file_error(
            path,
            f"label {row} (counting from 0) is {labels[row]}; "
            "labels must be whole 64-bit numbers or strings, without missing values",
        )
    return labels.astype(np.int64)


def read_npy(path: Path, key: str | None) -> Array:
    """A read-only memory map; ``key`` must be None."""
    if key is not None:
        raise file_error(path, f".npy holds one array without a key; leave out {key!r}")
    cure = "copy it or write it with np.save again"
    with path.open("rb") as file:
        try:
            read_header = npy_format.read_array_header_2_0
            if npy_format.read_magic(file) == (1, 0):
                read_header = npy_format.read_array_header_1_0
            shape, _, dtype = read_header(file)
        except ValueError as error:
            raise file_error(path, f"is not a .npy file ({error}); {cure}") from None
        needed = file.tell() + dtype.itemsize * math.prod(shape)
    if dtype.hasobject:
        raise _pickled(path)
    if (size := path.stat().st_size) < needed:
        raise file_error(
            path,
            f"is cut short: {dtype} of shape {shape} needs {needed} bytes, found "
            f"{size}; {cure}",
        )
    try:
        return npy_format.open_memmap(path, mode="r")
    except ValueError as error:
        raise file_error(path, f"is damaged ({error}); {cure}") from None


def read_npz(path: Path, key: str | None) -> Array:
    """The array named ``key``, or the only one."""
    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            is_cut = file.read(2) == b"PK"
        fault = "is cut short" if is_cut else "is not a .npz file (not a zip archive)"
        raise file_error(path, f"{fault}; copy it or write it with np.savez again")
    try:
        with np.load(path, allow_pickle=False) as archive:
            name = choose_key(path, key, list(archive.files), "array")
            array = archive[name]
    except FileFormatError:
        raise
    except (ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as exc:
        if "pickle" in str(exc):
            raise _pickled(path) from None
        raise file_error(path, f"is damaged ({exc}); copy or write it again") from exc
    if not isinstance(array, np.ndarray):
        raise file_error(path, f"{name!r} is not a NumPy array; write it with np.savez")
    return array


def read_safetensors(path: Path, key: str | None) -> Array:
    """The tensor named ``key``, or the only one; what NumPy lacks becomes float32."""
    try:
        with safe_open(path, framework="pt") as file:
            name = choose_key(path, key, sorted(file.keys()), "tensor")
            tensor = file.get_tensor(name)
    except SafetensorError as error:
        raise file_error(
            path, f"is cut short or not a .safetensors file ({error}); copy it again"
        ) from None
    try:
        array: Array = tensor.numpy()
    except TypeError:  # bfloat16, and floats of eight bits
        array = tensor.float().numpy()
    return array


def _pickled(path: Path) -> FileFormatError:
    return file_error(
        path,
        "holds Python objects, which are stored as pickle and never loaded here; save "
        "again with a plain type, e.g. array.astype('float32') or labels.astype(str)",
    )


def check_prediction_path(path: Path) -> None:
    """Refuse an output that could not be written, before any work is done."""
    check_writable(path, "predictions are written as", ".csv", ".npy")


def write_predictions(
    path: Path,
    clusters: NDArray[np.int64],
    confidence: NDArray[np.float64],
    ids: Sequence[str] | None = None,
) -> None:
    """Cluster and confidence per sample (.csv), or the clusters alone (.npy)."""
    if path.suffix.lower() == ".npy":
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.save(file, clusters)
        return
    write_text(path, prediction_table(clusters, confidence, ids))


def prediction_table(
    clusters: NDArray[np.int64],
    confidence: NDArray[np.float64],
    ids: Sequence[str] | None = None,
) -> str:
    """CSV text with the columns sample, cluster and confidence.

    A sample is called by its id, or by its number where there are no ids.
    """
    names = range(len(clusters)) if ids is None else ids
    if len(names) != len(clusters):
        raise ValueError(f"{len(names)} ids for {len(clusters)} samples")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["sample", "cluster", "confidence"])
    rows = zip(names, clusters.tolist(), confidence.tolist(), strict=True)
    writer.writerows((name, k, repr(c)) for name, k, c in rows)
    return text.getvalue()


def read_prediction_table(
    path: Path,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Clusters and confidences of a table, whatever its samples are called."""
    table = np.loadtxt(
        path,
        delimiter=",",
        skiprows=1,
        usecols=(1, 2),
        quotechar='"',
        comments=None,
        encoding="utf-8",
        ndmin=2,
    )
    return table[:, 0].astype(np.int64), table[:, 1]


_ARRAY_READERS: dict[str, Reader] = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".safetensors": read_safetensors,
    ".csv": read_number_table,
    ".tsv": read_number_table,
    ".parquet": read_parquet,
}
SUFFIXES = frozenset(_ARRAY_READERS)
_LABEL_READERS: dict[str, Reader] = {
    **_ARRAY_READERS,
    ".csv": read_text_labels,
    ".tsv": read_text_labels,
    ".parquet": read_parquet_labels,
}
