"""How the work is divided: among processes that extract, and workers that decode."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, get_worker_info

from sagl.features.backbones import Backbone
from sagl.features.samples import Samples

__all__ = ["Share", "WorkerDied", "default_workers", "parse_share", "share_of_process"]

# Of torchrun, and of Slurm's srun: this process, and how many there are.
_VARIABLES = (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"))
_LOCAL_RANKS = ("LOCAL_RANK", "SLURM_LOCALID")


@dataclass(frozen=True)
class Share:
    """What one process does: every ``count``-th file, beginning with ``index``."""

    index: int = 0
    count: int = 1


def parse_share(text: str) -> Share:
    """``i/n``, counted from 0.

    >>> parse_share("1/4")
    Share(index=1, count=4)
    """
    match = re.fullmatch(r"\s*(\d+)/(\d+)\s*", text)
    share = Share(int(match[1]), int(match[2])) if match else Share(0, 0)
    if not share.index < share.count:
        raise ValueError(
            f"--shard {text}: expected i/n with i from 0 to n - 1, such as 0/2 and 1/2"
        )
    return share


def share_of_process(environment: Mapping[str, str] = os.environ) -> Share:
    """The share that torchrun or Slurm gives this process, else all of the work.

    >>> share_of_process({"RANK": "2", "WORLD_SIZE": "8"})
    Share(index=2, count=8)
    >>> share_of_process({})
    Share(index=0, count=1)
    """
    for index, count in _VARIABLES:
        if index in environment and count in environment:
            return parse_share(f"{environment[index]}/{environment[count]}")
    return Share()


def device_of_process(device: str, environment: Mapping[str, str] = os.environ) -> str:
    """``device``, with "auto" made the GPU of this process where there are several."""
    if device != "auto" or torch.cuda.device_count() < 2:
        return device
    for name in _LOCAL_RANKS:
        if name in environment:
            return f"cuda:{int(environment[name]) % torch.cuda.device_count()}"
    return device


def default_workers(environment: Mapping[str, str] = os.environ) -> int:
    """Worker processes per process: the cores that are left, at most eight."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    beside = int(environment.get("LOCAL_WORLD_SIZE", "1"))
    return max(0, min(8, cores // beside - 1))


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
    inputs: dict[str, Any]  # per view, a list unless they travel stacked
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
        worker_init_fn=_start_worker,
        generator=torch.Generator(),  # leaves the global one alone
    )
    iterator = iter(loader)
    try:
        yield from iterator
    except (ConnectionError, EOFError, FileNotFoundError):
        raise WorkerDied from None  # and took with it what it had sent
    finally:
        # End the workers now, so that no signal of theirs comes later.
        if hasattr(iterator, "_shutdown_workers"):
            with suppress(RuntimeError):  # the signal, if it has not come yet
                iterator._shutdown_workers()


@contextmanager
def watching_workers() -> Iterator[None]:
    """Notices the death of a worker, which torch tells by a signal: out of any line."""
    try:
        yield
    except RuntimeError as error:
        if "DataLoader worker" not in str(error):
            raise
        raise WorkerDied from None


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
        return out._replace(inputs={k: _stack(v) for k, v in out.inputs.items()})

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


def _stack(inputs: list[Any]) -> Any:
    """One tensor, or one per key, where samples are alike: quicker to send."""
    first = inputs[0] if inputs else None
    columns: dict[Any, list[Any]] = {None: inputs}
    if type(first) is dict:
        if any(type(one) is not dict or one.keys() != first.keys() for one in inputs):
            return inputs
        columns = {key: [one[key] for one in inputs] for key in first}
    for column in columns.values():
        forms = {(one.shape, one.dtype) for one in column if isinstance(one, Tensor)}
        if len(forms) != 1 or not all(isinstance(one, Tensor) for one in column):
            return inputs
    stacked = {key: torch.stack(column) for key, column in columns.items()}
    return stacked if type(first) is dict else stacked[None]


def unstack(inputs: Any) -> list[Any]:
    """The samples as they were prepared."""
    if not isinstance(inputs, dict):
        return list(inputs)
    names, columns = inputs.keys(), inputs.values()
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _as_is(prepared: Any) -> Any:
    return prepared


def _start_worker(worker: int) -> None:
    """Send tensors by name, and end when the process that asked for them is killed."""
    # By default each tensor sent costs an open file, and there may be a thousand.
    torch.multiprocessing.set_sharing_strategy("file_system")  # type: ignore[no-untyped-call]
    parent = os.getppid()

    def watch() -> None:
        # A worker that is sending would wait for ever for somebody to read.
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    Thread(target=watch, daemon=True).start()
