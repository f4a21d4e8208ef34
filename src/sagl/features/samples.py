"""What features are extracted from: images or texts, each with an id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from sagl.schema import is_unicode

__all__ = ["FileFormatError", "Kind", "Samples", "Unreadable"]

Kind = Literal["image", "text"]

# What a file may become in memory, if it is more than this many times its size.
MOST_BYTES = 1 << 30
_MOST_GROWTH = 100
_LONGEST = 500  # letters of each end of an error


class Unreadable(ValueError):  # noqa: N818
    """A sample that cannot be read; the message says why, in a few words."""


class FileFormatError(ValueError):
    """A file that is missing or not what it should be; the message is one line."""


def file_error(path: Path, text: str) -> FileFormatError:
    line = " ".join(text.split())
    # What a file says may be in it, in any length; the cure comes last.
    middle = f"{line[:_LONGEST]} ... {line[-_LONGEST:]}"
    return FileFormatError(f"{path}: {min(line, middle, key=len)}")


def check_readable(path: Path, missing: str = "no such file") -> None:
    """Refuse what is no file with something in it that may be read."""
    fault = None
    try:
        if path.is_dir():
            fault = "is a directory; give the path of a file"
        elif path.exists() and not path.is_file():  # opening a pipe would wait for ever
            fault = "is not a regular file; save the data to a file first"
        else:
            with path.open("rb") as file:
                if not file.read(1):
                    fault = "the file is empty (0 bytes); write or copy it again"
    except FileNotFoundError:
        fault = missing
    except OSError as error:
        fault = f"{(error.strerror or '').lower()}; make the file readable"
    if fault is not None:
        raise file_error(path, fault)


@contextmanager
def reading(path: Path, cure: str = "copy or write it again") -> Iterator[None]:
    """Refuse in one line what is no file, or makes a library raise whatever it may."""
    check_readable(path)
    try:
        yield
    except FileFormatError:
        raise
    except MemoryError:
        raise file_error(path, "needs more memory than there is") from None
    except Exception as error:
        form, reason = path.suffix.lower(), str(error)[:300]
        raise file_error(
            path, f"is cut short, damaged or not a {form} file ({reason}); {cure}"
        ) from None


def most_bytes(path: Path) -> int:
    """The most memory that what is in this file may take."""
    size = path.stat().st_size if path.is_file() else 0
    return max(MOST_BYTES, _MOST_GROWTH * size)


def check_growth(
    path: Path, n_bytes: int, cure: str = "save it without compression"
) -> None:
    """Refuse a file that takes very much more memory than it has bytes.

    Files of a few kilobytes can claim terabytes: decompression bombs.
    """
    if n_bytes > (most := most_bytes(path)):
        raise file_error(
            path,
            f"would take {n_bytes:,} bytes of memory, and {most:,} is the most for a "
            f"file of its size; {cure}",
        )


def string_array(path: Path, strings: Sequence[str]) -> NDArray[np.str_]:
    """Strings of a file as NumPy has them: each takes as much as the longest."""
    longest = max(map(len, strings), default=0)
    cure = f"shorten those of up to {longest:,} characters"
    check_growth(path, 4 * longest * len(strings), cure)
    return np.array(strings, dtype=np.str_)


def choose_key(path: Path, key: str | None, names: list[str], part: str) -> str:
    """The array or column of a file to read: ``key``, or the only one there is."""
    if not names:
        raise file_error(path, f"holds no {part}; save at least one")
    listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    if key is None and len(names) > 1:
        raise file_error(
            path,
            f"holds {len(names)} {part}s ({listed}); choose one by its key, "
            f"{path.name}::KEY on the command line",
        )
    if key is not None and key not in names:
        raise file_error(path, f"has no {part} {key!r}; choose one of: {listed}")
    return names[0] if key is None else key


class Samples(Protocol):
    """A source of samples. It can be pickled: worker processes read from copies.

    Attributes
    ----------
    kind : "image" or "text"
        What a sample is: a Pillow image in mode RGB, or a str.
    ids : sequence of str
        A unique name per sample, the same on every machine: the path below the root,
        the key in a shard, the line number. In the order of the source.
    labels : sequence of str or None
        A class per sample where the source knows one. For evaluation alone.
    """

    @property
    def kind(self) -> Kind: ...
    @property
    def ids(self) -> Sequence[str]: ...
    @property
    def labels(self) -> Sequence[str] | None: ...

    def __getitem__(self, row: int) -> Any:
        """One sample, decoded. Raises Unreadable when it cannot be."""
        ...

    def describe(self) -> dict[str, Any]:
        """Where the samples come from, as JSON: what a store says about its source."""
        ...


@dataclass(eq=False)
class ListedSamples:
    """Samples with ids and labels that are known in advance; see ``Samples``."""

    kind: Kind
    ids: list[str]
    labels: list[str] | None
    read: Callable[[int], Any]  # one sample by its row; picklable
    ignored: int = 0  # files, members or lines that are there but no samples
    opened: dict[str, Any] = field(default_factory=dict)  # how, as JSON

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, row: int) -> Any:
        return self.read(row)

    def describe(self) -> dict[str, Any]:
        return {
            **self.opened,
            "kind": self.kind,
            "samples": len(self),
            "labelled": self.labels is not None,
            "ignored": self.ignored,
        }


def pack(strings: Iterable[str | None]) -> Any:
    """Strings in one block of memory, which processes share and get as one piece.

    As bytes, so that file names that are not UTF-8 and half characters survive.
    """
    import pyarrow as pa

    encoded = [(string or "").encode("utf-8", "surrogatepass") for string in strings]
    return pa.array(encoded, pa.large_binary())


def unpack(strings: Any, row: int) -> str:
    text: bytes = strings[row].as_py()
    return text.decode("utf-8", "surrogatepass")


def read_texts(texts: Iterable[str | None]) -> Callable[[int], str]:
    """What gives texts in memory by their rows; they may be blank or no Unicode."""
    return partial(_read_text, pack(texts))


def _read_text(texts: Any, row: int) -> str:
    return check_sample_text(unpack(texts, row))


def check_sample_text(text: str | None) -> str:
    """The text, if a model can read it."""
    if text is None or not text.strip():
        raise Unreadable("the text is missing or blank")
    if not is_unicode(text):
        raise Unreadable("the text is not proper Unicode")
    return text


def first_repeat(ids: Sequence[str]) -> str | None:
    """Which two samples have the same id, in words, or None when all differ.

    >>> first_repeat(["a", "b", "a"])
    "samples 0 and 2 (counting from 0) have the same id 'a'"
    """
    first: dict[str, int] = {}
    for row, name in enumerate(ids):
        if (one := first.setdefault(name, row)) != row:
            return (
                f"samples {one} and {row} (counting from 0) have the same id {name!r}"
            )
    return None


def choose_columns(
    path: Path,
    names: list[str],
    candidates: Sequence[str],
    strings: Callable[[str], Sequence[str | None]],
    column: str | None,
    id_column: str | None,
    label_column: str | None,
) -> tuple[str, list[str] | None, list[str] | None]:
    """The column of samples; the ids and the labels, if there are any.

    ``strings`` gives the values of a column. Without ``column`` samples are in the only
    one of the ``candidates`` that is neither ids nor labels. Without ``label_column``
    one named ``label`` gives the labels, if it is filled throughout.
    """
    for name in (column, id_column, label_column):
        if name is not None:
            choose_key(path, name, names, "column")
    labelled_by = label_column
    if labelled_by is None and "label" in names and "label" not in (column, id_column):
        labelled_by = "label"
    if column is None:
        others = [name for name in candidates if name not in (id_column, labelled_by)]
        if len(others) != 1:
            listed = ", ".join(names)
            raise file_error(
                path, f"has the columns {listed}; say which holds samples (--column)"
            )
        column = others[0]
    ids = labels = None
    if id_column is not None:
        ids = check_filled(path, id_column, strings(id_column), "id")
    if labelled_by is not None:
        try:
            labels = check_filled(path, labelled_by, strings(labelled_by), "label")
        except FileFormatError:
            if label_column is not None:
                raise
    return column, ids, labels


def check_filled(
    path: Path, column: str, values: Sequence[str | None], meaning: str
) -> list[str]:
    """Ids, labels or paths of which none may be missing."""
    filled = []
    for row, value in enumerate(values):
        if value is None or not value.strip() or not is_unicode(value):
            raise file_error(
                path,
                f"row {row} (counting from 0), column {column!r}: the {meaning} is "
                "missing or not proper Unicode; fill it or drop the row",
            )
        filled.append(value)
    return filled
