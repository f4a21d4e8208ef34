"""From samples to a feature store: decode, prepare, embed, piece by piece.

The samples are sorted by id and cut into pieces of one size; a piece is cut into
batches. Both depend on the ids alone, so a piece has the same bytes whoever makes it:
one process or several, in one go or after ten interruptions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from sagl.features.backbones.base import Backbone
from sagl.features.backbones.npy import SavedFeatures
from sagl.features.batches import Batch, Prepared, prepare_batches, watching_workers
from sagl.features.samples import Samples
from sagl.features.saved_rows import SavedRows
from sagl.features.shares import Share, default_workers
from sagl.features.store.feature_store import FeatureStore
from sagl.features.store.manifest import (
    DTYPES,
    Plan,
    as_json,
    check_dtype,
    check_view_name,
)
from sagl.features.store.sample_files import (
    Skipped,
    line_fault,
    read_skipped,
    samples_checksum,
    sorted_order,
)
from sagl.features.store.unfinished import UnfinishedView
from sagl.features.store.writing import begin, finish, piece_rows
from sagl.features.transit import unpacked

BATCH_SIZE = 64


@dataclass(frozen=True)
class Extraction:
    """What came of it. ``complete`` is False while other processes are at work."""

    store: str
    complete: bool
    samples: int
    views: dict[str, dict[str, Any]] = field(default_factory=dict)
    skipped: int = 0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def extract(
    samples: Samples,
    backbones: Mapping[str, Backbone | SavedFeatures],
    out: str | Path,
    *,
    dtype: str | None = None,
    batch_size: int = BATCH_SIZE,
    workers: int | None = None,
    share: Share | tuple[int, int] | None = None,
    progress: bool = False,
) -> Extraction:
    """Embed all samples with all backbones and write a view of each to a store.

    Views that the store has already stay as they are; what was interrupted is taken
    up. Samples that cannot be read are left out and listed in ``skipped.csv``.

    Parameters
    ----------
    samples : Samples
    backbones : mapping of the view's name to Backbone, or to saved features
    out : path
        The store; made if need be.
    dtype : {"float16", "float32", "float64"}, optional
        Of the stored features: float16 by default, saved features as they are.
    batch_size : int, default=64
        Samples that are embedded together.
    workers : int, optional
        Processes that decode and prepare; 0 does it in this one. By default the cores
        that are left, at most eight; none for texts.
    share : (int, int), optional
        ``(i, n)`` does every n-th piece beginning with i. The process that finds all
        pieces done finishes the store.
    progress : bool, default=False
        Show a bar on stderr.
    """
    share = share if isinstance(share, Share) else Share(*(share or ()))
    store = Path(out)
    ids = list(samples.ids)
    order = np.array(sorted_order(ids), dtype=np.int64)
    _check(samples, backbones, batch_size, share)
    sorted_ids = [ids[i] for i in order]
    labels = None if samples.labels is None else list(samples.labels)
    sorted_labels = None if labels is None else [labels[i] for i in order]
    models: dict[str, Backbone] = {}
    tables: dict[str, SavedRows] = {}
    for name, given in backbones.items():
        if isinstance(given, SavedFeatures):
            tables[name] = SavedRows.of(name, given, ids)
        else:
            models[name] = given
    plans = _plans(backbones, dtype, batch_size, sorted_ids)
    source = samples.describe()
    work = _Work(order, sorted_ids)
    for name, plan in plans.items():
        view = begin(store, name, plan, sorted_ids, sorted_labels, source)
        if view is not None:
            work.views[name] = view
    for name, table in tables.items():
        if name in work.views:
            _import(work, name, table, share)
    batches = _cut(work, models, batch_size, share)
    if workers is None:  # texts are read and cut into tokens in no time
        workers = 0 if samples.kind == "text" else default_workers()
    if batches:
        arriving = prepare_batches(samples, order, models, batches, workers)
        total = sum(len(batch.positions) for batch in batches)
        with watching_workers(), closing(arriving):
            _embed(work, models, arriving, total if progress else None)
    return _result(store, len(ids), list(backbones), _finish(store, work.views))


def _finish(store: Path, names: Iterable[str]) -> bool:
    """Finish what can be; a view that is refused does not keep others from it."""
    complete, faults = True, []
    for name in names:
        try:
            complete &= finish(store, name)
        except ValueError as error:
            faults.append(error)
    if faults:
        raise faults[0]
    return complete


def _check(
    samples: Samples,
    backbones: Mapping[str, Any],
    batch_size: int,
    share: Share,
) -> None:
    """Refuse what cannot work before anything is written."""
    if not backbones:
        raise ValueError("no backbone given; at least one is needed")
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1; got {batch_size}")
    if not 0 <= share.index < share.count:
        raise ValueError(f"no share {share.index} of {share.count}: it counts from 0")
    for name, backbone in backbones.items():
        check_view_name(name)
        kind = getattr(backbone, "kind", samples.kind)
        if kind != samples.kind:
            raise ValueError(
                f"{backbone.name} embeds {kind}s, the samples are {samples.kind}s; "
                "choose a backbone for them"
            )


def _plans(
    backbones: Mapping[str, Any],
    dtype: str | None,
    batch_size: int,
    sorted_ids: Sequence[str],
) -> dict[str, Plan]:
    plans = {}
    checksum = samples_checksum(sorted_ids)
    for name, backbone in backbones.items():
        saved = getattr(backbone, "array", None)
        kept = "float16"
        if saved is not None:
            kept = saved.dtype.name if saved.dtype.name in DTYPES else "float32"
        plans[name] = Plan(
            backbone=as_json(backbone.describe()),
            dtype=check_dtype(dtype or kept),
            dim=backbone.dim if saved is None else saved.shape[1],
            piece_rows=piece_rows(len(sorted_ids)),
            batch_size=batch_size if saved is None else None,
            n_samples=len(sorted_ids),
            samples_sha256=checksum,
        )
    return plans


@dataclass
class _Piece:
    """A piece as it grows: features, whose they are, and who is missing."""

    features: list[NDArray[Any]] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    skipped: dict[int, str] = field(default_factory=dict)

    def add(self, name: str, model: Backbone, prepared: Prepared) -> None:
        positions = prepared.positions[name]
        self.skipped |= prepared.skipped[name]
        features = np.empty((0, model.dim), np.float32)
        if positions:
            inputs = unpacked(prepared.inputs[name])
            features = model.embed(inputs).detach().float().cpu().numpy()
        if features.shape != (len(positions), model.dim):
            raise ValueError(
                f"{model.name} gave features of shape {features.shape} for "
                f"{len(positions)} samples, expected {(len(positions), model.dim)}"
            )
        self.features.append(features)
        self.positions.extend(positions)


class _Work:
    """The views to be written, and the samples by position among the sorted ids."""

    def __init__(self, order: NDArray[np.int64], ids: Sequence[str]) -> None:
        self.order = order
        self.ids = ids
        self.views: dict[str, UnfinishedView] = {}
        # Names that cannot be kept: their samples are skipped unread.
        faults = ((i, line_fault(sample)) for i, sample in enumerate(ids))
        self.faults = {i: fault for i, fault in faults if fault is not None}

    def pieces(self, names: Iterable[str], share: Share) -> dict[int, list[str]]:
        """Pieces of this process, and for which views each is missing."""
        found: dict[int, list[str]] = {}
        for name in names:
            if name in self.views:
                for piece in self.views[name].pending:
                    if share.has(piece):
                        found.setdefault(piece, []).append(name)
        return dict(sorted(found.items()))

    def write(self, name: str, number: int, piece: _Piece) -> None:
        """A piece of a view, of what can be kept."""
        view = self.views[name]
        faulty = (i for i in view.samples_of(number) if i in self.faults)
        reasons = piece.skipped | {i: self.faults[i] for i in faulty}
        features = np.concatenate(piece.features)
        kept, finite = _as_dtype(name, features, view.plan.dtype)
        for row in np.flatnonzero(~finite).tolist():
            reasons[piece.positions[row]] = f"{name}: its features are not finite"
        skipped: Skipped = [(self.ids[i], reasons[i]) for i in sorted(reasons)]
        view.write(number, kept, skipped)


def _as_dtype(
    name: str, features: NDArray[Any], dtype: str
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The rows that are finite, as ``dtype``, and which ones they are."""
    finite = np.isfinite(features).all(axis=1)
    with np.errstate(over="ignore"):
        converted = features[finite].astype(dtype)
    if not np.isfinite(converted).all():
        largest = float(np.abs(features[finite]).max())
        raise ValueError(
            f"view {name!r} has values up to {largest:.6g}, which {dtype} cannot hold; "
            "choose dtype float32"
        )
    return converted, finite


