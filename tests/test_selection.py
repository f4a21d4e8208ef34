"""A score that needs no labels, and the choice by it."""

import numpy as np
import pytest

from sagl.evaluation import clustering_accuracy
from sagl.selection import best_partition, label_free_score
from tests.conftest import clustered_views


@pytest.fixture(scope="module")
def problem():
    return clustered_views(240, spread=2.0)


def corrupted(labels, share, seed):
    rng = np.random.default_rng(seed)
    wrong = rng.random(len(labels)) < share
    return np.where(wrong, rng.integers(0, 4, len(labels)), labels)


def test_the_score_orders_partitions_as_the_truth_does(problem):
    views, truth = problem
    partitions = [corrupted(truth, share, 1) for share in (0.5, 0.0, 0.2, 0.9)]
    best, scores = best_partition(views, partitions)
    assert best == 1
    by_score = np.argsort([s.total for s in scores])
    by_truth = np.argsort([clustering_accuracy(truth, p) for p in partitions])
    assert by_score.tolist() == by_truth.tolist()


def test_any_names_and_any_input_form(problem):
    views, truth = problem
    expected = label_free_score(views, truth)
    names = np.array(["ant", "bee", "cat", "dog"])[truth]
    as_mapping = {name: array for name, array in views.items()}
    assert label_free_score(as_mapping, names) == expected


def test_columns_may_have_any_scale(problem):
    views, truth = problem
    scaled = {name: h * 10.0 ** np.arange(h.shape[1]) for name, h in views.items()}
    found, expected = (label_free_score(v, truth).total for v in (scaled, views))
    assert found == pytest.approx(expected, rel=1e-3)


def test_a_choice_of_samples_is_enough(problem):
    views, truth = clustered_views(900, spread=1.0)
    few = label_free_score(views, truth, max_samples=300).total
    assert few == pytest.approx(label_free_score(views, truth).total, rel=0.1)


def test_refuses_what_does_not_fit(problem):
    views, truth = problem
    with pytest.raises(ValueError, match=r"shape \(239,\).*each of the 240 samples"):
        label_free_score(views, truth[:-1])
    with pytest.raises(ValueError, match="at least one"):
        best_partition(views, [])
