"""What a feature store holds, in ``manifest.json``: views, and the samples they show.

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

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sagl._version import __version__
from sagl.features._errors import file_error
from sagl.features.store.sharded_array import ShardedArray, ShardFile
from sagl.storage import write_json

FORMAT = 1
MANIFEST = "manifest.json"
WORK = ".extracting"  # where unfinished views keep what they need to be finished
DTYPES = ("float16", "float32", "float64")
VIEW_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Plan:
    """All that decides the bytes of a view.

    Attributes
    ----------
    backbone : dict
        What the model says of itself: id, revision, preprocessing and so on.
    dtype : str
    dim : int
    piece_rows : int
        Samples that are done in one go; batches do not reach over the end of a piece.
    batch_size : int or None
        Samples that were embedded together, which can change the last bits; None when
        the features came from a file.
    n_samples : int
        Samples of the source, unreadable ones included.
    samples_sha256 : str
        Checksum of their sorted ids.
    """

    backbone: dict[str, Any]
    dtype: str
    dim: int
    piece_rows: int
    batch_size: int | None
    n_samples: int
    samples_sha256: str

    @property
    def n_pieces(self) -> int:
        return -(-self.n_samples // self.piece_rows)


@dataclass(frozen=True)
class Shard:
    """One file of a view, its path below the store."""

    file: str
    rows: int
    sha256: str


@dataclass(frozen=True)
class StoredView:
    """One view of a store."""

    plan: Plan
    samples: str  # key of its set of samples
    shards: tuple[Shard, ...]

    @property
    def rows(self) -> int:
        return sum(shard.rows for shard in self.shards)

    def array(self, store: Path) -> ShardedArray:
        files = [ShardFile(store / shard.file, shard.rows) for shard in self.shards]
        return ShardedArray(files, self.plan.dim, self.plan.dtype)


@dataclass(frozen=True)
class SampleSet:
    """A set of samples: how many, where their ids and labels are, whence they came."""

    rows: int
    ids_sha256: str
    labels_sha256: str | None
    source: dict[str, Any]


@dataclass(frozen=True)
class Manifest:
    """All of ``manifest.json``."""

    views: dict[str, StoredView] = field(default_factory=dict)
    samples: dict[str, SampleSet] = field(default_factory=dict)

    def write(self, store: Path) -> None:
        write_json(
            store / MANIFEST,
            {
                "format": FORMAT,
                "views": {
                    name: _view_to_json(view)
                    for name, view in sorted(self.views.items())
                },
                "samples": {
                    key: asdict(samples)
                    for key, samples in sorted(self.samples.items())
                },
            },
        )

    @classmethod
    def read_or_new(cls, store: Path) -> Manifest:
        """The manifest of a store, empty when it has none yet."""
        return cls.read(store) if (store / MANIFEST).exists() else cls()

    @classmethod
    def read(cls, store: Path) -> Manifest:
        """The manifest of a store, refused when it is damaged or too new."""
        path = store / MANIFEST
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            version = int(content["format"])
            if version <= FORMAT:
                return cls(
                    {k: _view_from_json(v) for k, v in content["views"].items()},
                    {k: SampleSet(**v) for k, v in content["samples"].items()},
                )
        except (FileNotFoundError, NotADirectoryError):
            raise file_error(
                store, f"is not a feature store: there is no {MANIFEST} in it"
            ) from None
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise file_error(
                path, f"is damaged ({error!r}); copy it back or extract again"
            ) from None
        raise file_error(
            path,
            f"is of format {version}; this sagl {__version__} reads up to format "
            f"{FORMAT}: upgrade sagl",
        )


def is_store(path: Path) -> bool:
    """Whether there is a feature store, if only a begun one."""
    return (path / MANIFEST).is_file() or (path / WORK).is_dir()


def check_view_name(name: str) -> None:
    """A view's name is a directory's: refuse what some system could not have."""
    if not VIEW_NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot be a view's name; use letters, digits, '.', '_' and '-'"
        )


def as_json(value: dict[str, Any]) -> dict[str, Any]:
    """A description as it will be when it is read back: tuples become lists."""
    return dict(json.loads(json.dumps(value)))


def check_dtype(dtype: Any) -> str:
    """The plain name of a type that a store can hold."""
    name = str(np.dtype(dtype))
    if name not in DTYPES:
        raise ValueError(f"a view is kept as {', '.join(DTYPES)}; not as {name}")
    return name


def _view_to_json(view: StoredView) -> dict[str, Any]:
    plan = asdict(view.plan)
    shards = [asdict(shard) for shard in view.shards]
    return {**plan, "rows": view.rows, "samples": view.samples, "shards": shards}


def _view_from_json(value: dict[str, Any]) -> StoredView:
    plan = {k: v for k, v in value.items() if k not in ("rows", "samples", "shards")}
    shards = tuple(Shard(**shard) for shard in value["shards"])
    view = StoredView(Plan(**plan), value["samples"], shards)
    if view.rows != value["rows"]:
        raise ValueError(f"{value['rows']} rows, but {view.rows} in its shards")
    return view
