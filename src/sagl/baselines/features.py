"""Features as the peers take them: centred and brought to one scale, or as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from sagl.nn.neighbours import unit_rows as unit_rows
from sagl.training.feed import Normalization, standardization
from sagl.training.sampler import epoch_batches
from sagl.views import Views

State = dict[str, Tensor]


def resident(views: Views, device: torch.device) -> list[Tensor]:
    """Every view as a float32 tensor on the device."""
    rows = np.arange(len(views))
    return [torch.from_numpy(h).to(device) for h in views.take(rows)]


def measure_scale(views: Views, kind: Normalization) -> State:
    """What ``standardized`` needs: ``shift.i`` and ``scale.i`` of each view, float64.

    ``"center"`` subtracts the mean sample, then scales so that the mean distance from
    it is 10. ``"standard"`` brings every column to mean 0 and deviation 1. ``"none"``
    leaves features as they are.
    """
    state: State = {}
    for i, (shift, scale) in enumerate(standardization(views, kind)):
        state[f"shift.{i}"] = torch.from_numpy(shift)
        state[f"scale.{i}"] = torch.from_numpy(scale)
    return state


def standardized(features: Sequence[Tensor], state: State) -> list[Tensor]:
    """(h − shift) · scale of each view, in the precision of the features."""
    return [
        (h - state[f"shift.{i}"].to(h)) * state[f"scale.{i}"].to(h)
        for i, h in enumerate(features)
    ]


def random_batches(
    n: int, batch_size: int, seed: int, device: torch.device
) -> Iterator[Tensor]:
    """Rows of shuffled batches without end, epoch after epoch."""
    epoch = 0
    while True:
        for rows in epoch_batches(n, min(batch_size, n), seed, epoch):
            yield torch.from_numpy(rows).to(device)
        epoch += 1
