"""Made-up samples of any number, and how what was measured of them is told."""

import sys
from pathlib import Path

import numpy as np
import pytest

from sagl import Views

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from made_up import MadeUp, files, samples
from scale import apart, exponents, side_by_side

CLASSES = 50


@pytest.fixture(scope="module")
def made():
    return samples(6000, CLASSES)


def test_the_first_rows_of_many_are_those_of_few(made, tmp_path):
    views, labels = made
    few, of_few = samples(100, CLASSES)
    assert np.array_equal(labels[:100], of_few)
    for one, other in zip(views, few, strict=True):
        assert one.dtype == np.float16
        assert np.array_equal(one[:100], other)
    mapped, truth = files(tmp_path, 5000, CLASSES)
    assert np.array_equal(truth, labels[:5000])
    for one, other in zip(views, mapped.take(np.arange(5000)), strict=True):
        assert np.array_equal(one[:5000], other)


def test_a_larger_set_takes_the_place_of_a_smaller_one(made, tmp_path):
    files(tmp_path, 50, CLASSES)
    views, labels = files(tmp_path, 6000, CLASSES)
    assert len(views) == len(labels) == 6000
    again, truth = files(tmp_path, 70, CLASSES)
    assert np.array_equal(truth, made[1][:70])
    assert len(again) == 70


def test_seeds_are_apart():
    (one, _), (other, _) = MadeUp(CLASSES).block(0), MadeUp(CLASSES, 1).block(0)
    assert not np.array_equal(one[0], other[0])


def test_neighbours_are_often_of_another_class(made):
    """No toy: between a fifth and a half of the nearest neighbours are wrong."""
    views, labels = made
    x = side_by_side(Views(views))
    np.testing.assert_allclose((x**2).sum(axis=1), 2, rtol=1e-4)
    similar = x[:500] @ x.T
    similar[np.arange(500), np.arange(500)] = -np.inf
    wrong = (labels[similar.argmax(axis=1)] != labels[:500]).mean()
    assert 0.2 < wrong < 0.5


def test_the_exponent_is_that_from_the_fewest_to_the_most():
    runs = [
        {"samples": n, "clusters": 50, "method": "sagl", "processor": 3.0 * n**1.1}
        for n in (10_000, 100_000, 1_000_000)
    ]
    runs.append({"samples": 10, "clusters": 50, "method": "faiss", "processor": 1e9})
    runs.append({"samples": 10, "clusters": 400, "method": "sagl", "ended": False})
    assert exponents(runs) == {50: pytest.approx(1.1)}


def test_a_fit_is_a_process_of_its_own_and_ends_in_time(tmp_path):
    job = {"samples": 500, "clusters": CLASSES, "method": "minibatch", "seed": 0}
    result = apart({**job, "threads": 1}, tmp_path, minutes=5)
    assert set(result) == {"seconds", "processor", "MiB", "acc", "nmi"}
    assert 0.1 < result["acc"] < 1
    assert result["MiB"] > 0
    late = apart({**job, "threads": 1}, tmp_path, minutes=0.001)
    assert late == {"ended": False}
