"""Which samples come when, and when a class counts as found."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from stream import class_of, classes_by_batch, stream


def test_every_sample_comes_once_and_no_class_before_its_batch():
    truth = np.repeat(np.arange(25), 11)
    steps = classes_by_batch(np.arange(25), seed=3)
    assert [len(step) for step in steps] == [12, 3, 3, 3, 2, 2]
    batches = list(stream(truth, steps, seed=3))
    assert np.array_equal(np.sort(np.concatenate(batches)), np.arange(275))
    known: set[int] = set()
    for step, batch in zip(steps, batches, strict=True):
        known |= set(step.tolist())
        assert set(truth[batch]) <= known
        for each in step:  # half of it, or what is left in the last one
            assert (truth[batch] == each).sum() == (11 if batch is batches[-1] else 6)


def test_a_class_is_found_if_half_of_it_is_half_of_a_cluster():
    truth = np.array([0, 0, 0, 0, 1, 1, 2])
    inside = np.array([1, 1, 0, 0, 1, 0, 1], dtype=bool)
    assert class_of(truth, inside) == 0
    assert class_of(truth, inside & (truth != 0)) == 1
    assert class_of(truth, truth == 2) == 2
    assert class_of(truth, np.arange(7) == 0) is None  # a quarter of its class
    assert class_of(truth, np.zeros(7, dtype=bool)) is None
