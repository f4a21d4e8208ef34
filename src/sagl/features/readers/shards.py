"""Tar files of samples (webdataset's layout), read in place.

A sample is all members that share a name up to its first dot: ``0017.jpg`` is the
picture, ``0017.txt`` the text, ``0017.cls`` the label, ``0017.json`` may hold one. Of a
single tar the id is that name; of several it begins with the name of the shard.
"""

from __future__ import annotations

import json
import os
import tarfile
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sagl.features._errors import FileFormatError, file_error
from sagl.features.decode import IMAGE_SUFFIXES, image_from_bytes, require_pillow
from sagl.features.readers.base import ListedSamples, first_repeat, pack
from sagl.features.readers.open_files import OpenFiles
from sagl.features.readers.packed import PackedStrings
from sagl.features.samples import Kind, Unreadable

_PICTURES = frozenset(suffix[1:] for suffix in IMAGE_SUFFIXES)
_TEXT = "txt"
_LABEL = "label"
_BLOCK = 512  # tar's unit


class Piece(NamedTuple):
    """Where a member's bytes are."""

    file: int
    start: int
    size: int


Members = dict[str, Piece]  # of one sample, by extension


@dataclass(eq=False)
class Shards(ListedSamples):
    """Samples inside of tar files, by the position of their bytes."""

    files: OpenFiles
    pieces: NDArray[np.int64]  # (n, 3): file, start, size

    def __getitem__(self, row: int) -> Any:
        piece = Piece(*self.pieces[row].tolist())
        try:
            data = self.files.read(*piece)
        except OSError as error:
            raise Unreadable(f"the shard cannot be read ({error.strerror})") from None
        if len(data) < piece.size:
            raise Unreadable("the shard has become shorter")
        return image_from_bytes(data) if self.kind == "image" else _text(data)


@dataclass(frozen=True)
class _Choice:
    """Which member of a sample is read."""

    kind: Kind
    extension: str | None

    def piece(self, members: Members) -> Piece | None:
        if self.extension is not None:
            return members.get(self.extension)
        if self.kind == "text":
            return members.get(_TEXT)
        pictures = sorted(_PICTURES.intersection(members))
        if len(pictures) > 1:
            raise ValueError(
                f"pictures {' and '.join(pictures)}; choose one (--column "
                f"{pictures[0]})"
            )
        return members[pictures[0]] if pictures else None


def open_shards(
    paths: Sequence[Path],
    source: str,
    *,
    several: bool,
    kind: Kind | None = None,
    extension: str | None = None,
    label_field: str | None = None,
) -> Shards:
    """Samples of tar files in the order in which they stand there.

    Parameters
    ----------
    paths : sequence of paths
    source : str
        What the user wrote.
    several : bool
        Begin ids with the name of the shard.
    kind : "image" or "text", optional
        Needed where samples have both a picture and a text. The first shard decides.
    extension : str, optional
        Which member to read, where there are several: ``png``, ``seg.png``.
    label_field : str, optional
        The field of ``.json`` members that is the label, instead of ``.cls``.
    """
    prefixes = _prefixes(paths) if several else [""]
    files = OpenFiles(paths)
    choice: _Choice | None = None
    ids: list[str] = []
    labels: list[str | None] = []
    pieces = array("q")
    ignored = 0
    for number, path in enumerate(paths):
        samples, n_others = index_tar(path, number)
        ignored += n_others
        if not samples:
            continue
        choice = choice or _choose(path, samples, kind, extension)
        for key, members in samples.items():
            try:
                piece = choice.piece(members)
                if piece is None:
                    ignored += len(members)
                    continue
                labels.append(_label(files, members, label_field))
            except ValueError as error:
                raise file_error(path, f"sample {key!r}: {error}") from None
            ids.append(prefixes[number] + key)
            pieces.extend(piece)
    if choice is None or not ids:
        raise file_error(Path(source), "holds no samples; expected members key.jpg")
    if choice.kind == "image":
        require_pillow()
    known = [label for label in labels if label is not None]
    return Shards(
        choice.kind,
        PackedStrings(ids),
        pack(known if len(known) == len(ids) else None),
        {"reader": "shards", "path": source, "shards": len(paths)},
        ignored,
        files,
        np.frombuffer(pieces, dtype=np.int64).reshape(-1, 3),
    )


