"""Samples to extract features from, out of the files that people have."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from sagl.features._errors import file_error
from sagl.features.decode import is_image_name
from sagl.features.files import SUFFIXES as FEATURE_SUFFIXES
from sagl.features.readers import table
from sagl.features.readers.base import ListedSamples
from sagl.features.readers.braces import expand_braces
from sagl.features.readers.datasets import DATASETS, open_dataset
from sagl.features.readers.folder import open_folder
from sagl.features.readers.huggingface import (
    PREFIX,
    Columns,
    is_saved_dataset,
    open_named,
    open_saved,
)
from sagl.features.readers.lines import open_lines
from sagl.features.readers.shards import Shards, open_shards
from sagl.features.samples import Kind, Samples

__all__ = ["DATASETS", "open_samples"]

_LINES = frozenset({".txt", ".lst"})
_SOURCES = (
    "a folder of pictures or tar shards, .txt, .lst, .csv, .tsv, .jsonl, .parquet, "
    f".tar, {PREFIX}:NAME, or one of {', '.join(DATASETS)} as in pets:FOLDER"
)


def open_samples(
    source: str | Path,
    *,
    kind: Kind | None = None,
    column: str | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    split: str | None = None,
) -> Samples:
    """Pictures or texts, whatever they are stored in.

    Parameters
    ----------
    source : str or path
        - a folder of pictures, with sub-folders; class folders give labels
        - a ``.txt`` or ``.lst`` file of paths, relative to it, or of texts
        - a ``.csv``, ``.tsv``, ``.jsonl`` or ``.parquet`` file
        - a ``.tar`` file in webdataset's layout, a folder of them, or a pattern such as
          ``data-{000..004}.tar``
        - a folder written by Hugging Face's ``save_to_disk``, or ``hf-dataset:NAME``
        - one of the paper's data sets: ``pets:FOLDER``
    kind : "image" or "text", optional
        Where the source could be read as either.
    column : str, optional
        The column of texts or paths; in shards the extension of the member.
    id_column, label_column : str, optional
        Columns of ids and of labels; in shards ``label_column`` is a field of the
        ``.json`` members.
    split : str, optional
        ``train``, ``test`` or ``all`` of the paper's data sets; a sub-folder of a
        folder; a split of a Hugging Face data set.

    Returns
    -------
    Samples
        With, besides what is promised there, ``len`` and ``ignored``: how many files or
        lines are there that are no samples.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "questions.txt"
    ...     _ = path.write_text("Where is my card?\\nHow do I pay?\\n")
    ...     samples = open_samples(path)
    >>> samples.kind, list(samples.ids), samples[1]
    ('text', ['1', '2'], 'How do I pay?')
    """
    if kind not in (None, "image", "text"):
        raise ValueError(f"kind must be image or text, not {kind!r}")
    columns = Columns(column, id_column, label_column)
    samples = _open(source, columns, kind, split)
    given = {**asdict(columns), "kind": kind, "split": split}
    # With these two the same samples can be opened again.
    samples.source["source"] = str(source)
    samples.source["options"] = {k: v for k, v in given.items() if v is not None}
    return samples


def _open(
    source: str | Path, columns: Columns, kind: Kind | None, split: str | None
) -> ListedSamples:
    name, colon, rest = str(source).partition(":")
    if colon and name == PREFIX:
        return open_named(rest, columns, kind=kind, split=split)
    if name in DATASETS and (colon or not Path(source).exists()):
        if not rest:
            raise ValueError(f"{source}: say where it lies: {name}:FOLDER")
        _refuse(
            source, "a data set of the paper", {**asdict(columns), **_text_kind(kind)}
        )
        return open_dataset(name, Path(rest).expanduser(), split)
    path = Path(source).expanduser()
    if path.is_dir():
        return _open_directory(path, columns, kind, split)
    _refuse(source, "a file", {"split": split})
    if not path.exists() and path.suffix.lower() == ".tar" and "{" in str(path):
        shards = [Path(name) for name in expand_braces(str(path))]
        return _open_tars(path, shards, columns, kind, several=True)
    return _open_file(path, columns, kind)


def _open_directory(
    path: Path, columns: Columns, kind: Kind | None, split: str | None
) -> ListedSamples:
    if is_saved_dataset(path):
        return open_saved(path, columns, kind=kind, split=split)
    tars, has_others = _look_into(path)
    if tars and has_others:
        raise file_error(
            path,
            "holds tar files beside pictures or folders; name the tar files "
            "(data-{000..004}.tar), or move them elsewhere",
        )
    if tars:
        _refuse(path, "a folder of tar files", {"split": split})
        return _open_tars(path, tars, columns, kind, several=True)
    _refuse(path, "a folder of pictures", {**asdict(columns), **_text_kind(kind)})
    return open_folder(path, split)


def _look_into(folder: Path) -> tuple[list[Path], bool]:
    """The tar files directly in a folder, and whether it may hold pictures too."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.name[0] != ".")
    except OSError as error:
        raise file_error(folder, f"cannot be read: {error.strerror}") from None
    tars = [path for path in paths if path.suffix.lower() == ".tar"]
    # The other files are looked at only where there is a choice to be made.
    has_others = bool(tars) and any(
        is_image_name(path.name) or path.is_dir() for path in paths
    )
    return tars, has_others


