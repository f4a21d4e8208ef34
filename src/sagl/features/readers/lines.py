"""Files with one text, or one path of a picture, per line."""

from __future__ import annotations

from pathlib import Path

from sagl.features._errors import file_error
from sagl.features.readers.base import ImageFiles, Texts, make_texts
from sagl.features.readers.file_list import open_file_list
from sagl.features.readers.kinds import decide_kind
from sagl.features.samples import Kind


def open_lines(path: Path, kind: Kind | None = None) -> Texts | ImageFiles:
    """Texts, or pictures when every line ends like the path of one.

    A text's id is the number of its line, counted from 1. Blank lines are ignored.
    A file named ``.lst`` is a list of paths.
    """
    numbers, lines, n_blank = _read_lines(path)
    if kind is None and path.suffix.lower() == ".lst":
        kind = "image"
    places = (f"line {n}" for n in numbers)
    if decide_kind(path, kind, zip(places, lines, strict=True)) == "image":
        return open_file_list(path, numbers, lines, n_blank)
    source = {"reader": "lines", "path": str(path)}
    return make_texts([str(n) for n in numbers], lines, None, source, n_blank)


def _read_lines(path: Path) -> tuple[list[int], list[str], int]:
    """Numbers and content of the lines that are not blank, and how many are."""
    numbers, lines, n_blank = [], [], 0
    with path.open("rb") as file:
        if b"\0" in file.read(2**16):
            raise file_error(
                path, "is not a text file (it has a zero byte); save it as UTF-8 text"
            )
    number = 0
    try:
        with path.open(encoding="utf-8-sig") as file_of_text:
            for number, line in enumerate(file_of_text, start=1):
                line = line.rstrip("\n")
                if line.strip():
                    numbers.append(number)
                    lines.append(line)
                else:
                    n_blank += 1
    except UnicodeDecodeError as error:
        raise file_error(
            path, f"is not UTF-8 text after line {number} ({error}); save it as UTF-8"
        ) from None
    if not lines:
        raise file_error(path, "holds no lines; write one text or path per line")
    return numbers, lines, n_blank
