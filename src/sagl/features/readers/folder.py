"""Pictures below a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from sagl.features._errors import file_error
from sagl.features.decode import is_image_name, require_pillow
from sagl.features.readers.base import ImageFiles, first_repeat, pack
from sagl.features.readers.packed import PackedStrings

# First-level folders of these names divide the data; they are no classes.
_PARTS = {"train", "training", "val", "valid", "validation", "dev", "test", "testing"}


class Found(NamedTuple):
    """Pictures below a folder, by path, and how many files are none."""

    paths: list[str]
    ignored: int


def open_folder(folder: Path, split: str | None = None) -> ImageFiles:
    """Every file below ``folder`` whose name ends like a picture's, sorted by path.

    When all of them lie in two or more sub-folders, the first-level folder is the
    label. ``split`` names a sub-folder to read instead.
    """
    require_pillow()
    root = folder if split is None else _part(folder, split)
    paths, ignored = find_images(root)
    if not paths:
        raise file_error(
            root,
            f"holds no picture ({ignored} other files); expected files such as .jpg "
            "or .png in it or in its sub-folders",
        )
    labels = folder_labels(paths)
    if labels is not None and {label.lower() for label in labels} <= _PARTS:
        raise file_error(
            root,
            f"is divided into {', '.join(sorted(set(labels)))}; choose one of them "
            "(--split), or give its path",
        )
    source = {"reader": "folder", "path": str(folder), "split": split}
    return image_files(root, paths, labels, source, ignored)


def image_files(
    root: Path,
    paths: list[str],
    labels: list[str] | None,
    source: dict[str, Any],
    ignored: int,
) -> ImageFiles:
    """Pictures by their path below ``root``, which is also their id."""
    ids = [_printable(path) for path in paths]
    repeat = first_repeat(ids)
    if repeat is not None:
        raise file_error(root, f"two files share the id {ids[repeat[0]]!r}; rename one")
    return ImageFiles(
        "image",
        PackedStrings(ids),
        pack(labels),
        source,
        ignored,
        root,
        None if ids == paths else PackedStrings(paths),
    )


def find_images(root: Path) -> Found:
    """Pictures below ``root``; hidden files and folders are left out.

    Links are followed, except to a folder that one is already in.
    """
    paths: list[str] = []
    ignored = 0
    # Folders to look at: path below the root, and the real folders it goes through.
    waiting: list[tuple[str, tuple[tuple[int, int], ...]]] = [("", ())]
    while waiting:
        below, above = waiting.pop()
        here = _identity(root / below)
        if here in above:
            continue  # a link back up
        for entry in _entries(root / below):
            path = below + entry.name
            if entry.name.startswith("."):
                ignored += not _is_folder(entry)
            elif _is_folder(entry):
                waiting.append((path + "/", (*above, here)))
            elif is_image_name(entry.name) and (entry.is_symlink() or entry.is_file()):
                paths.append(path)
            else:
                ignored += 1
    # By code point: the same on every machine and in every language.
    return Found(sorted(paths), ignored)


def folder_labels(paths: list[str]) -> list[str] | None:
    """First-level folders, if they tell the pictures apart."""
    if not all("/" in path for path in paths):
        return None
    labels = [_printable(path.partition("/")[0]) for path in paths]
    return labels if len(set(labels)) > 1 else None


def _part(folder: Path, split: str) -> Path:
    if not (folder / split).is_dir():
        raise file_error(
            folder, f"has no sub-folder {split!r} to take as the split; leave it out"
        )
    return folder / split


def _identity(folder: Path) -> tuple[int, int]:
    try:
        status = folder.stat()
    except OSError as error:
        raise file_error(folder, f"cannot be read: {error.strerror}") from None
    return status.st_dev, status.st_ino


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except PermissionError:
        raise file_error(
            folder, "permission denied; make the folder readable or move it away"
        ) from None
    except OSError as error:
        raise file_error(folder, f"cannot be read: {error.strerror}") from None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _printable(path: str) -> str:
    """Bytes of a file name that are not UTF-8, written as \\xNN."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path).decode("utf-8", "backslashreplace")
    return path
