"""Samples that a table or a list of lines names: texts, or paths of images.

Of a table without ``column`` the only column that is neither ids nor labels is read.
Without ``label_column`` one named ``label`` gives the labels, if it is filled
throughout. The id is the one in ``id_column``, or the path of an image, or the number
of a text's row, counted from 0. Of a list of lines it is the path, or the number of
the line, counted from 1.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sagl.features.images import IMAGE_SUFFIXES, ImageFiles, is_image_name
from sagl.features.samples import (
    Kind,
    ListedSamples,
    Strings,
    Unreadable,
    check_text,
    choose_key,
    file_error,
    first_repeat,
    shorten,
)
from sagl.features.tables import Columns, read_columns

_SUFFIX = "|".join(sorted(suffix[1:] for suffix in IMAGE_SUFFIXES))
_PATH_AND_MORE = re.compile(rf"\S\.({_SUFFIX})[\s,;]+\S+$", re.IGNORECASE)


@dataclass(eq=False)
class Texts(ListedSamples):
    """Texts held in memory, of which some may be missing, blank or no Unicode."""

    texts: Sequence[str | None]

    def __post_init__(self) -> None:
        super().__post_init__()
        problems = ((row, _problem(text)) for row, text in enumerate(self.texts))
        self._problems = {row: problem for row, problem in problems if problem}
        self.texts = Strings(
            "" if text is None or row in self._problems else text
            for row, text in enumerate(self.texts)
        )

    def __getitem__(self, row: int) -> Any:
        text = self.texts[row]
        if row % len(self) in self._problems:
            raise Unreadable(self._problems[row % len(self)])
        return text


def _problem(text: str | None) -> str | None:
    if text is None:
        return "the text is missing"
    if not text.strip():
        return "the text is blank"
    return None if _is_unicode(text) else "the text is not proper Unicode"


def _is_unicode(string: str) -> bool:
    """Whether all characters are whole: JSON can say half of one, ``\\ud800``."""
    try:
        string.encode()
    except UnicodeEncodeError:
        return False
    return True


def open_lines(path: Path, kind: Kind | None = None) -> ListedSamples:
    """Texts, or images when every line ends like the path of one.

    Blank lines are ignored. A file named ``.lst`` is a list of paths.
    """
    numbers, lines, n_blank = _read_lines(path)
    if kind is None and path.suffix.lower() == ".lst":
        kind = "image"
    places = (f"line {n}" for n in numbers)
    if _decide_kind(path, kind, zip(places, lines, strict=True)) == "text":
        source = {"reader": "lines", "path": str(path)}
        return Texts("text", list(map(str, numbers)), None, source, n_blank, lines)
    ids = [posixpath.normpath(line) for line in lines]
    repeat = first_repeat(ids)
    if repeat is not None:
        one, other = (numbers[row] for row in repeat)
        raise file_error(
            path,
            f"lines {one} and {other} name the same file {ids[repeat[0]]!r}; remove "
            "one",
        )
    _check_some_exist(path, ids)
    source = {"reader": "file list", "path": str(path)}
    return ImageFiles("image", ids, None, source, n_blank, path.parent)


def _read_lines(path: Path) -> tuple[list[int], list[str], int]:
    """Numbers and content of the lines that are not blank, and how many are."""
    numbers, lines, n_blank = [], [], 0
    check_text(path)
    number = 0
    try:
        with path.open(encoding="utf-8-sig") as text:
            for number, line in enumerate(text, start=1):
                if line.strip():
                    numbers.append(number)
                    lines.append(line.rstrip("\n"))
                else:
                    n_blank += 1
    except UnicodeDecodeError as error:
        raise file_error(
            path, f"is not UTF-8 text after line {number} ({error}); save it as UTF-8"
        ) from None
    if not lines:
        raise file_error(path, "holds no lines; write one text or path per line")
    return numbers, lines, n_blank


def open_table(
    path: Path,
    *,
    kind: Kind | None = None,
    column: str | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
) -> ListedSamples:
    """Samples from a column of a table."""
    columns = read_columns(path, [column, id_column, label_column])
    names = list(columns)
    for name in (column, id_column, label_column):
        if name is not None:
            choose_key(path, name, names, "column")
    labelled_by = label_column
    if labelled_by is None and "label" in names and "label" not in (column, id_column):
        labelled_by = "label"
    labels = _labels(path, columns, labelled_by, asked_for=label_column is not None)
    others = [name for name in names if name not in (id_column, labelled_by)]
    if column is None and len(others) != 1:
        raise file_error(
            path,
            f"has the columns {', '.join(names)}; say which one holds the texts or "
            "paths (--column)",
        )
    column = column or others[0]
    values = columns[column]
    source = {
        "reader": "table",
        "path": str(path),
        "column": column,
        "id_column": id_column,
        "label_column": None if labels is None else labelled_by,
    }
    ids: list[str] | None = None
    if id_column is not None:
        ids = _checked_ids(path, id_column, columns[id_column], "rename one")
    filled = ((f"row {row}", v) for row, v in enumerate(values) if v and v.strip())
    if _decide_kind(path, kind, filled) == "text":
        ids = ids or list(map(str, range(len(values))))
        return Texts("text", ids, labels, source, 0, values)
    paths = [posixpath.normpath(value) if value else "" for value in values]
    if ids is None:
        cure = "drop one, or name a column of ids (--id-column)"
        ids = _checked_ids(path, column, paths, cure)
    _check_some_exist(path, paths)
    return ImageFiles("image", ids, labels, source, 0, path.parent, paths)


def _labels(
    path: Path, columns: Columns, name: str | None, *, asked_for: bool
) -> list[str] | None:
    if name is None:
        return None
    labels: list[str] = []
    for row, label in enumerate(columns[name]):
        if label is None or not label.strip() or not _is_unicode(label):
            if not asked_for:
                return None
            raise file_error(
                path,
                f"row {row} (counting from 0), column {name!r}: the label is missing; "
                "fill it or drop the row",
            )
        labels.append(label)
    return labels


def _checked_ids(
    path: Path, name: str, values: Sequence[str | None], cure: str
) -> list[str]:
    ids: list[str] = []
    where = f"(counting from 0), column {name!r}"
    for row, value in enumerate(values):
        if not value or not value.strip():
            raise file_error(path, f"row {row} {where}: it is empty; fill it")
        if not _is_unicode(value):
            raise file_error(
                path, f"row {row} {where}: {value!r} is not proper Unicode"
            )
        ids.append(value)
    repeat = first_repeat(ids)
    if repeat is not None:
        one, other = repeat
        raise file_error(
            path, f"rows {one} and {other} {where}: both are {ids[one]!r}; {cure}"
        )
    return ids


def _check_some_exist(path: Path, paths: Sequence[str]) -> None:
    """Refuse a list of which no file is there: it was made for another folder."""
    if not any((path.parent / name).exists() for name in paths if name):
        raise file_error(
            path,
            f"none of the {len(paths)} files that it names exists; the first would be "
            f"{path.parent / paths[0]}; paths are relative to the list's own folder",
        )


def _decide_kind(
    path: Path, kind: Kind | None, strings: Iterable[tuple[str, str]]
) -> Kind:
    """``kind``, or what all strings look like; those that differ are refused.

    Strings that end in the suffix of an image are paths, any others texts. Each comes
    with the place where it stands.
    """
    if kind is not None:
        return kind
    image = text = None
    for place, string in strings:
        if is_image_name(string):
            image = image or (place, string)
        elif _PATH_AND_MORE.search(string):
            raise file_error(
                path,
                f"{place} looks like a path with something after it: "
                f"{shorten(string)}; write a .csv with the columns path and label, or "
                "say that these are texts (--kind text)",
            )
        else:
            text = text or (place, string)
        if image and text:
            raise file_error(
                path,
                f"{image[0]} ends like the path of a picture ({shorten(image[1])}) "
                f"and {text[0]} does not ({shorten(text[1])}); say which they are: "
                "--kind image or --kind text",
            )
    return "image" if image else "text"
