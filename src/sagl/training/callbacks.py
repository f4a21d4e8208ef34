"""Watchers of a training run. Each hook does nothing unless overridden."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from sagl.progress import Bar, progress

if TYPE_CHECKING:
    from sagl.training.trainer import Trainer


class Callback:
    """Base class: override the moments you care about."""

    def on_train_begin(self, trainer: Trainer) -> None:
        """Before the first step, and again when a run is resumed."""

    def on_step(self, trainer: Trainer) -> None:
        """After every optimiser step."""

    def on_record(self, trainer: Trainer) -> None:
        """After a record was added to ``trainer.history``."""

    def on_train_end(self, trainer: Trainer) -> None:
        """After the last step, or after an error: then not ``trainer.finished``."""


class ProgressBar(Callback):
    """A bar on stderr with the loss and the share of samples that still move."""

    def __init__(self) -> None:
        self._bar = Bar()
        self._open = ExitStack()

    def on_train_begin(self, trainer: Trainer) -> None:
        self._open.close()
        self._bar = self._open.enter_context(progress(trainer.plan.steps, "training"))
        self._bar.update(trainer.step)

    def on_step(self, trainer: Trainer) -> None:
        self._bar.update(1)

    def on_record(self, trainer: Trainer) -> None:
        record = trainer.history[-1]
        note = f"loss {record['loss']:.3f}"
        if "changed" in record:
            note += f", moving {record['changed']:.1%}, clusters {record['clusters']}"
        self._bar.note(note)

    def on_train_end(self, trainer: Trainer) -> None:
        self._open.close()


class StopWhenStable(Callback):
    """Stop when hardly any sample has changed its cluster for a while.

    Parameters
    ----------
    tolerance : float
        The largest share of samples that may still move.
    patience : int
        For how many records in a row.
    """

    def __init__(self, tolerance: float, patience: int) -> None:
        self.tolerance = tolerance
        self.patience = patience

    def on_record(self, trainer: Trainer) -> None:
        last = trainer.history[-self.patience :]
        still = all(record.get("changed", 1) <= self.tolerance for record in last)
        if len(last) == self.patience and still:
            trainer.stop = True
