"""The partitions of a search so far, on disk: a killed one goes on where it was."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sagl.storage import read_tensors, write_tensors
from sagl.training.checkpoint import FILE_NAME, check_same_run, not_written

_PARTITIONS = "partitions"


class Journal:
    """Partitions in the order in which a search comes to them.

    Each is computed unless it is known, which makes a search that is started again the
    same as one that was never interrupted.

    Parameters
    ----------
    directory : Path, optional
        Where to keep them; without, they are not kept.
    fingerprint : dict
        What the run is: settings and data. What another run has kept is refused.
    every_seconds : float, default=30
        The least time between two writes.
    """

    def __init__(
        self,
        directory: Path | None = None,
        fingerprint: dict[str, Any] | None = None,
        every_seconds: float = 30,
    ) -> None:
        self._path = None if directory is None else directory / FILE_NAME
        self._fingerprint = fingerprint or {}
        self._every_seconds = every_seconds
        self._partitions: list[Tensor] = []
        self._next = 0
        self._last = time.monotonic()
        if self._path is not None and self._path.exists():
            self._read(self._path)
        else:
            self._write()  # says from now on whose directory it is

    def __call__(self, compute: Callable[[], Tensor]) -> Tensor:
        """The next partition, (n,), as it was kept or as it is computed now."""
        position, self._next = self._next, self._next + 1
        if position < len(self._partitions):
            return self._partitions[position]
        labels = compute()
        self._partitions.append(labels)
        if time.monotonic() - self._last >= self._every_seconds:
            self._write()
        return labels

    def to(self, device: torch.device) -> Journal:
        """The same, with what was kept on a device."""
        self._partitions = [labels.to(device) for labels in self._partitions]
        return self

    def _read(self, path: Path) -> None:
        tensors, metadata = read_tensors(path)
        try:
            saved = json.loads(metadata["fingerprint"])
            partitions = tensors[_PARTITIONS]
        except (KeyError, ValueError):
            raise ValueError(
                f"{path}: not what a search has found; remove it to start anew"
            ) from None
        check_same_run(path, saved, self._fingerprint)
        self._partitions = list(partitions.long())

    def _write(self) -> None:
        self._last = time.monotonic()
        if self._path is None:
            return
        partitions = torch.zeros(0, 0, dtype=torch.int32)
        if self._partitions:
            partitions = torch.stack(self._partitions).int()
        metadata = {"fingerprint": json.dumps(self._fingerprint)}
        try:
            write_tensors(self._path, {_PARTITIONS: partitions}, metadata)
        except OSError as error:
            raise not_written(self._path, error) from None
