"""Lists of paths of pictures."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sagl.features._errors import file_error
from sagl.features.decode import require_pillow
from sagl.features.readers.base import ImageFiles, first_repeat, pack
from sagl.features.readers.packed import PackedStrings


def open_file_list(
    path: Path, numbers: Sequence[int], lines: Sequence[str], n_blank: int
) -> ImageFiles:
    """Pictures at the paths in ``lines``, relative to the folder of the list.

    The path is the id, without detours such as ``./``. Of what a list names some may
    be missing; those pictures cannot be read, the others can.
    """
    require_pillow()
    ids = [posixpath.normpath(line) for line in lines]
    repeat = first_repeat(ids)
    if repeat is not None:
        one, other = (numbers[row] for row in repeat)
        raise file_error(
            path,
            f"lines {one} and {other} name the same file {ids[repeat[0]]!r}; remove "
            "one",
        )
    check_some_exist(path, ids)
    source = {"reader": "file list", "path": str(path)}
    return ImageFiles("image", PackedStrings(ids), None, source, n_blank, path.parent)


def open_named_files(
    path: Path,
    ids: Sequence[str],
    paths: Sequence[str],
    labels: Sequence[str] | None,
    source: dict[str, Any],
) -> ImageFiles:
    """Pictures at ``paths``, relative to the folder of the file that names them."""
    require_pillow()
    check_some_exist(path, paths)
    packed = PackedStrings(ids)
    return ImageFiles(
        "image",
        packed,
        pack(labels),
        source,
        0,
        path.parent,
        None if packed == paths else PackedStrings(paths),
    )


def check_some_exist(path: Path, paths: Sequence[str]) -> None:
    """Refuse a list of which no file is there: it was made for another folder."""
    if not any((path.parent / name).exists() for name in paths if name):
        raise file_error(
            path,
            f"none of the {len(paths)} files that it names exists; the first would be "
            f"{path.parent / paths[0]}; paths are relative to the list's own folder",
        )
