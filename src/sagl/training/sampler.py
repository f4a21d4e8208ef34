"""Which samples meet in a batch: a pure function of the seed and the epoch."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


def batches_per_epoch(n: int, batch_size: int) -> int:
    return math.ceil(n / batch_size)


def epoch_batches(
    n: int, batch_size: int, seed: int, epoch: int
) -> Iterator[NDArray[np.int64]]:
    """Shuffled rows in batches of nearly equal size, none above ``batch_size``.

    Equal sizes, because a small last batch would make the diversity term ask the
    impossible of the few samples in it. Nothing is remembered between epochs, so a
    resumed run draws what the uninterrupted one would have drawn.
    """
    order = np.random.default_rng([seed, epoch]).permutation(n)
    yield from np.array_split(order, batches_per_epoch(n, batch_size))


def step_seed(seed: int, step: int) -> int:
    """Seed of everything random inside one step (the dropout)."""
    state = np.random.SeedSequence([seed, step]).generate_state(1, np.uint64)
    return int(state[0] >> 1)  # torch takes 63 bits everywhere