def _open_tars(
    source: Path,
    paths: list[Path],
    columns: Columns,
    kind: Kind | None,
    *,
    several: bool,
) -> Shards:
    _refuse(source, "a tar file", {"id_column": columns.id_column})
    missing = [path for path in paths if not path.is_file()]
    if missing:
        raise file_error(
            source,
            f"{len(missing)} of its {len(paths)} shards are missing, first "
            f"{missing[0].name}",
        )
    return open_shards(
        paths,
        str(source),
        several=several,
        kind=kind,
        extension=columns.column,
        label_field=columns.label_column,
    )


def _open_file(path: Path, columns: Columns, kind: Kind | None) -> ListedSamples:
    _check_readable(path)
    suffix = path.suffix.lower()
    if suffix in _LINES:
        _refuse(path, "a file of lines", asdict(columns))
        return open_lines(path, kind)
    if suffix == ".tar":
        return _open_tars(path, [path], columns, kind, several=False)
    if suffix in table.SUFFIXES:
        return table.open_table(
            path,
            kind=kind,
            column=columns.column,
            id_column=columns.id_column,
            label_column=columns.label_column,
        )
    if is_image_name(path.name):
        raise file_error(path, "is a single picture; give the folder that it is in")
    if suffix in FEATURE_SUFFIXES:
        raise file_error(path, "holds features, not samples; use it as a view (--view)")
    if path.name.lower().endswith((".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")):
        raise file_error(
            path, "is compressed and allows no random access; unpack it to .tar"
        )
    raise file_error(path, f"cannot be read as samples; give {_SOURCES}")


def _check_readable(path: Path) -> None:
    try:
        with path.open("rb") as file:
            if not file.read(1):
                raise file_error(path, "the file is empty (0 bytes); write it again")
    except FileNotFoundError:
        raise file_error(path, f"no such file or folder; give {_SOURCES}") from None
    except PermissionError:
        raise file_error(path, "permission denied; make the file readable") from None
    except OSError as error:
        raise file_error(path, f"cannot be opened: {error.strerror}") from None


def _text_kind(kind: Kind | None) -> dict[str, str | None]:
    return {"kind": None if kind == "image" else kind}


def _refuse(source: str | Path, what: str, options: dict[str, str | None]) -> None:
    """Options that would have no effect are mistakes."""
    for name, value in options.items():
        if value is not None:
            raise ValueError(
                f"{source}: {what} takes no --{name.replace('_', '-')} ({value})"
            )
