"""The partitions of a search so far, on disk: a killed one goes on where it was."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sagl.schema import check, parse_json
from sagl.storage import write_tensors
from sagl.training.checkpoint import FILE_NAME, check_same_run, kept, not_written
from sagl.training.distributed import ranks, spread

_PARTITIONS = "partitions"


class Journal:
    """Partitions in the order in which a search comes to them.

    Each is computed unless it is known, which makes a search that is started again the
    same as one that was never interrupted. Of several processes the first one writes.

    Parameters
    ----------
    directory : Path, optional
        Where to keep them; without, they are not kept.
    fingerprint : dict
        What the run is: settings and data. What another run has kept is refused.
    every_seconds : float, default=30
        The least time between two writes.
    n_samples : int, optional
        What is kept is refused unless it is of so many.
    """

    def __init__(
        self,
        directory: Path | None = None,
        fingerprint: dict[str, Any] | None = None,
        every_seconds: float = 30,
        n_samples: int | None = None,
    ) -> None:
        self._path = None if directory is None else directory / FILE_NAME
        self._fingerprint = fingerprint or {}
        self._every_seconds = every_seconds
        self._n_samples = n_samples
        self._partitions: list[Tensor] = []
        self._device: torch.device | None = None  # as they come
        self._next = 0
        self._last = time.monotonic()
        found = None if self._path is None else kept(self._path)
        if self._path is not None and found is not None:
            self._take(self._path, *found)
        else:
            self._write()  # says from now on whose directory it is

    def __call__(self, compute: Callable[[], Tensor]) -> Tensor:
        """The next partition, (n,), as it was kept or as it is computed now."""
        if self._next == len(self._partitions):
            self._add(compute())
        self._next += 1
        return self._partitions[self._next - 1]

    def each(self, computes: Sequence[Callable[[], Tensor]]) -> Iterator[Tensor]:
        """The next partitions, in order; processes share those to be computed."""
        known = self._partitions[self._next :][: len(computes)]

        def task(compute: Callable[[], Tensor]) -> tuple[Tensor]:
            return (compute(),)

        for labels in known:
            self._next += 1
            yield labels
        for (labels,) in spread([partial(task, c) for c in computes[len(known) :]]):
            self._add(labels.to(self._device))
            self._next += 1
            yield self._partitions[-1]

    def _add(self, labels: Tensor) -> None:
        self._partitions.append(labels)
        if time.monotonic() - self._last >= self._every_seconds:
            self._write()

    def to(self, device: torch.device) -> Journal:
        """The same, with what was kept on a device."""
        self._device = device
        self._partitions = [labels.to(device) for labels in self._partitions]
        return self

    def _take(
        self, path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]
    ) -> None:
        try:
            saved = parse_json(metadata["fingerprint"])
            check(dict[str, Any], saved)
            partitions = tensors[_PARTITIONS]
        except (KeyError, ValueError):
            raise ValueError(
                f"{path}: not what a search has found; remove it to start anew"
            ) from None
        check_same_run(path, saved, self._fingerprint)
        n = self._n_samples if len(partitions.shape) and len(partitions) else None
        C = self._fingerprint.get("n_clusters", 1 << 31)
        if (
            partitions.dtype != torch.int32
            or partitions.ndim != 2
            or n not in (None, partitions.shape[1])
            or not ((partitions >= 0) & (partitions.long() < C)).all()
        ):
            raise ValueError(
                f"{path}: damaged: it holds no partitions of the samples; remove it to "
                "start anew"
            )
        self._partitions = list(partitions.long())

    def _write(self) -> None:
        self._last = time.monotonic()
        if self._path is None or not ranks().first:
            return
        partitions = torch.zeros(0, 0, dtype=torch.int32)
        if self._partitions:
            partitions = torch.stack(self._partitions).int()
        metadata = {"fingerprint": json.dumps(self._fingerprint)}
        try:
            write_tensors(self._path, {_PARTITIONS: partitions}, metadata)
        except OSError as error:
            raise not_written(self._path, error) from None
