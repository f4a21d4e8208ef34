"""Debiased CKA against the textbook's n × n formula, and what it must not notice."""

import tracemalloc
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sagl import Views
from sagl.evaluation import cka as module
from sagl.evaluation.cka import (
    cka_matrix,
    debiased_cka,
    judge_views,
    suitable_batch_size,
)
from sagl.progress import Bar


def slow_hsic(x: np.ndarray, y: np.ndarray) -> float:
    """HSIC_1 of Song et al. (2012), eq. 5, with both n × n matrices written out."""
    n = len(x)
    K, L = x @ x.T, y @ y.T
    np.fill_diagonal(K, 0)
    np.fill_diagonal(L, 0)
    ones = np.ones(n)
    trace = np.trace(K @ L)
    means = (ones @ K @ ones) * (ones @ L @ ones) / ((n - 1) * (n - 2))
    rows = 2 / (n - 2) * (ones @ K @ L @ ones)
    return (trace + means - rows) / (n * (n - 3))


def slow_cka(x: np.ndarray, y: np.ndarray) -> float:
    return slow_hsic(x, y) / np.sqrt(slow_hsic(x, x) * slow_hsic(y, y))


def biased_cka(x: np.ndarray, y: np.ndarray) -> float:
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    return np.linalg.norm(x.T @ y) ** 2 / (
        np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y)
    )


@st.composite
def two_views(draw):
    """Two matrices of 4 to 40 rows, of any widths and scales, partly related."""
    n = draw(st.integers(4, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    widths = draw(st.tuples(st.integers(2, 60), st.integers(2, 60)))
    shared = rng.normal(size=(n, 3))
    share = draw(st.floats(0, 3))
    shift = draw(st.floats(-100, 100))
    return tuple(
        rng.normal(size=(n, width))
        + share * shared @ rng.normal(size=(3, width))
        + shift
        for width in widths
    )


@given(two_views())
@settings(deadline=None, max_examples=60)
def test_equals_the_slow_version(pair):
    x, y = (h.astype(np.float32).astype(np.float64) for h in pair)
    expected = slow_cka(x - x.mean(axis=0), y - y.mean(axis=0))
    assert debiased_cka(x, y) == pytest.approx(expected, abs=1e-6)


@given(two_views())
@settings(deadline=None, max_examples=30)
def test_one_batch_is_the_exact_value(pair):
    views = Views(list(pair))
    exact = cka_matrix(views)
    one = cka_matrix(views, batch_size=len(views))
    np.testing.assert_allclose(one, exact, atol=1e-9)


@given(two_views(), st.integers(0, 1000), st.floats(0.01, 100))
@settings(deadline=None, max_examples=30)
def test_rotation_scale_and_shift_do_not_matter(pair, seed, scale):
    x, y = pair
    rotation, _ = np.linalg.qr(
        np.random.default_rng(seed).normal(size=(x.shape[1],) * 2)
    )
    turned = scale * (x @ rotation) + 3
    # float32 features with a mean of 100 keep five digits of what differs.
    assert debiased_cka(turned, y) == pytest.approx(debiased_cka(x, y), abs=2e-3)


@given(two_views())
@settings(deadline=None, max_examples=30)
def test_symmetric_bounded_and_one_on_itself(pair):
    x, y = pair
    matrix = cka_matrix(Views([x, y, x]))
    np.testing.assert_allclose(matrix, matrix.T)
    assert (matrix.diagonal() == 1).all()
    assert matrix[0, 2] == pytest.approx(1)
    assert (np.abs(matrix) <= 1).all()


@given(hnp.arrays(np.float64, (6, 3), elements=st.floats(-1e3, 1e3, width=32)))
@settings(deadline=None, max_examples=60)
def test_views_have_a_value_or_no_structure(x):
    other = np.arange(18.0).reshape(6, 3) ** 2
    centred = x - x.mean(axis=0)
    biased = np.linalg.norm(centred @ centred.T) ** 2
    unbiased = 6 * 3 * slow_hsic(centred, centred)  # n (n − 3), which it divides by
    if unbiased <= 0.5 * module._ROUNDING * biased:
        with pytest.raises(ValueError, match="has nothing to compare"):
            debiased_cka(x, other)
    elif unbiased >= 2 * module._ROUNDING * biased:  # between, rounding decides
        assert -1 <= debiased_cka(x, other) <= 1


def test_unrelated_views_score_zero_however_wide():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 60, 4_000))
    assert biased_cka(x, y) > 0.9  # what is wrong with the usual estimate
    assert abs(debiased_cka(x, y)) < 0.05
    values = [debiased_cka(*rng.normal(size=(2, 30, 50))) for _ in range(200)]
    assert abs(np.mean(values)) < 0.01  # on both sides of zero


def test_the_order_of_the_samples_does_not_matter():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(100, 5))
    y = x[:, :3] + rng.normal(size=(100, 3))
    order = rng.permutation(100)
    assert debiased_cka(x[order], y[order]) == pytest.approx(debiased_cka(x, y))
    assert debiased_cka(x[order], y) < debiased_cka(x, y) - 0.2


