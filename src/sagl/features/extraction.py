"""From samples to a feature store: decode, prepare, embed, piece by piece.

The samples are sorted by id and cut into pieces of one size; a piece is cut into
batches. Both depend on the ids alone, so a piece has the same bytes whoever makes it:
one process or several, in one go or after ten interruptions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from sagl.environment import default_workers, device_of_process, share_of_process
from sagl.features.backbones import Backbone, load_backbone, parse_backbones
from sagl.features.manifest import (
    Plan,
    check_view_name,
    line_fault,
    make_plan,
    read_skipped,
    sorted_order,
)
from sagl.features.samples import Samples, Unreadable
from sagl.features.saved import SavedFeatures, read_saved
from sagl.features.store import FeatureStore
from sagl.features.store_write import UnfinishedView, begin, finish, piece_rows
from sagl.processes import end_with_parent
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
        Gets the number of samples, and may refuse it.
    **options
        Those of ``extract``.
    """
    from sagl.features.readers import open_samples

    named = parse_backbones(backbones)
    given = {k: v for k, v in (reader or {}).items() if v is not None}
    samples = open_samples(source, **given)
    if accept is not None:
        accept(len(samples.ids))
    place = device_of_process(device)
    models = {
        name: read_saved(backbone)
        if backbone.startswith("npy:")
        else load_backbone(backbone, device=place, trust_remote_code=trust_remote_code)
        for name, backbone in named.items()
    }
    return extract(samples, models, out, **options)


