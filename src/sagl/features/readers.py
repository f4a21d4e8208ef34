"""Samples to extract features from, out of the files that people have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sagl.features.files import SUFFIXES as FEATURE_SUFFIXES
from sagl.features.hub_datasets import PREFIX, is_saved_dataset, open_hub_dataset
from sagl.features.images import is_image_name, open_folder
from sagl.features.paper_datasets import DATASETS, open_dataset
from sagl.features.sample_lists import open_lines, open_table
from sagl.features.samples import (
    Kind,
    ListedSamples,
    Samples,
    check_readable,
    file_error,
)
from sagl.features.shards import expand_braces, open_shards
from sagl.features.tables import TABLE_SUFFIXES

__all__ = ["DATASETS", "absolute", "open_samples", "reopen"]

_SOURCES = (
    "a folder of pictures or tar shards, .txt, .lst, .csv, .tsv, .jsonl, .parquet, "
    f".tar, {PREFIX}:NAME, or one of {', '.join(DATASETS)} as in pets:FOLDER"
)
_COLUMNS = ("column", "id_column", "label_column")


def open_samples(
    source: str | Path,
    *,
    kind: Kind | None = None,
    column: str | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    split: str | None = None,
) -> Samples:
    """Images or texts, whatever they are stored in.

    Parameters
    ----------
    source : str or path
        - a folder of images, with sub-folders; class folders give labels
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
    columns = {"column": column, "id_column": id_column, "label_column": label_column}
    given = {**columns, "kind": kind, "split": split}
    options = {name: value for name, value in given.items() if value is not None}
    reader = _find_reader(str(source))
    for name, value in options.items():
        if name not in reader.options and (name, value) != ("kind", "image"):
            raise ValueError(  # what would have no effect is a mistake
                f"{source}: {reader.what} takes no --{name.replace('_', '-')} ({value})"
            )
    taken = {name: options[name] for name in reader.options if name in options}
    samples = reader.open(str(source), **taken)
    # With these two ``reopen`` opens the same samples again.
    samples.source |= {"source": str(source), "options": options}
    return samples


def reopen(record: Mapping[str, Any]) -> Samples:
    """The samples of which ``record`` is the description, as a store keeps it."""
    if "source" not in record:
        raise ValueError("it is not written down how the samples were opened")
    return open_samples(record["source"], **record["options"])


def absolute(record: Mapping[str, Any]) -> dict[str, Any]:
    """A description of samples that holds from other directories, too."""
    resolved = dict(record)
    source = str(record.get("source", ""))
    name, colon, rest = source.partition(":")
    prefix = f"{name}:" if colon and name in (*DATASETS, PREFIX) else ""
    path = Path(rest if prefix else source).expanduser()
    if source and (prefix != f"{PREFIX}:" or path.exists()):
        resolved["source"] = f"{prefix}{path.resolve()}"
    if "path" in record and Path(record["path"]).exists():
        resolved["path"] = str(Path(record["path"]).resolve())
    return resolved


class _Reader(NamedTuple):
    """How a source is opened, what it is called, and the options that it takes."""

    what: str
    options: tuple[str, ...]
    open: Callable[..., ListedSamples]


def _find_reader(source: str) -> _Reader:
    name, colon, _ = source.partition(":")
    path = Path(source).expanduser()
    if colon and name == PREFIX:
        return _HUB
    if name in DATASETS and (colon or not path.exists()):
        return _PAPER
    if path.is_dir():
        if is_saved_dataset(path):
            return _HUB
        return _TAR_FOLDER if _tars_in(path) else _FOLDER
    suffix = path.suffix.lower()
    if not path.exists() and suffix == ".tar" and "{" in source:
        return _TAR
    check_readable(path, f"no such file or folder; give {_SOURCES}")
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    if is_image_name(path.name):
        raise file_error(path, "is a single picture; give the folder that it is in")
    if suffix in FEATURE_SUFFIXES:
        raise file_error(path, "holds features, not samples; use it as a view (--view)")
    if path.name.lower().endswith((".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")):
        raise file_error(
            path, "is compressed and allows no random access; unpack it to .tar"
        )
    raise file_error(path, f"cannot be read as samples; give {_SOURCES}")


def _tars_in(folder: Path) -> list[Path]:
    """The tar files directly in a folder, which then holds nothing else to read."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.name[0] != ".")
    except OSError as error:
        raise file_error(folder, f"cannot be read: {error.strerror}") from None
    tars = [path for path in paths if path.suffix.lower() == ".tar"]
    if tars and any(is_image_name(path.name) or path.is_dir() for path in paths):
        raise file_error(
            folder,
            "holds tar files beside pictures or folders; name the tar files "
            "(data-{000..004}.tar), or move them elsewhere",
        )
    return tars


def _open_paper(source: str, split: str | None = None) -> ListedSamples:
    name, _, folder = source.partition(":")
    if not folder:
        raise ValueError(f"{source}: say where it lies: {name}:FOLDER")
    return open_dataset(name, Path(folder).expanduser(), split)


def _open_hub(source: str, **options: Any) -> ListedSamples:
    where = source if source.startswith(f"{PREFIX}:") else Path(source).expanduser()
    return open_hub_dataset(str(where), **options)


def _open_tars(
    source: str,
    kind: Kind | None = None,
    column: str | None = None,
    label_column: str | None = None,
) -> ListedSamples:
    path = Path(source).expanduser()
    several = True
    if path.is_dir():
        paths = _tars_in(path)
    elif path.exists():
        paths, several = [path], False
    else:
        paths = [Path(name) for name in expand_braces(str(path))]
    missing = [path for path in paths if not path.is_file()]
    if missing:
        raise file_error(
            path,
            f"{len(missing)} of its {len(paths)} shards are missing, first "
            f"{missing[0].name}",
        )
    return open_shards(
        paths,
        str(path),
        several=several,
        kind=kind,
        extension=column,
        label_field=label_column,
    )


def _at_path(opener: Callable[..., ListedSamples]) -> Callable[..., ListedSamples]:
    return lambda source, **options: opener(Path(source).expanduser(), **options)


_PAPER = _Reader("a data set of the paper", ("split",), _open_paper)
_FOLDER = _Reader("a folder of pictures", ("split",), _at_path(open_folder))
_HUB = _Reader("a Hugging Face data set", ("kind", "split", *_COLUMNS), _open_hub)
_TAR = _Reader("a tar file", ("kind", "column", "label_column"), _open_tars)
_TAR_FOLDER = _TAR._replace(what="a folder of tar files")
_LINES = _Reader("a file of lines", ("kind",), _at_path(open_lines))
_TABLE = _Reader("a table", ("kind", *_COLUMNS), _at_path(open_table))
_BY_SUFFIX = {
    ".txt": _LINES,
    ".lst": _LINES,
    ".tar": _TAR,
    **dict.fromkeys(TABLE_SUFFIXES, _TABLE),
}
