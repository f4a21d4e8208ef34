"""Checkpoints: all that a killed run needs to end as if it had not been killed.

One safetensors file, written under another name and renamed, so that it is either
the old checkpoint or the new one. It holds the parameters, Adam's moments and the
last pseudo-labels as tensors, and the rest as JSON in its metadata. The order of the
batches and the dropout are functions of the seed and the step, so no generator needs
to be saved.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, TypedDict

import torch

from sagl.schema import Count, check, parse_json
from sagl.storage import read_tensors, write_tensors
from sagl.training.callbacks import Callback
from sagl.training.distributed import ranks, tensors_from_first
from sagl.training.trainer import Trainer

FILE_NAME = "checkpoint.safetensors"


class State(TypedDict):
    """What is no tensor."""

    step: Count
    epoch: Count
    stop: bool
    history: list[dict[str, Any]]


class Checkpointer(Callback):
    """Writes a checkpoint at records, at most one every so many seconds.

    It must come after the other callbacks, so that what they decide is in it. Of
    several processes that train together, the first one writes.

    Parameters
    ----------
    directory : Path
    fingerprint : dict
        What the run is: settings and data. A checkpoint of another run is refused.
    every_seconds : float, default=30
    """

    def __init__(
        self, directory: Path, fingerprint: dict[str, Any], every_seconds: float = 30
    ) -> None:
        self.path = directory / FILE_NAME
        self.fingerprint = fingerprint
        self.every_seconds = every_seconds
        self._last = time.monotonic()

    def restore(self, trainer: Trainer) -> None:
        """Take up the run where its checkpoint left it, if there is one."""
        found = kept(self.path)
        if found is None:
            return
        tensors, metadata = found
        try:
            saved, state = (parse_json(metadata[k]) for k in ("fingerprint", "state"))
            check(dict[str, Any], saved)
            check(State, state)
        except (KeyError, ValueError):
            raise ValueError(
                f"{self.path}: not a training checkpoint; remove it to start anew"
            ) from None
        check_same_run(self.path, saved, self.fingerprint)
        try:
            _restore(trainer, tensors, state)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:200]
            raise ValueError(
                f"{self.path}: damaged ({reason}); remove it to start anew"
            ) from None

    def on_record(self, trainer: Trainer) -> None:
        if time.monotonic() - self._last >= self.every_seconds:
            self.write(trainer)

    def on_train_end(self, trainer: Trainer) -> None:
        if trainer.finished:  # else it may be in the middle of an epoch, or diverged
            self.write(trainer)

    def write(self, trainer: Trainer) -> None:
        if not ranks().first:
            return
        tensors = {f"network.{k}": v for k, v in trainer.network.state_dict().items()}
        tensors["labels"] = trainer.labels
        for i, moments in trainer.optimizer.state_dict()["state"].items():
            for name, value in moments.items():
                tensors[f"adam.{i}.{name}"] = value
        state = {
            "step": trainer.step,
            "epoch": trainer.epoch,
            "stop": trainer.stop,
            "history": trainer.history,
        }
        metadata = {
            "fingerprint": json.dumps(self.fingerprint),
            "state": json.dumps(state),
        }
        try:
            write_tensors(self.path, tensors, metadata)
        except OSError as error:
            raise not_written(self.path, error) from None
        self._last = time.monotonic()


def kept(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]] | None:
    """Tensors and metadata of a file, as the first process finds it; None without."""
    return tensors_from_first(lambda: read_tensors(path) if path.exists() else None)


def not_written(path: Path, error: OSError) -> OSError:
    """The error for a checkpoint that there is no room for."""
    return OSError(
        error.errno,
        f"{path} could not be written: {error.strerror}; make room and run the same "
        "again: it resumes from the checkpoint before this one",
    )


def check_same_run(path: Path, saved: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse a checkpoint of another run."""
    now = json.loads(json.dumps(now))  # as it would look when read back
    for name in sorted(saved.keys() | now.keys()):
        if saved.get(name) != now.get(name):
            raise ValueError(
                f"{path} belongs to another run: {name} was {saved.get(name)!r} and is "
                f"now {now.get(name)!r}; use the same settings and data to resume, or "
                "another directory to start anew"
            )


def _check_alike(
    tensors: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]
) -> None:
    """Refuse tensors of other types or shapes than those that they take the place of.

    What is broadcast or cast goes on without a word, and ends in other numbers.
    """
    for name, own in expected.items():
        given = tensors[name]
        if given.shape != own.shape or given.dtype != own.dtype:
            raise ValueError(f"{name} is {given.dtype} of shape {tuple(given.shape)}")
        if not given.isfinite().all():
            raise ValueError(f"{name} holds values that are no finite numbers")


def _restore(
    trainer: Trainer, tensors: dict[str, torch.Tensor], state: dict[str, Any]
) -> None:
    device = trainer.labels.device
    adam: dict[int, dict[str, torch.Tensor]] = {}
    network: dict[str, torch.Tensor] = {}
    for name, value in tensors.items():
        kind, _, rest = name.partition(".")
        if kind == "network":
            network[rest] = value
        elif kind == "adam":
            index, _, moment = rest.partition(".")
            adam.setdefault(int(index), {})[moment] = value
    _check_alike(network, trainer.network.state_dict())
    for i, moments in adam.items():
        if moments["step"].ndim:
            raise ValueError("Adam has no count of its steps")
        own = dict(enumerate(trainer.optimizer.param_groups[0]["params"]))[i]
        _check_alike(moments, dict.fromkeys(("exp_avg", "exp_avg_sq"), own))
    _check_alike(tensors, {"labels": trainer.labels})
    n_clusters = len(trainer.network.view_networks[0].bias)
    labels = tensors["labels"]
    if not ((labels >= -1) & (labels < n_clusters)).all() or not adam:
        raise ValueError("its labels or its moments are those of no training")
    trainer.network.load_state_dict(network)
    groups = trainer.optimizer.state_dict()["param_groups"]
    trainer.optimizer.load_state_dict({"state": adam, "param_groups": groups})
    trainer.labels.copy_(labels.to(device))
    trainer.step = state["step"]
    trainer.epoch = state["epoch"]
    trainer.stop = state["stop"]
    trainer.history[:] = state["history"]