def index_tar(path: Path, number: int = 0) -> tuple[dict[str, Members], int]:
    """Samples of a tar by key, and how many members are no part of one."""
    samples: dict[str, Members] = {}
    ignored = 0
    try:
        # "r:" refuses compressed files: nothing in them can be found by position.
        with tarfile.open(path, "r:") as tar:
            while (member := tar.next()) is not None:
                tar.members = []  # type: ignore[attr-defined]  # or it keeps them all
                folder, slash, name = member.name.rpartition("/")
                key, _, extension = name.partition(".")
                if not member.isreg() or not key or not extension:
                    ignored += not member.isdir()
                    continue
                _check_member(path, member, samples, folder + slash + key, extension)
                samples.setdefault(folder + slash + key, {})[extension.lower()] = Piece(
                    number, member.offset_data, member.size
                )
            _check_end(path, tar.offset)
    except FileFormatError:
        raise
    except (tarfile.TarError, EOFError) as error:
        raise file_error(
            path,
            f"is cut short or not a plain tar ({error}); copy it again, and unpack "
            ".tar.gz to .tar: compressed files allow no random access",
        ) from None
    except OSError as error:
        raise file_error(path, f"cannot be read: {error.strerror or error}") from None
    return samples, ignored


def _check_member(
    path: Path,
    member: tarfile.TarInfo,
    samples: dict[str, Members],
    key: str,
    extension: str,
) -> None:
    if member.issparse():
        raise file_error(path, f"member {member.name!r} is sparse; pack it again")
    if extension.lower() in samples.get(key, {}):
        raise file_error(path, f"has the member {member.name!r} twice; remove one")


def _check_end(path: Path, end: int) -> None:
    """A tar ends with zeros; anything else is a damaged header, and more behind it."""
    with path.open("rb") as file:
        file.seek(end)
        if any(file.read(_BLOCK)):
            raise file_error(
                path, f"is cut short or damaged at byte {end:,}; copy or pack it again"
            )


def _choose(
    path: Path, samples: dict[str, Members], kind: Kind | None, extension: str | None
) -> _Choice:
    if extension is not None:
        is_picture = extension.lower().rpartition(".")[2] in _PICTURES
        own_kind: Kind = "image" if is_picture else "text"
        return _Choice(kind or own_kind, extension.lower())
    pictures = any(not _PICTURES.isdisjoint(members) for members in samples.values())
    texts = any(_TEXT in members for members in samples.values())
    if kind is None and pictures and texts:
        raise file_error(
            path,
            "holds both pictures and texts; say which to read: --kind image or "
            "--kind text",
        )
    return _Choice(kind or ("image" if pictures else "text"), None)


def _label(files: OpenFiles, members: Members, field: str | None) -> str | None:
    if field is None and "cls" in members:
        return _text(files.read(*members["cls"]))
    record: Any = {}
    if "json" in members:
        record = json.loads(files.read(*members["json"]))
    value = record.get(field or _LABEL) if isinstance(record, dict) else None
    if value is None and field is not None:
        raise ValueError(f"no field {field!r} in a .json member; leave it out")
    return None if value is None else str(value)


def _text(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise Unreadable("not UTF-8 text") from None
    if not text:
        raise Unreadable("the text is blank")
    return text


def _prefixes(paths: Sequence[Path]) -> list[str]:
    """Names of shards below the folder that they share, without ``.tar``."""
    shared = Path(os.path.commonpath([path.parent for path in paths]))
    names = [path.relative_to(shared).with_suffix("").as_posix() for path in paths]
    repeat = first_repeat(names)
    if repeat is not None:
        raise file_error(paths[repeat[0]], "is named twice; name each shard once")
    return [f"{name}/" for name in names]
