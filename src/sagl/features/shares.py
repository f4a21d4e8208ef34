"""How several processes divide the work, and under what names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

_SHARE = re.compile(r"(\d+)/(\d+)")
# Of torchrun, and of Slurm's srun: this process, and how many there are.
_VARIABLES = (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"))
_LOCAL_RANKS = ("LOCAL_RANK", "SLURM_LOCALID")


@dataclass(frozen=True)
class Share:
    """The part of one process: every ``count``-th piece, beginning with ``index``."""

    index: int = 0
    count: int = 1

    def has(self, piece: int) -> bool:
        return piece % self.count == self.index


def parse_share(text: str) -> Share:
    """``i/n``, counted from 0.

    >>> parse_share("1/4")
    Share(index=1, count=4)
    """
    found = _SHARE.fullmatch(text.strip())
    share = Share(int(found[1]), int(found[2])) if found else Share(0, 0)
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
    import torch

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
