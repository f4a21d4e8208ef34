"""What features are extracted from: images or texts, each with an id."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

__all__ = ["FileFormatError", "Kind", "Samples", "Unreadable"]

Kind = Literal["image", "text"]


class Unreadable(ValueError):  # noqa: N818
    """A sample that cannot be read; the message says why, in a few words."""


class FileFormatError(ValueError):
    """A file that is missing or not what it should be; the message is one line."""


def file_error(path: Path, text: str) -> FileFormatError:
    """The error to raise; line breaks in ``text`` become spaces."""
    return FileFormatError(f"{path}: {' '.join(text.split())}")


def shorten(text: str) -> str:
    """A text as an error quotes it: start and end, where it is long."""
    return repr(text if len(text) <= 40 else text[:18] + "..." + text[-19:])


def check_readable(path: Path, missing: str = "no such file") -> None:
    """Refuse what is no file with something in it that may be read."""
    try:
        if path.is_dir():
            raise file_error(path, "is a directory; give the path of a file")
        if path.exists() and not path.is_file():  # opening a pipe would wait for ever
            raise file_error(
                path, "is not a regular file; save the data to a file first"
            )
        with path.open("rb") as file:
            if not file.read(1):
                raise file_error(
                    path, "the file is empty (0 bytes); write or copy it again"
                )
    except FileNotFoundError:
        raise file_error(path, missing) from None
    except OSError as error:
        reason = (error.strerror or "").lower()
        raise file_error(path, f"{reason}; make the file readable") from None


@contextmanager
def reading(path: Path, cure: str = "copy or write it again") -> Iterator[None]:
    """Refuse in one line what is no file, or makes a library raise whatever it may."""
    check_readable(path)
    try:
        yield
    except (FileFormatError, MemoryError):
        raise
    except Exception as error:
        # NumPy's two ways to say so.
        if "pickle" in str(error) or "Python objects" in str(error):
            raise file_error(
                path,
                "holds Python objects, which are stored as pickle and never loaded "
                "here; save again with a plain type, e.g. array.astype('float32') or "
                "labels.astype(str)",
            ) from None
        form = path.suffix.lower()
        raise file_error(
            path, f"is cut short, damaged or not a {form} file ({error}); {cure}"
        ) from None


def choose_key(path: Path, key: str | None, names: list[str], part: str) -> str:
    """The array or column of a file to read: ``key``, or the only one there is."""
    listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    if not names:
        raise file_error(path, f"holds no {part}; save at least one")
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


class Strings(Sequence[str]):
    """Strings in a pyarrow array: small to hold, and copied to workers as one block.

    They are kept as bytes, so that file names that are not UTF-8 survive as Python's
    surrogate escapes, and so do half characters.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, strings: Iterable[str]) -> None:
        import pyarrow as pa

        encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
        self._array = pa.array(encoded, pa.large_binary())

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [self[i] for i in range(*row.indices(len(self)))]
        return self._array[operator.index(row)].as_py().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), 65_536):
            for string in self._array[start : start + 65_536].to_pylist():
                yield string.decode("utf-8", "surrogatepass")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(map(operator.eq, self, other))


@dataclass(eq=False)
class ListedSamples(ABC):
    """Samples with ids and labels that are known in advance; see ``Samples``."""

    kind: Kind
    ids: Sequence[str]
    labels: Sequence[str] | None
    source: dict[str, Any]  # reader and origin, as JSON
    ignored: int  # files, members or lines that are there but no samples

    def __post_init__(self) -> None:
        self.ids = Strings(self.ids)
        self.labels = None if self.labels is None else Strings(self.labels)

    def __len__(self) -> int:
        return len(self.ids)

    @abstractmethod
    def __getitem__(self, row: int) -> Any:
        """One sample, decoded. Raises Unreadable when it cannot be."""

    def describe(self) -> dict[str, Any]:
        return {
            **self.source,
            "kind": self.kind,
            "samples": len(self),
            "labelled": self.labels is not None,
            "ignored": self.ignored,
        }


@dataclass(eq=False)
class Texts(ListedSamples):
    """Texts held in memory, of which some may be missing, blank or no Unicode."""

    texts: Sequence[str | None]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.texts = Strings(text or "" for text in self.texts)

    def __getitem__(self, row: int) -> Any:
        return check_sample_text(self.texts[row])


def check_sample_text(text: str | None) -> str:
    """The text, if a model can read it."""
    if text is None or not text.strip():
        raise Unreadable("the text is missing or blank")
    if not is_unicode(text):
        raise Unreadable("the text is not proper Unicode")
    return text


def first_repeat(ids: Sequence[str]) -> tuple[int, int] | None:
    """Rows of the first two equal ids, or None when all differ.

    >>> first_repeat(["a", "b", "a"])
    (0, 2)
    """
    first: dict[str, int] = {}
    for row, name in enumerate(ids):
        if first.setdefault(name, row) != row:
            return first[name], row
    return None


def is_unicode(text: str) -> bool:
    """Whether all characters are whole: JSON can say half of one, ``\\ud800``."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def choose_columns(
    path: Path,
    names: list[str],
    candidates: Sequence[str],
    strings: Callable[[str], Sequence[str | None]],
    column: str | None,
    id_column: str | None,
    label_column: str | None,
) -> tuple[str, str | None, list[str] | None, list[str] | None]:
    """The columns of samples and of labels; the ids and the labels, if there are any.

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
            raise file_error(
                path,
                f"has the columns {', '.join(names)}; say which one holds the samples "
                "(--column)",
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
            labelled_by = None
    return column, labelled_by, ids, labels


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
