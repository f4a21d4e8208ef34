"""Data sets of Hugging Face: saved with ``save_to_disk``, or by name.

Saved ones are read with pyarrow alone, in place; a name is first looked up with the
``datasets`` package, which downloads what is missing. The id is the one in
``id_column``, or the number of the row, counted from 0.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sagl.features._errors import file_error
from sagl.features.decode import image_from_bytes, image_from_file, require_pillow
from sagl.features.readers.base import ListedSamples, first_repeat, pack
from sagl.features.readers.packed import PackedStrings
from sagl.features.samples import Kind, Unreadable

PREFIX = "hf-dataset"
_LABEL = "label"
_Features = Mapping[str, Any]


@dataclass(eq=False)
class ArrowSamples(ListedSamples):
    """A column of Arrow files, memory-mapped anew in each process."""

    files: tuple[Path, ...]
    column: str
    starts: NDArray[np.int64]  # first row of each file
    _opened: dict[int, Any] = field(default_factory=dict, repr=False)

    def __getitem__(self, row: int) -> Any:
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        row %= len(self)
        file = int(np.searchsorted(self.starts, row, side="right")) - 1
        if file not in self._opened:
            self._opened[file] = _read_arrow(self.files[file]).column(self.column)
        value = self._opened[file][row - int(self.starts[file])].as_py()
        return _picture(value) if self.kind == "image" else _text(value)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": {}}


@dataclass(frozen=True)
class Columns:
    """Which columns the user asked for."""

    column: str | None = None
    id_column: str | None = None
    label_column: str | None = None


def is_saved_dataset(folder: Path) -> bool:
    """Whether ``save_to_disk`` wrote this folder."""
    one = all((folder / name).is_file() for name in ("state.json", "dataset_info.json"))
    return one or (folder / "dataset_dict.json").is_file()


def open_saved(
    folder: Path,
    columns: Columns,
    *,
    kind: Kind | None = None,
    split: str | None = None,
) -> ArrowSamples:
    """Samples of a data set written by ``save_to_disk``."""
    part = _chosen_split(folder, split)
    state = _read_json(part / "state.json")
    if state.get("_indices_data_files") or state.get("_indices_files"):
        raise file_error(
            part, "is a selection of rows; save dataset.flatten_indices() instead"
        )
    files = [part / entry["filename"] for entry in state["_data_files"]]
    features = _read_json(part / "dataset_info.json").get("features") or {}
    source = {"reader": "hugging face", "path": str(folder), "split": split}
    return _open_files(part, files, features, columns, kind, source)


def open_named(
    name: str, columns: Columns, *, kind: Kind | None = None, split: str | None = None
) -> ArrowSamples:
    """Samples of ``NAME`` or ``NAME::CONFIGURATION``, through ``datasets``."""
    where = Path(f"{PREFIX}:{name}")
    try:
        datasets = importlib.import_module("datasets")
    except ImportError:
        raise file_error(
            where, 'needs the datasets package: pip install "sagl[datasets]"'
        ) from None
    identifier, _, configuration = name.partition("::")
    try:
        loaded = datasets.load_dataset(identifier, configuration or None)
    # No network, no such name, gated, a broken file: any of a dozen exceptions.
    except Exception as error:
        raise file_error(where, f"cannot be loaded ({error})") from None
    if split is None and len(loaded) == 1:
        [split] = loaded
    if split not in loaded:
        raise file_error(where, f"choose a split (--split): {', '.join(loaded)}")
    chosen = loaded[split]
    files = [Path(entry["filename"]) for entry in chosen.cache_files]
    source = {"reader": "hugging face", "path": str(where), "split": split}
    samples = _open_files(
        where, files, chosen.features.to_dict(), columns, kind, source
    )
    if len(samples) != len(chosen):
        raise file_error(
            where, "is not stored as it is read; save it with save_to_disk first"
        )
    return samples


def _chosen_split(folder: Path, split: str | None) -> Path:
    if (folder / "state.json").is_file():
        if split is not None:
            raise file_error(folder, f"has no splits; leave out {split!r}")
        return folder
    splits = _read_json(folder / "dataset_dict.json")["splits"]
    if split not in splits:
        raise file_error(folder, f"choose a split (--split): {', '.join(splits)}")
    return folder / str(split)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise file_error(
            path, f"cannot be read ({error}); save the data set again"
        ) from None
    if not isinstance(value, dict):
        raise file_error(path, "is not a JSON object; save the data set again")
    return value


def _open_files(
    where: Path,
    files: Sequence[Path],
    features: _Features,
    columns: Columns,
    kind: Kind | None,
    source: dict[str, Any],
) -> ArrowSamples:
    tables = [_read_arrow(path) for path in files]
    lengths = [table.num_rows for table in tables]
    if not sum(lengths):
        raise file_error(where, "holds no rows")
    names = tables[0].schema.names
    for name in (columns.column, columns.id_column, columns.label_column):
        if name is not None and name not in names:
            raise file_error(
                where, f"has no column {name!r}; choose one of: {', '.join(names)}"
            )
    schema = tables[0].schema
    column = columns.column or _value_column(where, schema, features, columns, kind)
    own_kind = _kind(where, schema, features, column)
    if kind is not None and kind != own_kind:
        raise file_error(where, f"column {column!r} holds {own_kind}s, not {kind}s")
    if own_kind == "image":
        require_pillow()
    return ArrowSamples(
        own_kind,
        PackedStrings(_ids(where, tables, columns.id_column)),
        pack(_labels(where, tables, features, columns.label_column)),
        {**source, "column": column, "id_column": columns.id_column},
        0,
        tuple(files),
        column,
        np.cumsum([0, *lengths[:-1]], dtype=np.int64),
    )


def _read_arrow(path: Path) -> Any:
    """A table whose values stay in the file."""
    try:
        import pyarrow as pa
    except ImportError:
        raise file_error(
            path, 'reading .arrow needs pyarrow: pip install "sagl[parquet]"'
        ) from None
    try:
        return pa.ipc.open_stream(pa.memory_map(str(path))).read_all()
    except (pa.ArrowException, OSError) as error:
        raise file_error(
            path, f"is cut short or not an .arrow file ({error}); save it again"
        ) from None


def _value_column(
    where: Path, schema: Any, features: _Features, columns: Columns, kind: Kind | None
) -> str:
    """The only column of pictures, or else the only one of strings."""
    taken = (columns.id_column, columns.label_column, _LABEL)
    names: list[str] = [name for name in schema.names if name not in taken]
    pictures = [name for name in names if _is_picture(features, name)]
    texts = [
        name for name in names if name not in pictures and _is_string(schema, name)
    ]
    candidates = {"image": pictures, "text": texts, None: pictures or texts}[kind]
    if len(candidates) != 1:
        raise file_error(
            where,
            f"has the columns {', '.join(schema.names)}; say which one holds the "
            "samples (--column)",
        )
    return candidates[0]


def _kind(where: Path, schema: Any, features: _Features, column: str) -> Kind:
    if _is_picture(features, column):
        return "image"
    if _is_string(schema, column):
        return "text"
    raise file_error(
        where,
        f"column {column!r} holds {schema.field(column).type}, neither pictures nor "
        "strings; choose another (--column)",
    )


def _is_picture(features: _Features, name: str) -> bool:
    return bool((features.get(name) or {}).get("_type") == "Image")


def _is_string(schema: Any, name: str) -> bool:
    from pyarrow import types

    kind = schema.field(name).type
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _ids(where: Path, tables: Sequence[Any], name: str | None) -> list[str]:
    if name is None:
        return list(map(str, range(sum(table.num_rows for table in tables))))
    ids = [str(value) for value in _values(tables, name)]
    repeat = first_repeat(ids)
    if repeat is not None:
        one, other = repeat
        raise file_error(
            where, f"rows {one} and {other} have the same {name!r}: {ids[one]!r}"
        )
    return ids


def _labels(
    where: Path, tables: Sequence[Any], features: _Features, name: str | None
) -> list[str] | None:
    """Names of classes where they are known, else the values."""
    asked_for = name is not None
    if name is None:
        if _LABEL not in tables[0].schema.names:
            return None
        name = _LABEL
    values = _values(tables, name)
    names = (features.get(name) or {}).get("names")
    # -1 is how data sets mark a row without a label.
    missing = [v is None or (names is not None and v < 0) for v in values]
    if any(missing):
        if asked_for:
            row = missing.index(True)
            raise file_error(where, f"row {row} has no {name!r}; leave the labels out")
        return None
    return [str(v if names is None else names[v]) for v in values]


def _values(tables: Sequence[Any], name: str) -> list[Any]:
    return [value for table in tables for value in table.column(name).to_pylist()]


def _picture(value: Any) -> Any:
    if isinstance(value, str):
        return image_from_file(Path(value))
    if value is None or not (value["bytes"] or value["path"]):
        raise Unreadable("the picture is missing")
    if value["bytes"]:
        return image_from_bytes(value["bytes"])
    return image_from_file(Path(value["path"]))


def _text(value: Any) -> str:
    if value is None or not str(value).strip():
        raise Unreadable("the text is missing or blank")
    return str(value)
