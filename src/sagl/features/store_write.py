"""Writing a feature store so that it can be killed at any moment and taken up.

A view is done in pieces of some hundred samples. In ``.extracting/VIEW`` the rows of a
piece are appended to a file of many pieces, ``00000.npy``, and then a line to the
journal of that file, ``00000.jsonl`` (``view_file.py``). When all files have all
their pieces, whoever notices writes their headers, moves them to ``VIEW`` and enters
the view into the manifest. Each file is a function of the plan and the samples alone,
so it does not matter who writes it, or how often it is interrupted.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypedDict

from filelock import FileLock
from numpy.typing import NDArray

from sagl.features.manifest import (
    WORK,
    Manifest,
    Plan,
    Skipped,
    StoredView,
    check_view_name,
    is_store,
    line_fault,
    write_skipped,
)
from sagl.features.samples import reading
from sagl.features.view_file import ViewFile, refuse_link
from sagl.schema import check, parse_json, read_json
from sagl.storage import write_text

__all__ = ["UnfinishedView", "begin", "finish", "piece_rows", "unfinished"]

# Samples per piece: few, because a slow model needs a second for each; more when there
# would be too many pieces.
_PIECE_ROWS = 512
_MOST_PIECES = 4096
# Rows per file: up to 32 MB of a usual view, because reading a row from one of many
# small files costs more than the row; but so few that this many processes can divide
# the files among themselves.
_FILE_ROWS = 16_384
_FILES = 64
_LOCK = ".lock"
_PLAN, _SAMPLES = "view.json", "samples.json"


class _Begun(TypedDict):
    """What is known of a view from the start."""

    plan: Plan
    source: dict[str, Any]


class _BegunSamples(TypedDict):
    """Its samples, whose ids may be no Unicode; a label for each, or none."""

    ids: list[Any]
    labels: list[str] | None


def piece_rows(n_samples: int) -> int:
    """How many samples are done in one go: a function of their number alone."""
    return _PIECE_ROWS * -(-n_samples // (_PIECE_ROWS * _MOST_PIECES))


def begin(
    store: Path,
    name: str,
    plan: Plan,
    ids: Sequence[str],
    labels: Sequence[str] | None,
    source: Mapping[str, Any],
    share: tuple[int, int] = (0, 1),
) -> UnfinishedView | None:
    """Begin a view, or take it up; None when the store has it already.

    ``ids`` of all samples are sorted; ``labels`` are in the same order. Of ``share``
    ``(i, n)`` are every n-th file beginning with i.
    """
    check_view_name(name)
    _check_labels(labels)
    _refuse_other_files(store, name)
    store.mkdir(parents=True, exist_ok=True)
    work = store / WORK / name
    with FileLock(store / _LOCK):
        stored = Manifest.read(store).views.get(name)
        if stored is not None:
            if stored.plan != plan:
                raise ValueError(
                    f"{store} has a view {name!r} already, "
                    f"{_difference(stored.plan, plan)}; give the new one another name "
                    "(NAME=BACKBONE)"
                )
            _clean_up(store, name)
            return None
        # Looked at under the lock: whoever has pieces to do keeps others from
        # finishing the view, and so from removing what is there.
        begun = UnfinishedView(store, name) if (work / _PLAN).exists() else None
        if begun is not None and begun.plan != plan and begun.has_pieces:
            raise ValueError(
                f"{work}: view {name!r} was begun {_difference(begun.plan, plan)}; "
                "give the same again, or remove this directory to begin anew"
            )
        if begun is None or begun.plan != plan:
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
        # Of what was begun as well: it may be damaged since.
        samples = {"ids": list(ids), "labels": labels and list(labels)}
        _write_once(work / _SAMPLES, samples)
        _write_once(work / _PLAN, {"plan": asdict(plan), "source": dict(source)})
        view = UnfinishedView(store, name, share)
        if not view.has_pieces:
            shutil.rmtree(store / name, ignore_errors=True)  # of an attempt given up
    for file in view.files[view.share]:
        file.forget_damaged()
    return view


def finish(store: Path, name: str) -> bool:
    """Enter a view into the manifest if all pieces are there; say whether it is in."""
    with FileLock(store / _LOCK):
        manifest = Manifest.read(store)
        if name not in manifest.views:
            view = UnfinishedView(store, name)
            if view.pending:
                return False
            view.enter(manifest)
        _clean_up(store, name)
    return True


def unfinished(store: Path) -> list[UnfinishedView]:
    """The views of a store that are being written."""
    plans = sorted((store / WORK).glob(f"*/{_PLAN}"))
    return [UnfinishedView(store, plan.parent.name) for plan in plans]


class UnfinishedView:
    """A view of a store that is being written, piece by piece."""

    def __init__(self, store: Path, name: str, share: tuple[int, int] = (0, 1)) -> None:
        self.store, self.name = store, name
        self.work = store / WORK / name
        with reading(self.work / _PLAN, f"remove {self.work} to begin anew"):
            about = check(_Begun, read_json(self.work / _PLAN))
            json.dumps(about["source"], allow_nan=False)  # as it is to be written
            self.plan: Plan = about["plan"]
            if self.plan.n_pieces > _MOST_PIECES:
                raise ValueError(f"a view is not made in {self.plan.n_pieces:,} pieces")
        self.source: dict[str, Any] = about["source"]
        self.share = slice(share[0], None, share[1])
        rows = min(_FILE_ROWS, -(-self.plan.n_samples // _FILES))
        self.pieces_per_file = max(1, rows // self.plan.piece_rows)
        n_files = -(-self.plan.n_pieces // self.pieces_per_file)
        self.files = [ViewFile(self, number) for number in range(n_files)]

    @property
    def has_pieces(self) -> bool:
        return any(file.done for file in self.files)

    @property
    def pending(self) -> list[int]:
        """Pieces of its share that are not done."""
        return [piece for file in self.files[self.share] for piece in file.pending]

    def samples_of(self, piece: int) -> range:
        """Positions, among the sorted ids, of the samples of a piece."""
        start = piece * self.plan.piece_rows
        return range(start, min(start + self.plan.piece_rows, self.plan.n_samples))

    def samples(self) -> tuple[list[str], list[str] | None]:
        path = self.work / _SAMPLES
        with reading(path, f"remove {self.work} to begin anew"):
            samples = parse_json(path.read_text(encoding="utf-8"))
            check(_BegunSamples, samples)
            n = {len(each) for each in samples.values() if each is not None}
            texts = all(isinstance(one, str) for one in samples["ids"])
            if n != {self.plan.n_samples} or not texts:
                raise ValueError(f"it is not of {self.plan.n_samples:,} samples")
            _check_labels(samples["labels"])
        return samples["ids"], samples["labels"]

    def write(self, piece: int, features: NDArray[Any], skipped: Skipped) -> None:
        """Features of a piece, (rows, dim), and those samples that are left out.

        The pieces of a file are written in order.
        """
        self.files[piece // self.pieces_per_file].append(piece, features, skipped)

    def copy_files(self, store: Path) -> None:
        """Bring complete files to another store in which this view was begun."""
        for file in self.files:
            if not file.pending:
                for source in (file.there, file.journal):
                    refuse_link(source)
                    shutil.copyfile(source, store / WORK / self.name / source.name)

    def enter(self, manifest: Manifest) -> None:
        """Give the files their names and write the manifest with this view in it."""
        pieces = [piece for file in self.files for piece in file.done]
        skipped: Skipped = [(one, why) for p in pieces for one, why in p["skipped"]]
        rows = sum(piece["rows"] for piece in pieces)
        if not rows:
            _clean_up(self.store, self.name)  # so that the next attempt reads them
            sample, reason = skipped[0]
            raise ValueError(
                f"{self.store}: view {self.name!r}: not one of "
                f"{self.plan.n_samples:,} samples could be used; the first is "
                f"{sample}: {reason}"
            )
        shards = tuple(file.settle() for file in self.files if file.rows)
        absent = {sample for sample, _ in skipped}
        ids, labels = self.samples()
        kept = [i for i, sample in enumerate(ids) if sample not in absent]
        kept_labels = None if labels is None else [labels[i] for i in kept]
        key = manifest.add_samples([ids[i] for i in kept], kept_labels, self.source)
        plan = vars(self.plan)
        manifest.views[self.name] = StoredView(
            **plan, rows=rows, samples=key, shards=shards
        )
        write_skipped(self.store, skipped)
        manifest.write()


def _write_once(path: Path, value: Any) -> None:
    """Nothing, if that is there already."""
    text = json.dumps(value, indent=2, allow_nan=False) + "\n"
    if not path.exists() or path.read_bytes() != text.encode():
        write_text(path, text)


def _check_labels(labels: Sequence[str] | None) -> None:
    for label in set(labels or ()):
        if fault := line_fault(label):
            raise ValueError(f"the label {label!r} cannot be kept: {fault}")


def _refuse_other_files(store: Path, name: str) -> None:
    """A store is made in a new or empty directory, never among somebody's files."""
    if store.exists() and not store.is_dir():
        raise ValueError(f"{store} is a file; a feature store is a directory")
    others = {path.name for path in store.glob("*")} - {_LOCK}
    if others and not is_store(store):  # in this order: others may just begin it
        raise ValueError(
            f"{store} holds files and is no feature store; choose another directory"
        )
    for path in (store / name).glob("*"):
        if not re.fullmatch(r"\d+\.npy", path.name):
            raise ValueError(
                f"{path} is in the way; move it, or name the view otherwise"
            )


def _difference(before: Plan, now: Plan) -> str:
    """In what two plans differ first, in words."""
    a, b = (
        {**asdict(plan), **plan.backbone, "backbone": None} for plan in (before, now)
    )
    key = next(key for key in {**a, **b} if a.get(key) != b.get(key))
    return f"with {key} {a.get(key)!r} (now {b.get(key)!r})"


def _clean_up(store: Path, name: str) -> None:
    """Remove what a finished view needs no more, and what killed processes left."""
    shutil.rmtree(store / WORK / name, ignore_errors=True)
    for leftover in store.glob(".*.tmp"):
        leftover.unlink(missing_ok=True)
    with suppress(OSError):  # others are still being written
        (store / WORK).rmdir()
