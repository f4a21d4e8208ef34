"""Accuracy over coverage: orders, ties, and clusters without a class."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from coverage_curves import accuracy_over_coverage, grouped, is_right, of_sagl, table
from sagl import SAGL, Views
from sagl.evaluation.metrics import clustering_accuracy


def test_the_surest_come_first():
    right = np.array([False, True, True, False])
    curve = accuracy_over_coverage(right, np.array([0.1, 0.9, 0.8, 0.5]))
    np.testing.assert_allclose(curve, [1, 1, 2 / 3, 1 / 2])


def test_equally_sure_samples_have_no_order():
    """As the mean over all orders of those that are equally sure."""
    rng = np.random.default_rng(0)
    right, sureness = rng.random(60) < 0.6, rng.integers(0, 5, 60).astype(float)
    curves = []
    for _ in range(4_000):
        broken = sureness + 0.5 * rng.random(60)
        curves.append(accuracy_over_coverage(right, broken))
    expected = np.mean(curves, axis=0)
    np.testing.assert_allclose(
        accuracy_over_coverage(right, sureness), expected, atol=0.03
    )


@pytest.mark.parametrize("found", [3, 5, 8])
def test_right_are_those_that_accuracy_counts(found):
    rng = np.random.default_rng(1)
    truth = rng.choice(["a", "b", "c", "d", "e"], 200)
    labels = rng.integers(0, found, 200)
    right = is_right(truth, labels)
    assert right.mean() == pytest.approx(clustering_accuracy(truth, labels))


def test_sagl_leaves_out_what_its_predict_leaves_out():
    rng = np.random.default_rng(0)
    centres = 2 * rng.normal(size=(3, 8))
    rows = centres[rng.integers(0, 3, 90)] + rng.normal(size=(90, 8))
    views = Views({"a": rows.astype(np.float32)})
    answer = of_sagl(views, 3, 0)
    model = SAGL(3, random_state=0).fit(views)
    np.testing.assert_array_equal(
        answer.covered, model.predict(views, agreement=0.9) >= 0
    )
    np.testing.assert_array_equal(answer.labels, model.predict(views))


def test_sagl_is_shown_at_the_coverage_of_the_other():
    line = np.linspace(1, 0.5, 100).tolist()
    sagl = {"set": "s", "method": "sagl", "curve": line, "coverage": 0.9}
    other = {"set": "s", "method": "evoc", "curve": line, "coverage": 0.01}
    common = {"covered": 0.7, "full": 0.5, "area": 0.75}
    text = table([sagl | common, other | common])
    assert list(grouped([sagl, other])) == [("s", "sagl"), ("s", "evoc")]
    assert (
        "| s | EVoC | 0.990 ± 0.000 | 0.700 ± 0.000 | 1.000 ± 0.000 "
        "| 0.500 ± 0.000 | 0.750 ± 0.000 |" in text
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["evoc", "umap-hdbscan"])
def test_peers_order_what_they_labelled_before_what_they_left_out(name):
    pytest.importorskip("evoc" if name == "evoc" else "umap")
    from coverage_curves import of_peer

    rng = np.random.default_rng(0)
    centres = 3 * rng.normal(size=(4, 16))
    rows = centres[rng.integers(0, 4, 240)] + rng.normal(size=(240, 16))
    answer = of_peer(name, Views({"a": rows.astype(np.float32)}), 4, 0)
    assert answer.covered.any()
    assert (answer.sureness[answer.covered] >= 1).all()
    assert (answer.sureness[~answer.covered] <= 1).all()
