"""What a feature store holds on disk: the manifest, and the files about its samples.

    manifest.json     format, views, sets of samples
    ids-KEY.txt       the ids of a set of samples, one per line, sorted
    labels-KEY.txt    their classes, where known: for evaluation alone
    VIEW/00000.npy    features, so many rows per file
    skipped.csv       id and reason of samples that could not be read

Ids have files of their own because the manifest must stay small however many samples
there are, and text because people look at it (`grep`, `wc`, `paste`): a million paths
are some 50 MB and read in a second, where NumPy's strings of fixed width would take
gigabytes. KEY comes from the ids' checksum, so views of the same samples share a file,
and a comparison of two keys says whether two views have the same rows.

Nothing in a store depends on when, where or by how many processes it was made.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict, get_args

import numpy as np

from sagl._version import __version__
from sagl.features.samples import file_error, first_repeat, reading
from sagl.schema import (
    CHANGED,
    Positive,
    Within,
    check,
    check_signed,
    is_unicode,
    read_json,
    signed,
)
from sagl.storage import write_bytes, write_json, write_text

__all__ = ["Manifest", "Plan", "is_store", "read_skipped"]

FORMAT = 1
MANIFEST = "manifest.json"
WORK = ".extracting"  # where unfinished views keep what they need to be finished
SKIPPED = "skipped.csv"
Dtype = Literal["float16", "float32", "float64"]
DTYPES: tuple[Dtype, ...] = get_args(Dtype)
VIEW_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
CURE = "copy it back or extract again"
Skipped = list[tuple[str, str]]  # ids and reasons


@dataclass(frozen=True)
class Plan:
    """All that decides the bytes of a view.

    Samples that are embedded together can change each other's last bits, so batches
    are part of it, and do not reach over the end of a piece.
    """

    backbone: dict[str, Any]  # what the model says of itself
    dtype: Dtype
    dim: Annotated[int, Within(1, 1 << 31)]
    piece_rows: Positive  # samples that are done in one go
    # None when the features came from a file.
    batch_size: Annotated[int | None, Within(1, 1 << 31)]
    n_samples: Positive  # of the source, unreadable ones included
    samples_sha256: str  # checksum of their sorted ids

    @property
    def n_pieces(self) -> int:
        return -(-self.n_samples // self.piece_rows)


@dataclass(frozen=True)
class Shard:
    """One file of a view, its path below the store."""

    file: str
    rows: Positive
    sha256: str


@dataclass(frozen=True)
class StoredView(Plan):
    """One view of a store, as the manifest has it."""

    rows: Positive
    samples: str  # key of its set of samples
    shards: tuple[Shard, ...]

    @property
    def plan(self) -> Plan:
        return Plan(**{part.name: getattr(self, part.name) for part in fields(Plan)})


@dataclass(frozen=True)
class SampleSet:
    """A set of samples: how many, checksums of their files, whence they came."""

    rows: Positive
    ids_sha256: str
    labels_sha256: str | None
    source: dict[str, Any]


class _Content(TypedDict):
    """``manifest.json``."""

    format: Positive
    views: dict[str, StoredView]
    samples: dict[str, SampleSet]
    checksum: NotRequired[str]  # of all of it; not of stores of 0.1


@dataclass(frozen=True)
class Manifest:
    """All of ``manifest.json``, and access to the files about samples."""

    store: Path
    views: dict[str, StoredView] = field(default_factory=dict)
    samples: dict[str, SampleSet] = field(default_factory=dict)

    def write(self) -> None:
        views = {name: asdict(view) for name, view in sorted(self.views.items())}
        samples = {key: asdict(value) for key, value in sorted(self.samples.items())}
        content = {"format": FORMAT, "views": views, "samples": samples}
        write_json(self.store / MANIFEST, signed(content))

    @classmethod
    def read(cls, store: Path) -> Manifest:
        """The manifest of a store, empty when there is none yet."""
        path = store / MANIFEST
        if not path.exists():
            return cls(store)
        with reading(path, CURE):
            content = read_json(path)
            check(Positive, content["format"], "format")
            if (version := content["format"]) > FORMAT:
                raise file_error(
                    path,
                    f"is of format {version}; this sagl {__version__} reads up to "
                    f"format {FORMAT}: upgrade sagl",
                )
            check_signed(content)
            content = check(_Content, content)
            for key in content["samples"]:
                if not re.fullmatch(r"[0-9a-f]+", key):
                    raise ValueError(f"{key[:99]!a} cannot be the key of samples")
            for name, view in content["views"].items():
                _check_view(name, view, content["samples"])
        return cls(store, content["views"], content["samples"])

    @classmethod
    def open(cls, store: Path) -> Manifest:
        """The manifest of a store that has at least one finished view."""
        manifest = cls.read(store)
        if manifest.views:
            return manifest
        if (store / WORK).is_dir():
            raise file_error(
                store,
                "the extraction is not finished; give the same sagl extract again, "
                "or sagl store merge when all processes are done",
            )
        raise file_error(store, f"is not a feature store: no {MANIFEST} names a view")

    def inside(self, name: str) -> Path:
        """The path of a file of the store; refused where a link leads out of it."""
        path = self.store / name
        if not path.resolve().is_relative_to(self.store.resolve()):
            raise file_error(
                path,
                "is a link that leaves the store; put the file itself in its place",
            )
        return path

    def ids(self, key: str) -> list[str]:
        samples = self.samples[key]
        return self._lines(f"ids-{key}.txt", samples.rows, samples.ids_sha256)

    def labels(self, key: str) -> list[str] | None:
        samples = self.samples[key]
        if samples.labels_sha256 is None:
            return None
        return self._lines(f"labels-{key}.txt", samples.rows, samples.labels_sha256)

    def _lines(self, name: str, expected: int, written: str) -> list[str]:
        """What ``as_lines`` made, of this checksum: split at line feeds alone."""
        path = self.inside(name)
        with reading(path, CURE):
            lines = path.read_bytes().decode().split("\n")[:-1]
            if len(lines) != expected:
                raise ValueError(f"it holds {len(lines)} lines, expected {expected}")
            if samples_checksum(lines) != written:
                raise ValueError(CHANGED)
        return lines

    def add_samples(
        self,
        ids: Sequence[str],
        labels: Sequence[str] | None,
        source: Mapping[str, Any],
    ) -> str:
        """Write the files of a set of samples and enter it here; its key."""
        of_ids = samples_checksum(ids)
        key = of_ids[:16]
        before = self.samples.get(key)
        labelled = before.labels_sha256 if before else None
        if labels is not None:
            path, new = self.inside(f"labels-{key}.txt"), samples_checksum(labels)
            if labelled not in (None, new):
                raise ValueError(
                    f"{path}: the same samples have other labels now; extract into "
                    "another store"
                )
            labelled = new
            write_bytes(path, as_lines(labels))
        write_bytes(self.inside(f"ids-{key}.txt"), as_lines(ids))
        source = before.source if before else dict(source)
        self.samples[key] = SampleSet(len(ids), of_ids, labelled, source)
        return key


def _check_view(name: str, view: StoredView, samples: Mapping[str, SampleSet]) -> None:
    """Refuse a view whose parts do not fit each other."""
    check_view_name(name)
    for shard in view.shards:
        if not re.fullmatch(rf"{re.escape(name)}/[0-9]+\.npy", shard.file):
            raise ValueError(f"{name}: {shard.file[:99]!a} cannot be a file of it")
    if view.samples not in samples:
        raise ValueError(f"{name}: its samples are not there")
    held = sum(shard.rows for shard in view.shards)
    if not view.rows == held == samples[view.samples].rows:
        ids = samples[view.samples].rows
        raise ValueError(f"{name}: {view.rows} rows, {held} in its files, {ids} ids")


def is_store(path: Path) -> bool:
    """Whether there is a feature store, if only a begun one."""
    return (path / MANIFEST).is_file() or (path / WORK).is_dir()


def check_view_name(name: str) -> None:
    """A view's name is a directory's: refuse what some system could not have."""
    if not VIEW_NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot be a view's name; use letters, digits, '.', '_' and '-'"
        )


def make_plan(
    sorted_ids: Sequence[str],
    backbone: Mapping[str, Any],
    dtype: Any,
    dim: int,
    piece_rows: int,
    batch_size: int | None = None,
) -> Plan:
    """The plan of a view, its description as it will be read back from JSON."""
    name: Any = str(np.dtype(dtype))
    if name not in DTYPES:
        raise ValueError(f"a view is kept as {', '.join(DTYPES)}; not as {name}")
    described = dict(json.loads(json.dumps(dict(backbone))))
    of_ids = samples_checksum(sorted_ids)
    n = len(sorted_ids)
    return Plan(described, name, dim, piece_rows, batch_size, n, of_ids)


def as_lines(texts: Sequence[str]) -> bytes:
    """One per line; see ``line_fault`` for what should not be a line."""
    return "".join(f"{text}\n" for text in texts).encode("utf-8", "surrogatepass")


def samples_checksum(sorted_ids: Sequence[str]) -> str:
    """Checksum by which sets of samples are told apart: that of their file."""
    return hashlib.sha256(as_lines(sorted_ids)).hexdigest()


def line_fault(text: str) -> str | None:
    """Why a text cannot be a line of a file, or None."""
    if "\n" in text or "\r" in text:
        return "it holds a line break"
    return None if is_unicode(text) else "it is not UTF-8"


def sorted_order(ids: Sequence[str]) -> list[int]:
    """Positions of the ids in sorted order; refuses none at all and repeated ones."""
    if not len(ids):
        raise ValueError("there are no samples")
    if (repeat := first_repeat(ids)) is not None:
        raise ValueError(repeat)
    return sorted(range(len(ids)), key=ids.__getitem__)


def read_skipped(store: Path) -> Skipped:
    """The rows of ``skipped.csv``; none if there is no such file."""
    path = Manifest(store).inside(SKIPPED)
    if not path.exists():
        return []
    cure = "remove it, or copy it back"
    with reading(path, cure), path.open(encoding="utf-8", newline="") as file:
        return [(name, reason) for name, reason in list(csv.reader(file))[1:]]


def write_skipped(store: Path, skipped: Skipped) -> None:
    """Add to ``skipped.csv`` what is not there yet."""
    rows = set(read_skipped(store))
    for pair in skipped:
        # Names that are not UTF-8 are skipped, but must still be named.
        name, reason = (t.encode("utf-8", "backslashreplace").decode() for t in pair)
        rows.add((name, reason))
    if rows:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([("id", "reason"), *sorted(rows)])
        write_text(store / SKIPPED, text.getvalue())