def _embed(
    work: _Work,
    models: Mapping[str, Backbone],
    arriving: Iterable[Prepared],
    total: int | None,
) -> None:
    pieces = {name: _Piece() for name in models}
    with tqdm(
        total=total,
        desc="extracting",
        unit=" samples",
        file=sys.stderr,
        dynamic_ncols=True,
        leave=False,
        mininterval=0.5,
        disable=total is None,
    ) as bar:
        for prepared in arriving:
            for name in prepared.batch.views:
                pieces[name].add(name, models[name], prepared)
                if prepared.batch.last:
                    work.write(name, prepared.batch.piece, pieces[name])
                    pieces[name] = _Piece()
            bar.update(len(prepared.batch.positions))


def _cut(
    work: _Work, models: Mapping[str, Backbone], batch_size: int, share: Share
) -> list[Batch]:
    """All batches of this process, in order; the cuts depend on the piece alone."""
    batches = []
    for number, names in work.pieces(models, share).items():
        every = work.views[names[0]].samples_of(number)
        for start in range(0, len(every), batch_size):
            together = every[start : start + batch_size]
            readable = tuple(i for i in together if i not in work.faults)
            last = start + batch_size >= len(every)
            batches.append(Batch(number, tuple(names), readable, last))
    return batches


def _import(work: _Work, name: str, saved: SavedRows, share: Share) -> None:
    view = work.views[name]
    for number in work.pieces([name], share):
        positions = [i for i in view.samples_of(number) if i not in work.faults]
        features, found = saved.take([work.ids[i] for i in positions])
        piece = _Piece([features], [positions[i] for i in found])
        absent = set(positions).difference(piece.positions)
        piece.skipped = {i: f"{name}: not among the saved features" for i in absent}
        work.write(name, number, piece)


def _result(
    store: Path, n_samples: int, names: Sequence[str], complete: bool
) -> Extraction:
    if not complete:
        return Extraction(str(store), False, n_samples)
    views = FeatureStore.open(store).manifest.views
    return Extraction(
        str(store),
        True,
        n_samples,
        {
            name: {
                "rows": views[name].rows,
                "dim": views[name].plan.dim,
                "dtype": views[name].plan.dtype,
            }
            for name in names
        },
        len({sample for sample, _ in read_skipped(store)}),
    )
