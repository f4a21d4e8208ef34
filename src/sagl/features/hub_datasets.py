"""Data sets of Hugging Face: saved with ``save_to_disk``, or by name.

The ``datasets`` package reads them, and its types of columns say what is an image, a
text or a class. The id is the one in ``id_column``, or the number of the row, counted
from 0.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from sagl.environment import optional_module
from sagl.features.images import image_from_bytes, image_from_file
from sagl.features.samples import (
    Kind,
    ListedSamples,
    Unreadable,
    check_sample_text,
    choose_columns,
    file_error,
)

PREFIX = "hf-dataset"


def is_saved_dataset(folder: Path) -> bool:
    """Whether ``save_to_disk`` wrote this folder."""
    one = all((folder / name).is_file() for name in ("state.json", "dataset_info.json"))
    return one or (folder / "dataset_dict.json").is_file()


def open_hub_dataset(
    source: str,
    *,
    kind: Kind | None = None,
    split: str | None = None,
    column: str | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
) -> ListedSamples:
    """Samples of a saved folder, or of ``hf-dataset:NAME[::CONFIGURATION]``.

    Without ``column`` it is the only one of images, or else the only one of strings.
    """
    by_name = source.startswith(f"{PREFIX}:")
    where = Path(source) if by_name else Path(source).expanduser()
    datasets = optional_module("datasets", "datasets")
    name, _, configuration = source.removeprefix(f"{PREFIX}:").partition("::")
    try:
        if by_name:
            loaded = datasets.load_dataset(name, configuration or None)
        else:
            loaded = datasets.load_from_disk(str(where))
    # No network, no such name, gated, a broken file: any of a dozen exceptions.
    except Exception as error:
        raise file_error(where, f"cannot be loaded ({error})") from None
    data = _choose_split(where, loaded, split)
    if not len(data):
        raise file_error(where, "holds no rows")
    types = {name: _kind(datasets, feature) for name, feature in data.features.items()}
    wanted = kind or ("image" if "image" in types.values() else "text")
    column, ids, labels = choose_columns(
        where,
        data.column_names,
        [name for name, type_ in types.items() if type_ == wanted],
        lambda name: _strings(data, name),
        column,
        id_column,
        label_column,
    )
    held = types[column]
    if held is None or kind not in (None, held):
        expected = f"{kind}s" if kind else "pictures or strings"
        raise file_error(
            where,
            f"column {column!r} holds {data.features[column]}, expected {expected}; "
            "choose another (--column)",
        )
    values = data.select_columns([column])
    if held == "image":
        optional_module("PIL.Image")
        values = values.cast_column(column, datasets.Image(decode=False))
    ids = ids or list(map(str, range(len(data))))
    return ListedSamples(held, ids, labels, partial(_read_row, held, column, values))


def _read_row(kind: Kind, column: str, dataset: Any, row: int) -> Any:
    """A cell; the data set is memory-mapped anew in each process."""
    value = dataset[row][column]
    if kind == "text":
        return check_sample_text(value)
    if value is None or not (value["bytes"] or value["path"]):
        raise Unreadable("the picture is missing")
    if value["bytes"]:
        return image_from_bytes(value["bytes"])
    return image_from_file(Path(value["path"]))


def _choose_split(where: Path, loaded: Any, split: str | None) -> Any:
    if not isinstance(loaded, dict):
        if split is not None:
            raise file_error(where, f"has no splits; leave out {split!r}")
        return loaded
    if split is None and len(loaded) == 1:
        return next(iter(loaded.values()))
    if split not in loaded:
        raise file_error(where, f"choose a split (--split): {', '.join(loaded)}")
    return loaded[split]


def _kind(datasets: Any, feature: Any) -> Kind | None:
    if isinstance(feature, datasets.Image):
        return "image"
    is_text = getattr(feature, "dtype", None) in ("string", "large_string")
    return "text" if is_text else None


def _strings(data: Any, column: str) -> list[str | None]:
    """Names of classes where they are known, else the values."""
    names = getattr(data.features[column], "names", None)
    if names is None:
        return [None if value is None else str(value) for value in data[column]]
    # -1 is how data sets mark a row without a label.
    return [None if v is None or v < 0 else str(names[v]) for v in data[column]]
