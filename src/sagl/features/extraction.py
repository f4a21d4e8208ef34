"""From samples to a feature store: decode, prepare, embed, piece by piece.

The samples are sorted by id and cut into pieces of one size; a piece is cut into
batches. Both depend on the ids alone, so a piece has the same bytes whoever makes it:
one process or several, in one go or after ten interruptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sagl.features.backbones import Backbone, load_backbone, parse_backbones
from sagl.features.manifest import (
    DTYPES,
    Manifest,
    check_view_name,
    line_fault,
    make_plan,
    read_skipped,
    sorted_order,
)
from sagl.features.samples import Samples
from sagl.features.saved import SavedFeatures, read_saved
from sagl.features.store_write import UnfinishedView, begin, finish, piece_rows
from sagl.features.workers import (
    Batch,
    Prepared,
    Share,
    default_workers,
    device_of_process,
    prepare_batches,
    unstack,
    watching_workers,
)
from sagl.progress import progress as open_bar

__all__ = ["BATCH_SIZE", "Extraction", "extract", "extract_source"]

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


def extract_source(
    source: str,
    backbones: Sequence[str],
    out: Path,
    *,
    reader: Mapping[str, Any] | None = None,
    device: str = "auto",
    trust_remote_code: bool = False,
    accept: Callable[[int], object] | None = None,
    **options: Any,
) -> Extraction:
    """Read samples, load models by name, extract.

    Parameters
    ----------
    source : str
        What ``sagl.features.readers.open_samples`` takes.
    backbones : sequence of str
        ``BACKBONE`` or ``NAME=BACKBONE``, where NAME is what the view is called.
    reader : mapping, optional
        Options for the reader, such as ``column``.
    accept : callable, optional
        Is told the number of samples, and may refuse it before the work begins.
    **options
        Those of ``extract``.
    """
    from sagl.features.readers import open_samples

    named = parse_backbones(backbones)
    given = {k: v for k, v in (reader or {}).items() if v is not None}
    samples = open_samples(source, **given)
    if accept is not None:
        accept(len(samples.ids))
    models: dict[str, Backbone | SavedFeatures] = {}
    for name, backbone in named.items():
        if backbone.startswith("npy:"):
            models[name] = read_saved(backbone)
        else:
            models[name] = load_backbone(
                backbone,
                device=device_of_process(device),
                trust_remote_code=trust_remote_code,
            )
    return extract(samples, models, out, **options)


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
        ``(i, n)`` does every n-th file beginning with i. The process that finds all
        files done finishes the store.
    progress : bool, default=False
        Show a bar on stderr.
    """
    share = share if isinstance(share, Share) else Share(*(share or ()))
    store, ids = Path(out), list(samples.ids)
    order = np.array(sorted_order(ids), dtype=np.int64)
    _check(samples, backbones, batch_size, share)
    sorted_ids = [ids[i] for i in order]
    labels = None if samples.labels is None else list(samples.labels)
    sorted_labels = None if labels is None else [labels[i] for i in order]
    saved_rows = {
        name: backbone.rows_by_id(name, ids)
        for name, backbone in backbones.items()
        if isinstance(backbone, SavedFeatures)
    }
    plans = {}
    for name, backbone in backbones.items():
        rows = piece_rows(len(ids))
        about = (sorted_ids, backbone.describe())
        if isinstance(backbone, SavedFeatures):
            own = backbone.array.dtype.name
            kept = dtype or (own if own in DTYPES else "float32")
            plans[name] = make_plan(*about, kept, backbone.array.shape[1], rows)
        else:
            kept = dtype or "float16"
            plans[name] = make_plan(*about, kept, backbone.dim, rows, batch_size)
    work = _Work(sorted_ids, share)
    for name, plan in plans.items():
        view = begin(store, name, plan, sorted_ids, sorted_labels, samples.describe())
        if view is not None:
            work.views[name] = view
    models: dict[str, Backbone] = {}
    for name, backbone in backbones.items():
        if not isinstance(backbone, SavedFeatures):
            models[name] = backbone
        elif name in work.views:
            work.copy(name, backbone.array, saved_rows[name])
    batches = work.batches(models, batch_size)
    if workers is None:  # texts are read and cut into tokens in no time
        workers = 0 if samples.kind == "text" else default_workers()
    if batches:
        arriving = prepare_batches(samples, order, models, batches, workers)
        total = sum(len(batch.positions) for batch in batches)
        with watching_workers(), closing(arriving):
            work.embed(models, arriving, total if progress else None)
    if not _finish(store, work.views):
        return Extraction(str(store), False, len(ids))
    stored = Manifest.read(store).views
    return Extraction(
        str(store),
        True,
        len(ids),
        {
            name: {
                "rows": stored[name].rows,
                "dim": stored[name].plan.dim,
                "dtype": stored[name].plan.dtype,
            }
            for name in backbones
        },
        len({sample for sample, _ in read_skipped(store)}),
    )


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
    samples: Samples, backbones: Mapping[str, Any], batch_size: int, share: Share
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
            inputs = unstack(prepared.inputs[name])
            features = model.embed(inputs).detach().float().cpu().numpy()
        if features.shape != (len(positions), model.dim):
            raise ValueError(
                f"{model.name} gave features of shape {features.shape} for "
                f"{len(positions)} samples, expected {(len(positions), model.dim)}"
            )
        self.features.append(features)
        self.positions.extend(positions)