def related_views(n: int, seed: int = 0) -> Views:
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(5, 20))
    x = centers[rng.integers(0, 5, n)] + rng.normal(size=(n, 20))
    y = x @ rng.normal(size=(20, 12)) + 4 * rng.normal(size=(n, 12))
    return Views({"x": x, "y": y})


def test_batches_tend_to_the_exact_value():
    views = related_views(200)
    exact = module._exact(views, Bar())
    batched = [module._batched(views, 20, seed, Bar()) for seed in range(400)]
    errors = np.array(batched) - exact
    assert (abs(errors.mean(axis=0)) < abs(errors).mean(axis=0) / 5).all()


def test_batches_are_random_whatever_the_order_of_the_file():
    views = related_views(2_000)
    by_first = np.argsort(views["x"][:, 0])
    exact = cka_matrix(views)[0, 1]
    sorted_views = views[by_first]
    assert cka_matrix(sorted_views, batch_size=100)[0, 1] == pytest.approx(
        exact, abs=0.02
    )
    # The same seed, the same batches; another one, others.
    first, second, other = (
        cka_matrix(views, batch_size=100, seed=seed)[0, 1] for seed in (3, 3, 4)
    )
    assert first == second != other


def test_blocks_of_rows_add_up(monkeypatch):
    views = related_views(300)
    whole = cka_matrix(views)
    monkeypatch.setattr(module, "_BLOCK_VALUES", 7 * sum(views.widths))
    np.testing.assert_allclose(cka_matrix(views), whole, rtol=1e-10)


def test_many_rows_need_no_square_matrix():
    n = 30_000  # n × n in float64 would be 7 GB
    views = related_views(n)
    for batch_size in (None, 256):
        tracemalloc.start()
        cka_matrix(views, batch_size=batch_size)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 150e6


@pytest.mark.parametrize("batch_size", [None, 30])
def test_progress_adds_up(batch_size, monkeypatch):
    """To what the bar was told there would be."""
    counts = []

    @contextmanager
    def counting(total, *words, show):
        yield SimpleNamespace(update=counts.append)
        assert show
        assert sum(counts) == total

    monkeypatch.setattr(module, "show_progress", counting)
    cka_matrix(related_views(100), batch_size=batch_size, progress=True)
    assert counts


def test_auto_takes_batches_where_the_exact_value_is_slow():
    few = Views([np.zeros((50_000, 2)), np.zeros((50_000, 3))])
    many = Views([np.zeros((50_001, 2)), np.zeros((50_001, 3))])
    wide = Views([np.zeros((300, 5_000)), np.zeros((300, 3))])
    assert [suitable_batch_size(v) for v in (few, many, wide)] == [None, 512, 300]
    views = related_views(100)
    assert (cka_matrix(views, batch_size="auto") == cka_matrix(views)).all()


def test_scales_at_the_end_of_float32():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 4))
    y = x + 0.5 * rng.normal(size=(50, 4))
    expected = debiased_cka(x, y)
    assert debiased_cka(1e30 * x, 1e-30 * y) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (np.ones((9, 3)), "view 'second' has nothing to compare"),
        (np.eye(9), "view 'second' has nothing to compare"),  # equally far apart
    ],
)
@pytest.mark.parametrize("batch_size", [None, 9])
def test_views_without_structure_are_refused(second, message, batch_size):
    first = np.random.default_rng(0).normal(size=(9, 4))
    with pytest.raises(ValueError, match=message):
        cka_matrix(Views({"first": first, "second": second}), batch_size=batch_size)


def test_bad_input_is_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(
        ValueError, match="at least 4 samples that have all views; there are 3"
    ):
        debiased_cka(rng.normal(size=(3, 2)), rng.normal(size=(3, 2)))
    with pytest.raises(ValueError, match="different numbers of rows"):
        debiased_cka(rng.normal(size=(5, 2)), rng.normal(size=(6, 2)))
    with pytest.raises(ValueError, match=r"batch_size must be .* at least 4; got 3"):
        cka_matrix(related_views(20), batch_size=3)


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        (0.95, "repeat"),
        (0.9, "repeat"),
        (0.86, "overlap"),
        (0.75, "overlap"),
        (0.6, "complement"),
        (0.3, "complement"),
        (0.25, "unrelated"),
        (-0.01, "unrelated"),
    ],
)
def test_verdicts(value, verdict):
    [pair] = judge_views([[1, value], [value, 1]], ["a", "b"])
    assert pair.verdict == verdict
    assert f"{value:.3f}" in pair.in_words()
    assert pair.in_words().startswith("a and b ")


def test_all_pairs_the_most_alike_first():
    matrix = [[1, 0.2, 0.8], [0.2, 1, 0.5], [0.8, 0.5, 1]]
    pairs = judge_views(matrix, ["a", "b", "c"])
    assert [(p.first, p.second) for p in pairs] == [("a", "c"), ("b", "c"), ("a", "b")]
    with pytest.raises(ValueError, match="2 names for CKA of shape"):
        judge_views(matrix, ["a", "b"])
