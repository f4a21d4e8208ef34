"""The chance correction of ``ami`` against exact fractions and against scikit-learn."""

from __future__ import annotations

from fractions import Fraction
from math import comb, fsum, log1p
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import xlogy
from scipy.stats import hypergeom
from sklearn.metrics import adjusted_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information

from sagl.evaluation import expected_information as module
from sagl.evaluation.expected_information import expected_information
from sagl.evaluation.metrics import ami, clustering_scores

Labels = tuple[np.ndarray, np.ndarray]


def assert_close(actual: float, expected: float, rel: float, abs: float = 0) -> None:
    assert actual == pytest.approx(expected, rel=rel, abs=abs)


def slow_expected_information(class_sizes: Any, cluster_sizes: Any) -> float:
    """The definition, with exact probabilities."""
    n_samples = sum(class_sizes)
    return fsum(
        float(Fraction(n * comb(a, n) * comb(n_samples - a, b - n), comb(n_samples, b)))
        * log1p(Fraction(n * n_samples - a * b, a * b))  # log(n / mean)
        / n_samples
        for a in class_sizes
        for b in cluster_sizes
        for n in range(max(1, a + b - n_samples), min(a, b) + 1)
    )


def sizes(labels: np.ndarray) -> list[int]:
    return np.unique(labels, return_counts=True)[1].tolist()


@st.composite
def labelings(draw: st.DrawFn, max_samples: int, max_clusters: int) -> Labels:
    """Two clusterings that agree in part, with clusters of any mixture of sizes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_samples = draw(st.integers(1, max_samples))
    n_classes, n_clusters = (draw(st.integers(1, max_clusters)) for _ in range(2))
    spread = draw(st.sampled_from([0.0, 1.0, 3.0]))
    y_true, y_pred = (
        rng.choice(k, n_samples, p=rng.dirichlet(np.full(k, 10.0**-spread)))
        for k in (n_classes, n_clusters)
    )
    same = rng.random(n_samples) < draw(st.sampled_from([0.0, 0.5, 1.0]))
    return y_true, np.where(same, y_true, y_pred)


@given(labelings(max_samples=60, max_clusters=20))
@settings(deadline=None)
def test_equals_the_definition(labels: Labels) -> None:
    of_sizes = [sizes(side) for side in labels]
    expected = slow_expected_information(*of_sizes)
    assert_close(expected_information(*of_sizes), expected, 1e-13, 1e-16)


@pytest.mark.parametrize(
    ("class_sizes", "cluster_sizes"),
    [
        ([2000, 50, 1], [1000, 1051]),
        ([1999, 1], [1999, 1]),
        ([1999, 1], [1, 1000, 999]),
        ([1970, 30], [30] * 65 + [50]),
        ([1] * 50 + [450], [2] * 25 + [450]),
    ],
)
def test_unequal_sizes(class_sizes: list[int], cluster_sizes: list[int]) -> None:
    expected = slow_expected_information(class_sizes, cluster_sizes)
    assert_close(expected_information(class_sizes, cluster_sizes), expected, 1e-12)
    assert_close(expected_information(cluster_sizes, class_sizes), expected, 1e-12)


@given(labelings(max_samples=2000, max_clusters=60))
@settings(deadline=None)
def test_equals_scikit_learn(labels: Labels) -> None:
    table = contingency_matrix(*labels, sparse=True)
    expected = expected_mutual_information(table, len(labels[0]))
    assert_close(expected_information(*map(sizes, labels)), expected, 1e-10, 1e-15)
    assert_close(ami(*labels), adjusted_mutual_info_score(*labels), 1e-10, 1e-12)


def test_equals_scikit_learn_on_many_samples() -> None:
    rng = np.random.default_rng(0)
    y_true, other = (
        rng.choice(k, 20_000, p=rng.dirichlet(np.ones(k))) for k in (80, 120)
    )
    y_pred = np.where(rng.random(20_000) < 0.3, y_true, other)
    table = contingency_matrix(y_true, y_pred, sparse=True)
    expected = expected_mutual_information(table, 20_000)
    assert_close(expected_information(sizes(y_true), sizes(y_pred)), expected, 1e-10)
    assert_close(ami(y_true, y_pred), adjusted_mutual_info_score(y_true, y_pred), 1e-10)
    assert clustering_scores(y_true, y_pred)["ami"] == ami(y_true, y_pred)


def test_large_sizes() -> None:
    n_samples = 10**6
    a, b = [300_000, 700_000], [450_000, 550_000]
    n = np.arange(n_samples + 1)
    expected = sum(
        hypergeom.pmf(n, n_samples, i, j) @ xlogy(n, n * (n_samples / i / j))
        for i in a
        for j in b
    )
    assert_close(expected_information(a, b), expected / n_samples, 1e-6)


def test_small_sizes_among_a_million_samples() -> None:
    of_sizes = [300, 999_700], [200, 999_800]
    expected = slow_expected_information(*of_sizes)
    assert_close(expected_information(*of_sizes), expected, 1e-12)


def test_a_million_samples_in_a_thousand_clusters_of_distinct_sizes() -> None:
    distinct = np.arange(500, 1500)
    distinct[-1] += 10**6 - distinct.sum()
    # From scikit-learn 1.9, which needs more than a minute. Its log-gamma function of a
    # million has only nine digits after the point.
    assert_close(expected_information(distinct, distinct), 0.5531079704468609, 1e-8)


def test_tiles_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    a, b = (np.bincount(rng.geometric(0.2, 500)) for _ in range(2))
    a, b = a[a > 0], b[b > 0]
    whole = expected_information(a, b)
    monkeypatch.setattr(module, "_TILE", 3)
    assert_close(expected_information(a, b), whole, 1e-14)


@pytest.mark.parametrize(
    ("y_true", "y_pred", "expected"),
    [
        ([0], [0], 1.0),
        ([0, 0, 0], [1, 1, 1], 1.0),
        ([0, 1, 2], [2, 0, 1], 1.0),
        (range(1000), range(1000), 1.0),
        ([0, 0, 1, 1, 1], [5, 5, 3, 3, 3], 1.0),
        ([0, 0, 0, 0], [0, 0, 1, 1], 0.0),
        ([0, 1, 1, 0], [0, 0, 0, 0], 0.0),
        ([0, 0, 0], [0, 1, 2], 0.0),
    ],
)
def test_edge_cases_are_exact(y_true: Any, y_pred: Any, expected: float) -> None:
    assert adjusted_mutual_info_score(y_true, y_pred) == expected
    assert ami(y_true, y_pred) == expected


@pytest.mark.parametrize("n_samples", [2, 3, 10, 1001])
def test_single_samples_say_nothing(n_samples: int) -> None:
    # Any split into single samples has the same information, so all is by chance.
    y_true = np.arange(n_samples) // 2
    assert ami(y_true, np.arange(n_samples)) == pytest.approx(0, abs=1e-12)
