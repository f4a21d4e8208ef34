"""What this machine offers: a device, optional packages, a part of shared work."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Mapping
from typing import Any

import torch

# Of torchrun, and of Slurm's srun: this process, how many there are, and which of
# those on this machine it is.
_PROCESSES = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
)


class MissingExtra(ImportError, ValueError):  # noqa: N818
    """A package that is not installed; the message says how to install it."""


def optional_module(name: str, extra: str = "backbones") -> Any:
    """A module of an extra, imported when it is needed."""
    package = name.partition(".")[0].replace("PIL", "pillow")
    try:
        return importlib.import_module(name)
    except ImportError as error:
        cure = f'pip install "sagl[{extra}]"'
        raise MissingExtra(f"this needs {package}: {cure} ({error})") from None
    except RuntimeError as error:
        if "torchvision" not in str(error):
            raise
        raise MissingExtra(f"{package}: {torchvision_cure()}") from None


def torchvision_cure() -> str:
    """What to do where importing torchvision fails, as it does beside another torch."""
    return (
        f"the torchvision that belongs to torch {torch.__version__} is needed, and "
        "what is installed is another one or none; install the build of the same "
        "release and device as torch, or, if nothing else needs torchvision, "
        "remove it: pip uninstall torchvision"
    )


def pick_device(name: str) -> torch.device:
    """The device of that name; "auto" is CUDA when there is one, else the CPU.

    Of several GPUs, each process of torchrun has one of its own.
    """
    name = device_of_process(name)
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"device {name!r} cannot be used here: {reason}") from None
    return device


def device_of_process(device: str, environment: Mapping[str, str] = os.environ) -> str:
    """``device``, with "auto" made the GPU of this process where there are several."""
    if device == "auto" and torch.cuda.device_count() > 1:
        for *_, local in _PROCESSES:
            if local in environment:
                return f"cuda:{int(environment[local]) % torch.cuda.device_count()}"
    return device


def default_workers(environment: Mapping[str, str] = os.environ) -> int:
    """Worker processes per process: the cores that are left, at most eight."""
    beside = int(environment.get("LOCAL_WORLD_SIZE", "1"))
    return max(0, min(8, cores() // beside - 1))


def cores() -> int:
    """Those that this process may use, which a batch system may have restricted."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def share_of_process(
    text: str | None = None, environment: Mapping[str, str] = os.environ
) -> tuple[int, int]:
    """The part of shared work that this process does, and how many parts there are.

    ``text`` is ``i/n``, counted from 0; by default what torchrun or Slurm say, else all
    of the work.

    >>> share_of_process("1/4")
    (1, 4)
    >>> share_of_process(environment={"RANK": "2", "WORLD_SIZE": "8"})
    (2, 8)
    """
    for index, count, _ in _PROCESSES:
        if text is None and index in environment and count in environment:
            text = f"{environment[index]}/{environment[count]}"
    if text is None:
        return 0, 1
    match = re.fullmatch(r"\s*(\d+)/(\d+)\s*", text)
    if not match or int(match[1]) >= int(match[2]):
        raise ValueError(
            f"share {text}: expected i/n with i from 0 to n - 1, such as 0/2 and 1/2"
        )
    return int(match[1]), int(match[2])