def extract(
    samples: Samples,
    backbones: Mapping[str, Backbone | SavedFeatures],
    out: str | Path,
    *,
    dtype: str | None = None,
    batch_size: int = BATCH_SIZE,
    workers: int | None = None,
    share: tuple[int, int] | None = None,
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
    part = share_of_process("{}/{}".format(*(share or (0, 1))))
    store, ids, labels = Path(out), list(samples.ids), samples.labels
    order = sorted_order(ids)
    _check(samples, backbones, batch_size)
    sorted_ids = [ids[row] for row in order]
    sorted_labels = None if labels is None else [labels[row] for row in order]
    rows, source = piece_rows(len(ids)), samples.describe()
    plans: dict[str, Plan] = {}
    row_of: dict[str, dict[str, int]] = {}  # of saved features, by id
    for name, backbone in backbones.items():
        kept, together = "float16", None
        if isinstance(backbone, SavedFeatures):
            row_of[name] = backbone.rows_by_id(name, ids)
            kept = backbone.dtype
        else:
            together = batch_size
        about, dim = backbone.describe(), backbone.dim
        plans[name] = make_plan(sorted_ids, about, dtype or kept, dim, rows, together)
    views: dict[str, _View] = {}
    for name, plan in plans.items():
        begun = begin(store, name, plan, sorted_ids, sorted_labels, source, part)
        if begun is not None:
            views[name] = _View(begun, sorted_ids)
    models: dict[str, Backbone] = {}
    for name, view in views.items():
        backbone = backbones[name]
        if not isinstance(backbone, SavedFeatures):
            models[name] = backbone
            continue
        missing = Unreadable(f"{name}: not among the saved features")
        for piece in view.pending:
            positions = view.view.samples_of(piece)
            saved = [row_of[name].get(sorted_ids[i], missing) for i in positions]
            view.add(positions, saved, backbone.array.__getitem__)
            view.write(piece)
    batches = _batches({name: views[name] for name in models}, batch_size)
    if workers is None:  # texts are read and cut into tokens in no time
        workers = 0 if samples.kind == "text" else default_workers()
    total = sum(len(batch.positions) for batch in batches)
    with (
        _loading(_Prepared(samples, order, models), batches, workers) as arriving,
        open_bar(total, "extracting", "samples", show=progress and total > 0) as bar,
    ):
        for batch, loaded in zip(batches, arriving, strict=True):
            for name in batch.views:
                prepared = [sample[name] for sample in loaded]
                views[name].add(batch.positions, prepared, models[name].embed)
                if batch.last:
                    views[name].write(batch.piece)
            bar.update(len(loaded))
    if not _finish(store, views):
        return Extraction(str(store), False, len(ids))
    finished = FeatureStore.open(store)
    finished.check_files([name for name in backbones if name not in views])
    stored = finished.manifest.views
    sizes = {
        name: {key: getattr(stored[name], key) for key in ("rows", "dim", "dtype")}
        for name in backbones
    }
    skipped = len({sample for sample, _ in read_skipped(store)})
    return Extraction(str(store), True, len(ids), sizes, skipped)


def _check(samples: Samples, backbones: Mapping[str, Any], batch_size: int) -> None:
    """Refuse what cannot work before anything is written."""
    if not backbones:
        raise ValueError("no backbone given; at least one is needed")
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1; got {batch_size}")
    for name, backbone in backbones.items():
        check_view_name(name)
        kind = getattr(backbone, "kind", samples.kind)
        if kind != samples.kind:
            raise ValueError(
                f"{backbone.name} embeds {kind}s, the samples are {samples.kind}s; "
                "choose a backbone for them"
            )


def _finish(store: Path, names: Iterable[str]) -> bool:
    """Finish what can be; a view that is refused does not keep others from it."""
    refused, complete = None, True
    for name in names:
        try:
            complete &= finish(store, name)
        except ValueError as error:
            refused = refused or error
    if refused is not None:
        raise refused
    return complete


class _View:
    """A view that this process writes its share of, and the piece that is growing.

    Positions are those among the sorted ids.
    """

    def __init__(self, view: UnfinishedView, ids: Sequence[str]) -> None:
        self.view, self.ids, self.pending = view, ids, view.pending
        self._features: list[NDArray[Any]] = []
        self._positions: list[int] = []
        self._skipped: dict[int, str] = {}

    def add(
        self,
        positions: Iterable[int],
        prepared: Iterable[Any],
        embed: Callable[[list[Any]], Any],
    ) -> None:
        """Embed samples of the piece; those that cannot be are Unreadable."""
        inputs = []
        for i, one in zip(positions, prepared, strict=True):
            fault = line_fault(self.ids[i])  # a name that no file can keep
            if fault is not None or isinstance(one, Unreadable):
                self._skipped[i] = fault or str(one)
            else:
                inputs.append(one)
                self._positions.append(i)
        expected = (len(inputs), self.view.plan.dim)
        features = embed(inputs) if inputs else np.empty(expected, np.float32)
        if isinstance(features, Tensor):
            features = features.detach().float().cpu().numpy()
        if features.shape != expected:
            raise ValueError(
                f"view {self.view.name!r}: its backbone gave features of shape "
                f"{features.shape} for {len(inputs)} samples, expected {expected}"
            )
        self._features.append(features)

    def write(self, piece: int) -> None:
        """Write what can be kept of a piece, and begin the next."""
        name, dtype = self.view.name, self.view.plan.dtype
        features = np.concatenate(self._features)
        with np.errstate(over="ignore"):
            kept = features.astype(dtype)
        finite = np.isfinite(kept).all(axis=1)
        for row in np.flatnonzero(~finite).tolist():
            if np.isfinite(features[row]).all():
                largest = np.abs(features[np.isfinite(features)]).max()
                raise ValueError(
                    f"view {name!r} has values up to {largest:.6g}, which {dtype} "
                    "cannot hold; choose dtype float32"
                )
            reason = f"{name}: its features are not finite"
            self._skipped[self._positions[row]] = reason
        skipped = [(self.ids[i], reason) for i, reason in sorted(self._skipped.items())]
        self.view.write(piece, kept[finite], skipped)
        self._features, self._positions, self._skipped = [], [], {}


class _Batch(NamedTuple):
    """Samples of one piece that are embedded together."""

    piece: int
    views: tuple[str, ...]  # that lack the piece
    positions: range
    last: bool  # of its piece


def _batches(views: Mapping[str, _View], batch_size: int) -> list[_Batch]:
    """All batches in order; the cuts depend on the piece alone."""
    lacking: dict[int, list[str]] = {}  # the views that lack each piece
    for name, view in views.items():
        for piece in view.pending:
            lacking.setdefault(piece, []).append(name)
    batches = []
    for piece, names in sorted(lacking.items()):
        positions = views[names[0]].view.samples_of(piece)
        for start in range(0, len(positions), batch_size):
            cut = positions[start : start + batch_size]
            batches.append(_Batch(piece, tuple(names), cut, cut[-1] == positions[-1]))
    return batches


class _Prepared(Dataset[dict[str, Any]]):
    """A sample for each of some models: decoded once, Unreadable if it cannot be.

    Its index is a position and the names of views.
    """

    def __init__(
        self, samples: Samples, order: Sequence[int], models: Mapping[str, Backbone]
    ) -> None:
        self.samples = samples
        self.order = np.array(order, dtype=np.int64)  # rows by position
        self.prepare = {name: model.prepare for name, model in models.items()}

    def __getitem__(self, index: tuple[int, Sequence[str]]) -> dict[str, Any]:
        position, names = index
        try:
            sample = self.samples[int(self.order[position])]
        except Exception as error:  # whatever is wrong with it, the run goes on
            return dict.fromkeys(names, Unreadable(_reason(error)))
        prepared: dict[str, Any] = {}
        for name in names:
            try:
                prepared[name] = self.prepare[name](sample)
            except Exception as error:
                prepared[name] = Unreadable(f"{name}: {_reason(error)}")
        return prepared


def _reason(error: Exception) -> str:
    message = " ".join(str(error).split())
    plain = isinstance(error, ValueError) and message  # Unreadable among them
    return message if plain else f"{type(error).__name__}: {message}".rstrip(": ")


@contextmanager
def _loading(
    samples: _Prepared, batches: Sequence[_Batch], workers: int
) -> Iterator[Iterator[list[dict[str, Any]]]]:
    """The samples of all batches in order, from so many processes, or from this one."""
    loader = DataLoader(
        samples,
        batch_sampler=(
            [(i, batch.views) for i in batch.positions] for batch in batches
        ),
        collate_fn=list,
        num_workers=min(workers, len(batches)),
        worker_init_fn=partial(_start_worker, os.getpid()),
        generator=torch.Generator(),  # leaves the global one alone
    )
    iterator = iter(loader)
    processes = getattr(iterator, "_workers", [])
    try:
        yield iterator
    except Exception:
        # torch tells of a death by a signal, out of any line, or what was sent is gone.
        for process in processes:
            process.join(0.1)
        if all(process.exitcode in (None, 0) for process in processes):
            raise
        raise ValueError(
            "a worker process was killed, perhaps for want of memory; what is done is "
            "kept: give the same command with fewer --workers, or 0"
        ) from None
    finally:
        # End the workers now, so that no signal of theirs comes later.
        with suppress(RuntimeError):  # the signal, if it has not come yet
            getattr(iterator, "_shutdown_workers", int)()


def _start_worker(parent: int, worker: int) -> None:
    """Send tensors by name, and end with the process that asked for them."""
    # By default each tensor sent costs an open file, and there may be a thousand.
    torch.multiprocessing.set_sharing_strategy("file_system")  # type: ignore[no-untyped-call]
    # Unless it was forked, some server of Python's started it, which ends in time.
    forked = torch.multiprocessing.get_start_method() == "fork"
    end_with_parent(parent if forked else None)
