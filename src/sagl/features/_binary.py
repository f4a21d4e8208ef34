"""Arrays from .npy, .npz and .safetensors files, without ever unpickling."""

from __future__ import annotations

import json
import math
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from sagl.features._errors import FileFormatError, file_error
from sagl.features._keys import choose_key

_SAFETENSORS_TYPES = {
    *("BOOL", "U8", "U16", "U32", "U64", "I8", "I16", "I32", "I64"),
    *("F16", "F32", "F64"),
}


def read_npy(path: Path, key: str | None) -> NDArray[Any]:
    """A read-only memory map; ``key`` must be None."""
    if key is not None:
        raise file_error(path, f".npy holds one array without a key; leave out {key!r}")
    with path.open("rb") as file:
        try:
            if npy_format.read_magic(file) == (1, 0):
                shape, _, dtype = npy_format.read_array_header_1_0(file)
            else:
                shape, _, dtype = npy_format.read_array_header_2_0(file)
        except ValueError as exc:
            raise file_error(
                path, f"is not a .npy file ({exc}); write it with np.save"
            ) from None
        expected = file.tell() + dtype.itemsize * math.prod(shape)
    if dtype.hasobject:
        raise _pickled(path)
    found = path.stat().st_size
    if found < expected:
        raise file_error(
            path,
            f"is cut short: {dtype} of shape {shape} needs {expected} bytes, found "
            f"{found}; copy or write it again",
        )
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as exc:
        raise _damaged(path, exc) from exc
    return array


def read_npz(path: Path, key: str | None) -> NDArray[Any]:
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
        raise _damaged(path, exc) from exc
    if not isinstance(array, np.ndarray):
        raise file_error(path, f"{name!r} is not a NumPy array; write it with np.savez")
    return array


def read_safetensors(path: Path, key: str | None) -> NDArray[Any]:
    """The tensor named ``key``, or the only one; bfloat16 becomes float32."""
    try:
        with safe_open(path, framework="np") as file:
            name = choose_key(path, key, sorted(file.keys()), "tensor")
            dtype = file.get_slice(name).get_dtype()
            if dtype in _SAFETENSORS_TYPES:
                return np.asarray(file.get_tensor(name))
    except SafetensorError as exc:
        raise file_error(
            path,
            f"is cut short or not a .safetensors file ({exc}); copy or write it again",
        ) from None
    if dtype == "BF16":
        return _read_bfloat16(path, name)
    raise file_error(
        path, f"tensor {name!r} is {dtype}, which NumPy lacks; save it as float32"
    )


def _read_bfloat16(path: Path, name: str) -> NDArray[Any]:
    """NumPy has no bfloat16, but it is the upper half of a float32."""
    with path.open("rb") as file:
        header_size = int.from_bytes(file.read(8), "little")
        entry = json.loads(file.read(header_size))[name]
        file.seek(entry["data_offsets"][0], os.SEEK_CUR)
        upper = np.fromfile(file, dtype="<u2", count=math.prod(entry["shape"]))
    widened = upper.astype(np.uint32)
    widened <<= 16
    return widened.view(np.float32).reshape(entry["shape"])


def _damaged(path: Path, exc: Exception) -> FileFormatError:
    return file_error(path, f"is damaged ({exc}); copy or write it again")


def _pickled(path: Path) -> FileFormatError:
    return file_error(
        path,
        "holds Python objects, which are stored as pickle and never loaded here; save "
        "again with a plain type, e.g. array.astype('float32') or labels.astype(str)",
    )
