"""Views of a store as files that other tools read."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Literal, get_args

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from sagl.features.store.feature_store import FeatureStore, Join
from sagl.storage import replacing

Format = Literal["npy", "npz", "parquet", "csv"]
_BLOCK_ROWS = 4096


def export(
    store: FeatureStore,
    out: str | Path,
    form: Format = "npy",
    *,
    names: Sequence[str] | None = None,
    join: Join = "error",
) -> list[Path]:
    """Write one file per view, ``ids.txt`` and, if known, ``labels.csv`` to ``out``.

    ``npy`` holds the features, row i those of line i of ``ids.txt``; ``npz`` the
    arrays ``features`` and ``ids``; ``parquet`` the columns ``id`` and ``features``
    (lists); ``csv`` the column ``id`` and one per feature.

    Returns
    -------
    list of Path
        The files.
    """
    if form not in get_args(Format):
        raise ValueError(
            f"a store is exported as {', '.join(get_args(Format))}; not as {form!r}"
        )
    out = Path(out)
    joined = store.join(names, join)
    paths = [out / f"{name}.{form}" for name in joined.views.names]
    ids, labels = out / "ids.txt", out / "labels.csv"
    for path in (*paths, ids, *([labels] if joined.labels is not None else [])):
        if path.exists():
            raise ValueError(f"{path} is there already; choose another place")
    if form == "parquet":
        _parquet()
    out.mkdir(parents=True, exist_ok=True)
    write = _WRITERS[form]
    for path, name in zip(paths, joined.views.names, strict=True):
        with replacing(path) as temporary:
            write(temporary, joined.views[name], joined.ids)
    with replacing(ids) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(f"{sample}\n" for sample in joined.ids)
    paths.append(ids)
    if joined.labels is not None:
        _write_labels(labels, joined.ids, joined.labels.tolist())
        paths.append(labels)
    return paths


def _write_labels(path: Path, ids: Sequence[str], labels: Sequence[str]) -> None:
    with (
        replacing(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", "label"])
        writer.writerows(zip(ids, labels, strict=True))


def _blocks(array: Any) -> Iterator[NDArray[Any]]:
    for start in range(0, len(array), _BLOCK_ROWS):
        yield np.ascontiguousarray(array[start : start + _BLOCK_ROWS])


def _write_features(file: IO[bytes], array: Any) -> None:
    header = {
        "descr": npy_format.dtype_to_descr(array.dtype),
        "fortran_order": False,
        "shape": array.shape,
    }
    npy_format.write_array_header_1_0(file, header)
    for block in _blocks(array):
        file.write(block.data)


def _write_npy(path: Path, array: Any, ids: Sequence[str]) -> None:
    with path.open("wb") as file:
        _write_features(file, array)


def _write_npz(path: Path, array: Any, ids: Sequence[str]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        with archive.open("features.npy", "w", force_zip64=True) as file:
            _write_features(file, array)
        with archive.open("ids.npy", "w", force_zip64=True) as file:
            npy_format.write_array(file, np.array(ids), allow_pickle=False)


def _write_parquet(path: Path, array: Any, ids: Sequence[str]) -> None:
    pa, pq = _parquet()
    # Few tools read half precision from parquet.
    kind = pa.float64() if array.dtype == np.float64 else pa.float32()
    lists = pa.list_(kind, array.shape[1])
    schema = pa.schema([("id", pa.string()), ("features", lists)])
    with pq.ParquetWriter(path, schema) as writer:
        for i, block in enumerate(_blocks(array)):
            start = i * _BLOCK_ROWS
            values = pa.array(block.ravel(), type=kind, safe=False)
            features = pa.FixedSizeListArray.from_arrays(values, array.shape[1])
            names = pa.array(ids[start : start + len(block)], type=pa.string())
            writer.write_table(pa.Table.from_arrays([names, features], schema=schema))


def _parquet() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ValueError(
            'writing .parquet needs pyarrow: pip install "sagl[parquet]"'
        ) from None
    return pa, pq


def _write_csv(path: Path, array: Any, ids: Sequence[str]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", *(f"f{i}" for i in range(array.shape[1]))])
        for i, block in enumerate(_blocks(array)):
            # As text NumPy writes the shortest digits that give the same number back.
            rows = block.astype(str).tolist()
            for j, row in enumerate(rows, i * _BLOCK_ROWS):
                writer.writerow([ids[j], *row])


_WRITERS: dict[str, Callable[[Path, Any, Sequence[str]], None]] = {
    "npy": _write_npy,
    "npz": _write_npz,
    "parquet": _write_parquet,
    "csv": _write_csv,
}
