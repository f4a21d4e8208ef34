"""``npy:`` Features that other tools have saved.

Any file that a view can be read from, and two layouts that are in use: TURTLE's
``representations/MODEL/DATA_train.npy``, and that of the authors of MSRL and SAGL,
``feats/MODEL/DATA_train_feats.npy``. A folder and a key choose the file:
``npy:representations/clipvitL14::pets_train``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sagl.features.callables import describe_model
from sagl.features.files import SUFFIXES, read_array, read_labels
from sagl.features.manifest import DTYPES
from sagl.features.samples import (
    check_filled,
    choose_key,
    file_error,
    first_repeat,
    reading,
)
from sagl.storage import sha256

__all__ = ["SavedFeatures", "read_saved"]

_FEATURES = "_feats"


@dataclass(frozen=True)
class SavedFeatures:
    """Features from a file."""

    name: str  # as the user wrote it
    path: Path
    key: str | None  # which of several arrays of the file
    array: NDArray[Any]  # (n, dim), a memory map where the file allows it
    ids: list[str] | None  # a name per row, if a file beside the features has them

    @property
    def dim(self) -> int:
        return int(self.array.shape[1])

    @property
    def dtype(self) -> str:
        """That in which a store keeps them."""
        own = self.array.dtype.name
        return own if own in DTYPES else "float32"

    def describe(self) -> dict[str, Any]:
        """Like those of backbones; the revision is a checksum of the file."""
        chosen = "" if self.key is None else f"::{self.key}"
        return describe_model(
            "npy",
            f"{self.path.resolve().parent.name}/{self.path.name}{chosen}",
            sha256(self.path),
            self.dim,
            library=f"numpy {np.__version__}",
        )

    def rows_by_id(self, view: str, ids: Sequence[str]) -> dict[str, int]:
        """The row of each sample: by id where the file has ids, else by position."""
        known = ids if self.ids is None else self.ids
        if len(known) != len(self.array):
            raise ValueError(
                f"view {view!r}: {len(self.array):,} saved rows for {len(known):,} "
                "samples; without ids there must be one row per sample, in order"
            )
        rows = {sample: row for row, sample in enumerate(known)}
        if not any(sample in rows for sample in ids):
            raise ValueError(
                f"view {view!r}: not one sample is among the saved features; a sample "
                f"is called {ids[0]!r}, a saved row {known[0]!r}"
            )
        return rows


def read_saved(name: str) -> SavedFeatures:
    """Features by ``npy:FILE``, ``npy:FILE::KEY`` or ``npy:FOLDER::DATA_PART``."""
    place, _, key = name.removeprefix("npy:").partition("::")
    if not place:
        raise ValueError(f"{name}: the file is missing; write npy:FILE")
    path, chosen = Path(place).expanduser(), key or None
    if path.is_dir():
        path, chosen = _in_folder(path, chosen), None
    array = read_array(path, chosen)
    if array.ndim != 2 or 0 in array.shape:
        raise file_error(
            path, f"holds an array of shape {array.shape}, expected rows x columns"
        )
    return SavedFeatures(name, path, chosen, array, _read_ids(path, len(array)))


def _in_folder(folder: Path, wanted: str | None) -> Path:
    """The file of features in a folder, chosen by its name without an ending."""
    files = {
        file.stem.removesuffix(_FEATURES): file
        for file in sorted(folder.iterdir())
        if file.suffix.lower() in SUFFIXES
        and not file.stem.endswith((".ids", "_ids", "_labels"))
        and file.stem not in ("ids", "labels")
    }
    wanted = wanted and wanted.removesuffix(_FEATURES)
    return files[choose_key(folder, wanted, list(files), "feature file")]


def _read_ids(path: Path, rows: int) -> list[str] | None:
    """Names of the rows, from a file beside the features."""
    stem = path.stem.removesuffix(_FEATURES)
    names = [f"{s}{end}" for s in (path.stem, stem) for end in (".ids", "_ids")]
    candidates = (
        path.with_name(name + suffix)
        for name in (*names, "ids")
        for suffix in (".txt", ".npy", ".csv")
    )
    file = next((file for file in candidates if file.is_file()), None)
    if file is None:
        return None
    if file.suffix == ".txt":
        with reading(file, "save it as UTF-8 text"):
            ids = file.read_text(encoding="utf-8").splitlines()
    else:
        ids = [str(value) for value in read_labels(file)]
    fault = first_repeat(ids := check_filled(file, "id", ids, "id"))
    if len(ids) != rows:
        fault = f"holds {len(ids)} ids for {rows} rows; expected one per row"
    if fault is not None:
        raise file_error(file, fault)
    return ids
