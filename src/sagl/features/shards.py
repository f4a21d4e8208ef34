"""Tar files of samples (webdataset's layout), read in place.

A sample is all members that share a name up to its first dot: ``0017.jpg`` is the
image, ``0017.txt`` the text, ``0017.cls`` the label, ``0017.json`` may hold one. Of a
single tar the id is that name; of several it begins with the name of the shard.

Neither webdataset nor ``datasets`` serves here: the one streams, so that no sample can
be read by its number, as taking up an extraction needs; the other copies all shards to
a cache first. An index of positions by ``tarfile`` does it without either.
"""

from __future__ import annotations

import os
import re
import tarfile
from array import array
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from sagl.environment import optional_module
from sagl.features.images import IMAGE_SUFFIXES, image_from_bytes, is_image_name
from sagl.features.samples import (
    Kind,
    ListedSamples,
    Unreadable,
    check_sample_text,
    file_error,
    reading,
)
from sagl.schema import parse_json

__all__ = ["expand_braces", "open_shards"]

_IMAGES = frozenset(suffix[1:] for suffix in IMAGE_SUFFIXES)
_BLOCK = 512  # tar's unit
_ABOUT_NEXT = (  # types of headers that tell more about the next member
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)
_LONGEST_HEADER = 1 << 14
_MOST_LETTERS = 1 << 27  # in all the names that a pattern stands for

Member = tuple[int, int]  # start and size of its bytes in its tar
Members = dict[str, Member]  # of one sample, by extension


def expand_braces(pattern: str) -> list[str]:
    """Every name that a pattern such as ``data-{000..004}.tar`` stands for, in order.

    >>> expand_braces("a-{08..10}.tar")
    ['a-08.tar', 'a-09.tar', 'a-10.tar']
    >>> expand_braces("{train,test}-{0..1}.tar")
    ['train-0.tar', 'train-1.tar', 'test-0.tar', 'test-1.tar']
    """
    *parts, end = re.split(r"\{([^{}]*)\}", pattern)
    names = [""]
    for start, braces in zip(parts[::2], parts[1::2], strict=True):
        items: Sequence[Any] = braces.split(",")
        form = ""
        if limits := re.fullmatch(r"(\d{1,18})\.\.(\d{1,18})", braces):
            items = range(int(limits[1]), int(limits[2]) + 1)
            form = f"0{len(limits[1])}d"
        if (n := len(names) * len(items)) * len(pattern) > _MOST_LETTERS:
            raise ValueError(f"{pattern[:99]}: it stands for {n:,} files; name fewer")
        names = [f"{name}{start}{item:{form}}" for name in names for item in items]
    return [name + end for name in names]


