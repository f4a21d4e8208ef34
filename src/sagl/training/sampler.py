"""Which samples meet in a batch: a pure function of the seed and the epoch."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_MASK64 = (1 << 64) - 1


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
    """Seed of everything random inside one step (the dropout).

    The mixing function of SplitMix64, which spreads neighbouring steps and seeds over
    all 64 bits; NumPy's would take longer than the dropout.
    """
    x = (seed * 0xD1342543DE82EF95 + (step + 1) * 0x9E3779B97F4A7C15) & _MASK64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK64
    return (x ^ (x >> 31)) >> 1  # torch takes 63 bits everywhere
