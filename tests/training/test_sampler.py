"""Batches: every sample once per epoch, in even shares, by the seed alone."""

import math

import numpy as np
import pytest

from sagl.training.sampler import batches_per_epoch, epoch_batches, step_seed

SIZES = [(1, 1), (2, 2), (7, 3), (10, 10), (10, 100), (100, 10), (101, 10), (1001, 97)]


def batches(n, batch_size, seed=0, epoch=0):
    return list(epoch_batches(n, batch_size, seed, epoch))


@pytest.mark.parametrize(("n", "batch_size"), SIZES)
@pytest.mark.parametrize("epoch", [0, 1, 50])
def test_an_epoch_is_a_permutation(n, batch_size, epoch):
    rows = np.concatenate(batches(n, batch_size, epoch=epoch))
    assert rows.dtype == np.int64
    assert sorted(rows.tolist()) == list(range(n))


@pytest.mark.parametrize(("n", "batch_size"), SIZES)
def test_sizes_are_as_few_and_as_even_as_possible(n, batch_size):
    sizes = [len(batch) for batch in batches(n, batch_size)]
    assert len(sizes) == math.ceil(n / batch_size) == batches_per_epoch(n, batch_size)
    assert max(sizes) <= batch_size
    assert max(sizes) - min(sizes) <= 1


def test_equal_seeds_and_epochs_draw_the_same():
    for one, other in zip(batches(50, 7, 3, 9), batches(50, 7, 3, 9), strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_epoch_does_not_depend_on_those_drawn_before():
    alone = batches(50, 7, seed=3, epoch=4)
    for epoch in range(4):
        batches(50, 7, seed=3, epoch=epoch)
    after = batches(50, 7, seed=3, epoch=4)
    np.testing.assert_array_equal(np.concatenate(alone), np.concatenate(after))


def test_epochs_and_seeds_all_differ():
    orders = {
        tuple(np.concatenate(batches(50, 7, seed, epoch)))
        for seed in range(10)
        for epoch in range(10)
    }
    assert len(orders) == 100


def test_the_order_is_shuffled_across_batches():
    """Each batch draws from everywhere, not from its own stretch of the data."""
    for batch in batches(1000, 100):
        assert 350 < np.mean(batch) < 650


def test_step_seeds_differ_and_repeat():
    seeds = {step_seed(seed, step) for seed in range(10) for step in range(100)}
    assert len(seeds) == 1000
    assert step_seed(3, 4) == step_seed(3, 4)
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_the_global_generator_is_not_touched():
    np.random.seed(5)
    kind, before, *rest = np.random.get_state()
    batches(50, 7)
    step_seed(0, 0)
    now_kind, now, *now_rest = np.random.get_state()
    assert (kind, rest) == (now_kind, now_rest)
    np.testing.assert_array_equal(now, before)
