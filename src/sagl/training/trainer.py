"""The training loop: batches in, one Adam step each, a record now and then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sagl.nn.network import Network
from sagl.nn.objective import TERMS, Objective
from sagl.nn.ranks import ALONE, Ranks
from sagl.training.feed import Feed, Rows
from sagl.training.sampler import epoch_batches, step_seed
from sagl.training.step import FlatParameters, loss_and_gradients

if TYPE_CHECKING:
    from sagl.training.callbacks import Callback

Record = dict[str, Any]

# At least this many steps lie between two records: measuring the graph's sparsity
# costs about as much as a step.
_RECORD_STEPS = 25


@dataclass(frozen=True)
class Plan:
    """How long and how fast to train."""

    batch_size: int
    steps: int
    learning_rate: float
    seed: int


class Trainer:
    """Runs a plan. Callbacks watch it, may set ``stop``, and see all its state.

    Parameters
    ----------
    network, objective, feed, plan, device, callbacks
    partitions : sequence of Tensor (n,), optional
        Clusters of the samples, the best partition first. Every other step is aimed at
        the best, the ones between at any: where partitions differ nobody knows the
        truth, and a graph that has learned one of them by heart knows less than before.
    ranks : Ranks, optional
        Processes that train together: all draw the same batches, each computes its own
        rows of them, and all take the same steps.

    Attributes
    ----------
    step, epoch : int
        Optimiser steps and whole passes over the data done so far.
    history : list of dict
        One record per epoch, or per 25 steps where epochs are shorter.
    labels : Tensor of shape (n,)
        The last pseudo-label of each sample, −1 before its first.
    stop : bool
        Set by a callback to end training after the current record.
    finished : bool
        Whether training came to its end: not while it runs, nor after an error.
    """

    def __init__(
        self,
        network: Network,
        objective: Objective,
        feed: Feed | Rows,
        plan: Plan,
        device: torch.device,
        callbacks: Sequence[Callback] = (),
        partitions: Sequence[Tensor] | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        self.network = network
        self.objective = objective
        self.feed = feed
        self.plan = plan
        self.callbacks = callbacks
        self.partitions = partitions
        self.ranks = ranks
        self._flat = FlatParameters(network)
        self.optimizer = torch.optim.Adam(
            [self._flat.values], lr=plan.learning_rate, fused=device.type != "mps"
        )
        self.step = 0
        self.epoch = 0
        self.stop = False
        self.finished = False
        self.history: list[Record] = []
        self.labels = torch.full((len(feed),), -1, device=device)
        self._generator = torch.Generator(device)
        self._clear_sums()

    def run(self) -> None:
        """Train from the current state to the end of the plan."""
        self.network.train()
        for callback in self.callbacks:
            callback.on_train_begin(self)
        try:
            while self.step < self.plan.steps and not self.stop:
                self._run_epoch()
                if self._since_record >= _RECORD_STEPS or self.step == self.plan.steps:
                    self._record()
            self._check_finite()
            self.finished = True
        finally:
            self.network.eval()
            for callback in self.callbacks:
                callback.on_train_end(self)
            self._flat.release()

    def _run_epoch(self) -> None:
        plan = self.plan
        for rows in epoch_batches(
            len(self.feed), plan.batch_size, plan.seed, self.epoch
        ):
            self._train_batch(rows)
            self._last_rows = rows
            for callback in self.callbacks:
                callback.on_step(self)
            if self.step == plan.steps:
                break
        self.epoch += 1

    def _train_batch(self, rows: NDArray[np.int64]) -> None:
        self._generator.manual_seed(step_seed(self.plan.seed, self.step))
        index = torch.from_numpy(rows).to(self.labels.device)
        batch = self.ranks.batch(len(rows))
        own = rows if batch is None else rows[batch.own]
        loss, gradients = loss_and_gradients(
            self.network,
            self.objective,
            self.feed(own),
            self._generator,
            self._target(index),
            batch,
            self.feed.present(own),
        )
        self._flat.set_gradients(gradients)
        self._flat.sum_gradients(self.ranks)
        self.optimizer.step()
        self.step += 1

        # Kept as tensors: reading them here would make a GPU wait at every step.
        labels = self.ranks.gather(loss.labels, len(rows))
        self._changed += (self.labels.index_select(0, index) != labels).sum()
        self.labels.index_copy_(0, index, labels)
        self._sums += torch.stack(loss.terms())
        self._seen += len(rows)
        self._since_record += 1

    def _target(self, index: Tensor) -> Tensor | None:
        """The clusters of these samples that this step is aimed at."""
        if self.partitions is None:
            return None
        which = 0
        if self.step % 2:
            draw = step_seed(self.plan.seed, self.step)
            which = draw % len(self.partitions)
        return self.partitions[which].index_select(0, index)

    def _record(self) -> None:
        total, *terms = (self._sums / self._since_record).tolist()
        record: Record = {"step": self.step, "epoch": self.epoch, "loss": total}
        record |= dict(zip(TERMS, terms, strict=True))
        if self.partitions is None:  # else clusters are given, and not always the same
            record["changed"] = int(self._changed) / self._seen
            record["clusters"] = int((torch.bincount(self.labels + 1)[1:] > 0).sum())
            record["sparsity"] = self._sparsity()
        if not np.isfinite(total):
            self._diverged(f"the loss became {total}")
        self.history.append(record)
        self._clear_sums()
        for callback in self.callbacks:
            callback.on_record(self)

    def _check_finite(self) -> None:
        if not all(bool(p.isfinite().all()) for p in self.network.parameters()):
            self._diverged("the weights became infinite or NaN")

    def _diverged(self, what: str) -> NoReturn:
        raise FloatingPointError(
            f"{what} at step {self.step}; try a smaller learning_rate "
            f"(now {self.plan.learning_rate})"
        )

    @torch.no_grad()
    def _sparsity(self) -> list[float]:
        """Non-zeros over all entries of each view's graph, on the last batch."""
        features = self.feed(self._last_rows)
        return [
            view.sparsity(h, self.ranks)
            for view, h in zip(self.network.view_networks, features, strict=True)
        ]

    def _clear_sums(self) -> None:
        device = self.labels.device
        self._sums = torch.zeros(1 + len(TERMS), device=device)
        self._changed = torch.zeros((), dtype=torch.int64, device=device)
        self._seen = 0
        self._since_record = 0
