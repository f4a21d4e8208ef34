"""A score that needs no labels, and the choice by it."""

import numpy as np
import pytest
import torch

from sagl import Views
from sagl.evaluation import clustering_accuracy
from sagl.search.count import count_clusters
from sagl.selection import (
    best_partition,
    choose_views,
    estimate_n_clusters,
    label_free_score,
)
from sagl.training.feed import standardized
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
    rescaled, expected = (label_free_score(v, truth).total for v in (scaled, views))
    assert rescaled == pytest.approx(expected, rel=1e-3)


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


def test_the_number_of_clusters_from_any_form_of_views():
    views, _ = clustered_views(300, 5, spread=0.5)
    count = estimate_n_clusters(views, range(2, 9))
    assert (count.best, count.sure) == (5, True)
    as_mapping = {name: array for name, array in views.items()}
    assert estimate_n_clusters(as_mapping, [8, 7, 6, 5, 5, 4, 3, 2]) == count


@pytest.mark.parametrize(
    ("n", "candidates", "message"),
    [
        (20, None, "20 samples are too few to count clusters in"),
        (60, [4], "three or more different candidates; got \\[4\\]"),
        (60, [4, 5, 40], "40 clusters are too many for 60 samples; the most is 30"),
        (60, [1, 2, 3], "a candidate must be a whole number of at least 2; got 1"),
    ],
)
def test_refuses_to_count_what_cannot_be_counted(n, candidates, message):
    views, _ = clustered_views(n)
    with pytest.raises(ValueError, match=message):
        estimate_n_clusters(views, candidates)


def test_clusters_in_a_few_loud_columns_are_counted():
    """Columns of deviation one would drown them in quiet noise."""
    rng = np.random.default_rng(0)
    labels = np.arange(240) % 6
    views = {}
    for name in ("one", "other"):
        loud = 8 * rng.normal(size=(6, 4))[labels] + rng.normal(size=(240, 4))
        views[name] = np.hstack([loud, 0.3 * rng.normal(size=(240, 150))])
    features = standardized(Views(views), np.arange(240), torch.device("cpu"))
    drowned = count_clusters(features, range(2, 12), 0)
    assert (drowned.best, drowned.sure) != (6, True)
    counted = estimate_n_clusters(views, range(2, 12))
    assert (counted.best, counted.sure) == (6, True)


def test_views_that_help_are_used_and_noise_is_not():
    views, _ = clustered_views(200, spread=1.5)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(200, 12)).astype(np.float32)
    choice = choose_views({**dict(views.items()), "noise": noise}, 4)
    assert "noise" not in choice.best
    assert "wide" in choice.best
    totals = [subset.score.total for subset in choice.tried]
    assert totals == sorted(totals, reverse=True)
    assert {("wide",), ("narrow",), ("noise",)} < {s.names for s in choice.tried}


def test_two_views_that_need_each_other_are_used_together():
    """Each view shows half of the structure: alone, two clusters of four are one."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 4, 240)
    halves = {"left": labels // 2, "right": labels % 2}
    views = {
        name: np.eye(2)[half].repeat(4, axis=1) * 3 + rng.normal(size=(240, 8)) * 0.5
        for name, half in halves.items()
    }
    assert set(choose_views(views, 4).best) == {"left", "right"}


def test_refuses_to_choose_views_for_too_many_clusters(problem):
    with pytest.raises(ValueError, match="n_clusters=130 is too many for 240 samples"):
        choose_views(problem[0], 130)
