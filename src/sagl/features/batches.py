"""Batches of samples, decoded and prepared for the models by worker processes."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset, get_worker_info

from sagl.features.backbones.base import Backbone
from sagl.features.samples import Samples
from sagl.features.transit import packed


class WorkerDied(ValueError):  # noqa: N818
    """A worker process was killed."""

    def __init__(self) -> None:
        super().__init__(
            "a worker process was killed, perhaps for want of memory; what is done is "
            "kept: give the same command with fewer --workers, or 0"
        )


class Batch(NamedTuple):
    """Samples of one piece that are embedded together."""

    piece: int
    views: tuple[str, ...]
    positions: tuple[int, ...]  # among the sorted ids
    last: bool  # of its piece


class Prepared(NamedTuple):
    """A batch as it comes from a worker."""

    batch: Batch
    inputs: dict[str, Any]
    positions: dict[str, list[int]]  # of the inputs, per view
    skipped: dict[str, dict[int, str]]  # why others are missing, per view


def prepare_batches(
    samples: Samples,
    order: NDArray[np.int64],
    models: Mapping[str, Backbone],
    batches: Sequence[Batch],
    workers: int,
) -> Generator[Prepared]:
    """All batches in order, prepared by so many processes, or by this one.

    ``order`` gives the rows of the samples by position among the sorted ids. Raises
    WorkerDied when a process ends that should not.
    """
    loader = DataLoader(
        _PreparedBatches(samples, order, models, batches),
        batch_size=None,  # an item is a batch already
        num_workers=min(workers, len(batches)),
        collate_fn=_as_is,
        generator=torch.Generator(),  # leaves the global one alone
    )
    iterator = iter(loader)
    try:
        yield from iterator
    except (ConnectionError, EOFError, FileNotFoundError):
        raise WorkerDied from None  # and took with it what it had sent
    finally:
        _shut_down(iterator)


@contextmanager
def watching_workers() -> Iterator[None]:
    """Notices the death of a worker, which torch tells by a signal: out of any line."""
    try:
        yield
    except RuntimeError as error:
        if "DataLoader worker" not in str(error):
            raise
        raise WorkerDied from None


def _shut_down(iterator: Any) -> None:
    """End the workers now, so that no signal of theirs comes later."""
    if hasattr(iterator, "_shutdown_workers"):
        with suppress(RuntimeError):  # the signal, if it has not come yet
            iterator._shutdown_workers()


class _PreparedBatches(Dataset[Prepared]):
    """Decodes each sample once and prepares it for every model."""

    def __init__(
        self,
        samples: Samples,
        order: NDArray[np.int64],
        models: Mapping[str, Backbone],
        batches: Sequence[Batch],
    ) -> None:
        self.samples = samples
        self.order = order
        self.prepare = {name: model.prepare for name, model in models.items()}
        self.batches = batches

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, number: int) -> Prepared:
        batch = self.batches[number]
        out = Prepared(
            batch,
            {name: [] for name in batch.views},
            {name: [] for name in batch.views},
            {name: {} for name in batch.views},
        )
        for position in batch.positions:
            self._add(position, out)
        if get_worker_info() is None:
            return out
        return out._replace(inputs={k: packed(v) for k, v in out.inputs.items()})

    def _add(self, position: int, out: Prepared) -> None:
        try:
            sample = self.samples[int(self.order[position])]
        except Exception as error:  # whatever is wrong with a file, the run goes on
            for name in out.batch.views:
                out.skipped[name][position] = _reason(error)
            return
        for name in out.batch.views:
            try:
                prepared = self.prepare[name](sample)
            except Exception as error:
                out.skipped[name][position] = f"{name}: {_reason(error)}"
                continue
            out.inputs[name].append(prepared)
            out.positions[name].append(position)


def _reason(error: Exception) -> str:
    said = " ".join(str(error).split())
    if isinstance(error, ValueError) and said:  # Unreadable among them
        return said
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _as_is(prepared: Any) -> Any:
    return prepared
