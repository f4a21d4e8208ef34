"""Stability under other partitions, and the curve that turns it into a threshold."""

import json
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl.schema import check
from sagl.search.stability import DoubtCurve, doubt_curve, stability

checked = settings(max_examples=50, deadline=None, derandomize=True, database=None)
C = 3
some_labels = st.lists(st.integers(0, C - 1), min_size=6, max_size=6)


@checked
@given(some_labels, st.lists(some_labels, min_size=1, max_size=3))
def test_stability_is_the_best_renaming_of_each_partition(labels, others):
    labels, others = np.array(labels), [np.array(other) for other in others]
    found = stability(labels, others, C)
    best = [
        max(
            (np.array(names)[other] == labels).sum() for names in permutations(range(C))
        )
        for other in others
    ]
    assert found.sum() == pytest.approx(sum(best) / len(others))
    assert ((found >= 0) & (found <= 1)).all()


def test_names_of_clusters_do_not_matter():
    labels = np.array([0, 0, 1, 1, 2, 2])
    renamed = np.array([2, 2, 0, 0, 1, 1])
    moved = np.array([0, 0, 1, 1, 2, 1])
    found = stability(labels, [renamed, moved], C)
    np.testing.assert_array_equal(found, [1, 1, 1, 1, 1, 0.5])


def test_curve_counts_what_is_at_or_above_each_threshold():
    rng = np.random.default_rng(0)
    confidence = rng.random(500)
    stable = (rng.random(500) < confidence).astype(float)
    curve = doubt_curve(confidence, stable)
    assert curve.kept[0] == 1
    assert curve.confidence[0] == 0  # nobody is left out
    for t, kept, agreement in zip(*curve, strict=True):
        assert kept == pytest.approx((confidence >= t).mean())
        assert agreement == pytest.approx(stable[confidence >= t].mean())
    assert check(DoubtCurve, json.loads(json.dumps(curve.as_dict()))) == curve


def test_threshold_is_the_lowest_that_reaches_the_agreement():
    curve = DoubtCurve((0.2, 0.5, 0.8), (1.0, 0.6, 0.3), (0.7, 0.9, 0.95))
    assert curve.threshold(0.0) == 0.2
    assert curve.threshold(0.9) == 0.5
    assert curve.threshold(0.91) == 0.8
    assert curve.threshold(0.99) > 1  # nobody is that sure


@checked
@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=30),
    st.floats(0, 1),
)
def test_what_is_kept_agrees_as_much_as_was_asked_for(pairs, wanted):
    confidence, stable = np.array(pairs).T
    threshold = doubt_curve(confidence, stable).threshold(wanted)
    kept = confidence >= threshold
    assert not kept.any() or stable[kept].mean() >= wanted - 1e-9
