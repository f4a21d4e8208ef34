"""Samples to extract features from, out of the files that people have.

``open_samples`` finds the reader of a source in a table at the end of this file; a new
reader is a function that gives ``ListedSamples``, and a row there. The readers of lists
and tables, which name texts or paths of images, are here, too.
"""

from __future__ import annotations

import inspect
import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sagl.features.hub_datasets import PREFIX, is_saved_dataset, open_hub_dataset
from sagl.features.images import is_image_name, open_folder, read_images
from sagl.features.paper_datasets import DATASETS, open_dataset
from sagl.features.samples import (
    Kind,
    ListedSamples,
    Samples,
    check_filled,
    check_readable,
    choose_columns,
    file_error,
    first_repeat,
    read_texts,
)
from sagl.features.shards import open_shards, tars_in
from sagl.features.tables import TABLE_SUFFIXES, read_columns, text_lines
from sagl.schema import check

__all__ = ["DATASETS", "absolute", "open_samples", "reopen"]

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
    takes = inspect.signature(reader.open).parameters
    for name, value in options.items():
        if name not in takes and (name, value) != ("kind", "image"):
            # What would have no effect is a mistake.
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{source}: a {reader.title} takes no {option} ({value})")
    taken = {name: value for name, value in options.items() if name in takes}
    samples = reader.open(str(source), **taken)
    if (repeat := first_repeat(samples.ids)) is not None:
        raise file_error(Path(source), f"{repeat}; drop or rename one")
    # With the last two ``reopen`` opens the same samples again.
    about = {"reader": reader.title, "source": str(source), "options": options}
    samples.opened = about
    return samples


def reopen(record: Mapping[str, Any]) -> Samples:
    """The samples of which ``record`` is the description, as a store keeps it."""
    if "source" not in record:
        raise ValueError("it is not written down how the samples were opened")
    source: Any = record["source"]
    options: Any = record.get("options")
    check(str, source, "source")
    check(dict[str, str], options, "options")
    return open_samples(source, **options)


def absolute(record: Mapping[str, Any]) -> dict[str, Any]:
    """A description of samples that holds from other directories, too."""
    resolved = dict(record)
    source = str(record.get("source", ""))
    name, colon, rest = source.partition(":")
    prefix = f"{name}:" if colon and name in (*DATASETS, PREFIX) else ""
    path = Path(rest if prefix else source).expanduser()
    if source and "\0" not in source and (prefix != f"{PREFIX}:" or path.exists()):
        resolved["source"] = f"{prefix}{path.resolve()}"
    return resolved


class _Reader(NamedTuple):
    """What a source is called, and how it is opened: by itself and some options."""

    title: str
    open: Callable[..., ListedSamples]


def _find_reader(source: str) -> _Reader:
    name, colon, _ = source.partition(":")
    path = Path(source).expanduser()
    if colon and name == PREFIX:
        return _READERS["hub"]
    if name in DATASETS and (colon or not path.exists()):
        return _READERS["paper"]
    if path.is_dir():
        if is_saved_dataset(path):
            return _READERS["hub"]
        return _READERS["tars" if tars_in(path) else "folder"]
    suffix = path.suffix.lower()
    if not path.exists() and suffix == ".tar" and "{" in source:
        return _READERS[".tar"]
    check_readable(path, f"no such file or folder; give {_SOURCES}")
    if suffix in _READERS:
        return _READERS[suffix]
    raise file_error(
        path, f"cannot be read as samples (features are views: --view); give {_SOURCES}"
    )


def open_lines(source: str, kind: Kind | None = None) -> ListedSamples:
    """Texts, or images when every line ends like the path of one.

    The id is the path, or the number of the line, counted from 1. Blank lines are
    ignored. A file named ``.lst`` is a list of paths.
    """
    path = Path(source).expanduser()
    lines = [line.rstrip("\r\n") for line in text_lines(path)]
    filled = {f"{n}": line for n, line in enumerate(lines, start=1) if line.strip()}
    texts, n_blank = list(filled.values()), len(lines) - len(filled)
    if not texts:
        raise file_error(path, "holds no lines; write one text or path per line")
    if kind is None and path.suffix.lower() == ".lst":
        kind = "image"
    if _decide_kind(path, kind, texts) == "text":
        return ListedSamples("text", [*filled], None, read_texts(texts), n_blank)
    paths = _existing(path, texts)
    read = read_images(path.parent, paths)
    return ListedSamples("image", paths, None, read, n_blank)


def open_table(
    source: str,
    *,
    kind: Kind | None = None,
    column: str | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
) -> ListedSamples:
    """Texts, or images by their paths, from a column of a table.

    The id is the one in ``id_column``, or the path of an image, or the number of a
    text's row, counted from 0.
    """
    path = Path(source).expanduser()
    columns = read_columns(path, [column, id_column, label_column])
    names, strings = list(columns), columns.__getitem__
    column, ids, labels = choose_columns(
        path, names, names, strings, column, id_column, label_column
    )
    values = columns[column]
    if _decide_kind(path, kind, (v for v in values if v and v.strip())) == "text":
        ids = ids or list(map(str, range(len(values))))
        return ListedSamples("text", ids, labels, read_texts(values))
    paths = _existing(path, values)
    ids = ids or check_filled(path, column, paths, "path")
    read = read_images(path.parent, paths)
    return ListedSamples("image", ids, labels, read)


def _existing(path: Path, values: Sequence[str | None]) -> list[str]:
    """Paths of which at least one is there: else the list is for another folder."""
    paths = [posixpath.normpath(value) if value else "" for value in values]
    if not any(_is_there(path.parent / name) for name in paths if name):
        raise file_error(
            path,
            f"none of the {len(paths)} files that it names exists; the first would be "
            f"{path.parent / paths[0][:200]}; paths are relative to the list's own "
            "folder",
        )
    return paths


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # too long a name, for one
        return False


def _decide_kind(path: Path, kind: Kind | None, strings: Iterable[str]) -> Kind:
    """``kind``, or what all strings look like: paths of images, or else texts."""
    if kind is not None:
        return kind
    examples: dict[Kind, str] = {}
    for string in strings:
        examples.setdefault("image" if is_image_name(string) else "text", string[:60])
        if len(examples) == 2:
            raise file_error(
                path,
                f"{examples['image']!r} ends like the path of a picture and "
                f"{examples['text']!r} does not; say which they are: --kind image or "
                "--kind text",
            )
    return next(iter(examples), "text")


_LINES = _Reader("file of lines", open_lines)
_TABLE = _Reader("table", open_table)
_READERS = {
    "paper": _Reader("data set of the paper", open_dataset),
    "folder": _Reader("folder of pictures", open_folder),
    "hub": _Reader("Hugging Face data set", open_hub_dataset),
    "tars": _Reader("folder of tar files", open_shards),
    ".tar": _Reader("tar file", open_shards),
    ".txt": _LINES,
    ".lst": _LINES,
    **dict.fromkeys(TABLE_SUFFIXES, _TABLE),
}