def tars_in(folder: Path) -> list[Path]:
    """The tar files directly in a folder, which then holds nothing else to read."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.name[0] != ".")
    except OSError as error:
        raise file_error(folder, f"cannot be read: {error.strerror}") from None
    tars = [path for path in paths if path.suffix.lower() == ".tar"]
    if tars and any(is_image_name(path.name) or path.is_dir() for path in paths):
        raise file_error(
            folder, "holds tar files beside pictures or folders; name the tar files"
        )
    return tars


def open_shards(
    source: str,
    *,
    kind: Kind | None = None,
    column: str | None = None,
    label_column: str | None = None,
) -> ListedSamples:
    """Samples of a tar, of the tars in a folder, or of those that a pattern names.

    They come in the order in which they stand there. ``kind`` is needed where samples
    have both an image and a text; ``column`` says which member to read, where there
    are several (``seg.png``), and ``label_column`` which field of ``.json`` members is
    the label, instead of ``.cls``.
    """
    place = Path(source).expanduser()
    paths, prefixes = [place], [""]
    if not place.is_file():
        pattern = [Path(name) for name in expand_braces(str(place))]
        paths = tars_in(place) if place.is_dir() else pattern
        # Names of shards below the folder that they share.
        shared = Path(os.path.commonpath([path.parent for path in paths] or [place]))
        names = [path.relative_to(shared).with_suffix("") for path in paths]
        prefixes = [f"{name.as_posix()}/" for name in names]
    missing = [path for path in paths if not path.is_file()]
    if missing:
        count = f"{len(missing)} of its {len(paths)} shards are missing"
        raise file_error(place, f"{count}, first {missing[0].name}")
    extension = None if column is None else column.lower()
    if kind is None and extension is not None:
        kind = "image" if extension.rpartition(".")[2] in _IMAGES else "text"
    ids: list[str] = []
    labels: list[str | None] = []
    positions = array("q")
    ignored = 0
    for number, (path, prefix) in enumerate(zip(paths, prefixes, strict=True)):
        samples, n_others = _index_tar(path)
        ignored += n_others
        if samples and kind is None:
            kind = _decide_kind(path, samples)
        with path.open("rb") as file:
            for key, members in samples.items():
                try:
                    member = _choose(members, kind, extension)
                    if member is None:
                        ignored += len(members)
                        continue
                    labels.append(_label(file, members, label_column))
                except ValueError as error:
                    raise file_error(path, f"sample {key!r}: {error}") from None
                ids.append(prefix + key)
                positions.extend((number, *member))
    if kind is None or not ids:
        raise file_error(place, "holds no samples; expected members key.jpg")
    if kind == "image":
        optional_module("PIL.Image")
    known = [label for label in labels if label is not None]
    placed = np.frombuffer(positions, dtype=np.int64).reshape(-1, 3)
    read = partial(_read_member, kind, tuple(paths), placed)
    full = known if len(known) == len(ids) else None
    return ListedSamples(kind, ids, full, read, ignored)


def _read_member(
    kind: Kind, paths: Sequence[Path], positions: NDArray[np.int64], row: int
) -> Any:
    number, start, size = positions[row].tolist()
    try:
        with paths[number].open("rb") as file:
            data = _read(file, (start, size))
    except OSError as error:
        raise Unreadable(f"the shard cannot be read ({error.strerror})") from None
    if len(data) < size:
        raise Unreadable("the shard has become shorter")
    return image_from_bytes(data) if kind == "image" else _text(data)


class _Member(tarfile.TarInfo):
    """A member of a tar; headers before it that are far too long are refused.

    They hold names, and Python before 3.11.10 takes the square of their length to read.
    """

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in _ABOUT_NEXT and not 0 <= self.size <= _LONGEST_HEADER:
            raise ValueError(f"it has a header of {self.size:,} bytes")
        member: tarfile.TarInfo = super()._proc_member(tar)  # type: ignore[misc]
        return member


def _index_tar(path: Path) -> tuple[dict[str, Members], int]:
    """Samples of a tar by key, and how many members are no part of one."""
    samples: dict[str, Members] = {}
    ignored = 0
    # "r:" refuses compressed files: nothing in them can be found by position.
    cure = "copy or write it again, and unpack .tar.gz to .tar"
    before = 0
    with (
        reading(path, cure),
        tarfile.open(path, "r:", tarinfo=_Member) as tar,
        path.open("rb") as file,
    ):
        while (member := tar.next()) is not None:
            tar.members = []  # type: ignore[attr-defined]  # or it keeps them all
            if tar.offset <= before or member.size < 0:
                raise ValueError(f"a member at byte {before:,} ends before it begins")
            before = tar.offset
            folder, slash, name = member.name.rpartition("/")
            key, _, extension = name.partition(".")
            extension = extension.lower()
            if not member.isreg() or not key or not extension:
                ignored += not member.isdir()
                continue
            members = samples.setdefault(folder + slash + key, {})
            if member.issparse() or extension in members:
                raise file_error(
                    path, f"has the member {member.name!r} twice, or sparse; remove it"
                )
            members[extension] = member.offset_data, member.size
        # A tar ends with zeros; anything else is a damaged header, and more behind it.
        file.seek(tar.offset)
        if any(file.read(_BLOCK)):
            raise ValueError(f"no header at byte {tar.offset:,}")
    return samples, ignored


def _decide_kind(path: Path, samples: dict[str, Members]) -> Kind:
    images = any(not _IMAGES.isdisjoint(members) for members in samples.values())
    if images and any("txt" in members for members in samples.values()):
        raise file_error(
            path, "holds both pictures and texts; say which: --kind image or text"
        )
    return "image" if images else "text"


def _choose(
    members: Members, kind: Kind | None, extension: str | None
) -> Member | None:
    if extension is not None:
        return members.get(extension)
    fitting = sorted(_IMAGES.intersection(members)) if kind == "image" else ["txt"]
    if len(fitting) > 1:
        raise ValueError(
            f"pictures {' and '.join(fitting)}; choose one (--column {fitting[0]})"
        )
    return members.get(fitting[0]) if fitting else None


def _label(file: IO[bytes], members: Members, field: str | None) -> str | None:
    if field is None and "cls" in members:
        return _text(_read(file, members["cls"]))
    record: Any = {}
    if "json" in members:
        record = parse_json(_read(file, members["json"]).decode("utf-8-sig"))
    value = record.get(field or "label") if isinstance(record, dict) else None
    if value is None and field is not None:
        raise ValueError(f"no field {field!r} in a .json member; leave it out")
    return None if value is None else str(value)


def _read(file: IO[bytes], member: Member) -> bytes:
    file.seek(member[0])
    return file.read(member[1])


def _text(data: bytes) -> str:
    try:
        return check_sample_text(data.decode("utf-8-sig").strip())
    except UnicodeDecodeError:
        raise Unreadable("not UTF-8 text") from None