class _Work:
    """The views that this process writes its share of.

    Positions are those among the sorted ids.
    """

    def __init__(self, ids: Sequence[str], share: Share) -> None:
        self.ids = ids
        self.share = share
        self.views: dict[str, UnfinishedView] = {}
        # Names that cannot be kept: their samples are skipped unread.
        faults = ((i, line_fault(sample)) for i, sample in enumerate(ids))
        self.faults = {i: fault for i, fault in faults if fault is not None}

    def batches(self, models: Mapping[str, Backbone], batch_size: int) -> list[Batch]:
        """All batches in order; the cuts depend on the piece alone."""
        lacking: dict[int, list[str]] = {}  # the views that lack each piece
        for name in models:
            if name in self.views:
                for piece in self._pending(name):
                    lacking.setdefault(piece, []).append(name)
        batches = []
        for piece, names in sorted(lacking.items()):
            positions = self.views[names[0]].samples_of(piece)
            for start in range(0, len(positions), batch_size):
                together = positions[start : start + batch_size]
                readable = tuple(i for i in together if i not in self.faults)
                last = start + batch_size >= len(positions)
                batches.append(Batch(piece, tuple(names), readable, last))
        return batches

    def embed(
        self,
        models: Mapping[str, Backbone],
        arriving: Iterable[Prepared],
        total: int | None,
    ) -> None:
        """Embed batches as they come; write each piece when its last batch is there."""
        pieces = {name: _Piece() for name in models}
        with open_bar(total, "extracting", "samples", show=total is not None) as bar:
            for prepared in arriving:
                for name in prepared.batch.views:
                    pieces[name].add(name, models[name], prepared)
                    if prepared.batch.last:
                        self._write(name, prepared.batch.piece, pieces[name])
                        pieces[name] = _Piece()
                bar.update(len(prepared.batch.positions))

    def copy(self, name: str, array: NDArray[Any], row_of: Mapping[str, int]) -> None:
        """Write a view of saved features, whose rows are known by id."""
        for number in self._pending(name):
            piece, rows = _Piece(), []
            for i in self.views[name].samples_of(number):
                if i in self.faults:
                    continue
                if self.ids[i] in row_of:
                    piece.positions.append(i)
                    rows.append(row_of[self.ids[i]])
                else:
                    piece.skipped[i] = f"{name}: not among the saved features"
            piece.features.append(np.asarray(array[np.array(rows, dtype=np.int64)]))
            self._write(name, number, piece)

    def _pending(self, name: str) -> list[int]:
        return self.views[name].pending(self.share.index, self.share.count)

    def _write(self, name: str, number: int, piece: _Piece) -> None:
        """A piece of a view, of what can be kept."""
        view = self.views[name]
        reasons = dict(piece.skipped)
        for i in view.samples_of(number):
            if i in self.faults:
                reasons[i] = self.faults[i]
        features, finite = _as_dtype(
            name, np.concatenate(piece.features), view.plan.dtype
        )
        for row in np.flatnonzero(~finite).tolist():
            reasons[piece.positions[row]] = f"{name}: its features are not finite"
        skipped = [(self.ids[i], reasons[i]) for i in sorted(reasons)]
        view.write(number, features, skipped)


def _as_dtype(
    name: str, features: NDArray[Any], dtype: str
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The rows that are finite, as ``dtype``, and which ones they are."""
    with np.errstate(over="ignore"):
        converted = features.astype(dtype)
    finite = np.isfinite(converted).all(axis=1)
    if finite.all():
        return converted, finite
    too_large = np.isfinite(features).all(axis=1) & ~finite
    if too_large.any():
        largest = float(np.abs(features[too_large]).max())
        raise ValueError(
            f"view {name!r} has values up to {largest:.6g}, which {dtype} cannot hold; "
            "choose dtype float32"
        )
    return converted[finite], finite
