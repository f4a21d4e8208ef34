"""How many clusters: candidates, the value of one, the conclusion, real structure."""

import itertools
import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl.schema import check
from sagl.search.count import (
    ClusterCount,
    CountPoint,
    _point,
    conclude,
    count_clusters,
    default_candidates,
    kept_count,
)
from tests.conftest import clustered_views

checked = settings(max_examples=60, deadline=None, derandomize=True, database=None)
unit = st.floats(0, 1, allow_nan=False)


def curve(*values, deviation=0.01):
    return [CountPoint(k, v, deviation, 1.0, v) for k, v in enumerate(values, start=2)]


@checked
@given(st.integers(16, 100_000))
def test_candidates_rise_and_leave_enough_samples_to_each(n):
    found = default_candidates(n)
    assert found[0] == 2
    assert all(a < b <= max(a + 1, 1.2 * a) for a, b in itertools.pairwise(found))
    assert found[-1] <= min(256, n // 8)


@checked
@given(st.lists(unit, min_size=4, max_size=4), st.lists(unit, min_size=6, max_size=6))
def test_value_and_jackknife_deviation_written_out(scores, pairs):
    agreement = np.eye(4)
    places = list(itertools.combinations(range(4), 2))
    for (i, j), value in zip(places, pairs, strict=True):
        agreement[i, j] = agreement[j, i] = value

    def value_of(kept):
        between = [agreement[i, j] for i, j in itertools.combinations(kept, 2)]
        return np.mean([scores[i] for i in kept]) * np.mean(between)

    found = _point(7, np.array(scores), agreement)
    without = [value_of([i for i in range(4) if i != out]) for out in range(4)]
    expected = (3 / 4 * sum((v - np.mean(without)) ** 2 for v in without)) ** 0.5
    assert found.n_clusters == 7
    assert found.value == pytest.approx(value_of(range(4)), abs=1e-12)
    assert found.deviation == pytest.approx(expected, abs=1e-9)


def test_a_clear_peak_is_sure():
    found = conclude(curve(0.1, 0.3, 0.9, 0.4, 0.2))
    assert (found.best, found.low, found.high, found.sure) == (4, 4, 4, True)
    assert "do not tell" not in found.in_words()


def test_what_is_found_each_time_is_sure_beside_others_nearly_as_good():
    def found(agreement):
        points = curve(0.5, 0.8, 0.9, 0.8, 0.8, 0.8, 0.8)
        points[2] = points[2]._replace(agreement=agreement)
        return conclude(points)

    assert found(0.96).sure
    assert not found(0.94).sure


@pytest.mark.parametrize(
    "points",
    [
        curve(0.9, 0.3, 0.2),  # the first: fewer were not tried
        curve(0.1, 0.2, 0.9),  # the last: more were not tried
        curve(0.5, 0.9, 0.6, 0.6, 0.6, 0.6, 0.6, 0.895),  # 3 or 9
        curve(0.5, 0.8, 0.9, 0.8, 0.8, 0.8, 0.8),  # 4, but 8 are nearly as good
        curve(0.8, 0.8, 0.9, 0.5, 0.5, 0.5, 0.5),  # 4, but 2 are nearly as good
        curve(0.1, 0.4, 0.2),  # partitions are found anew each time
    ],
)
def test_says_when_it_cannot_tell(points):
    found = conclude(points)
    assert not found.sure
    assert "do not tell" in found.in_words()


@checked
@given(st.lists(st.tuples(unit, unit), min_size=3, max_size=9))
def test_the_interval_holds_the_best(pairs):
    points = [CountPoint(k, v, s, 1, v) for k, (v, s) in enumerate(pairs, start=2)]
    found = conclude(points)
    assert found.low <= found.best <= found.high
    assert max(p.value for p in points) == points[found.best - 2].value


def test_the_interval_reaches_to_where_partitions_agree_most():
    def point(count, value, agreement):
        return CountPoint(count, value, 0.01, 1.0, agreement)

    points = [point(k, 0.1, 0.6) for k in (2, 3, 4, 5, 7, 9)]
    points[4] = point(7, 0.9, 0.7)
    assert conclude(points)[:4] == (7, 7, 7, True)
    points[2] = point(4, 0.1, 0.9)
    assert conclude(points)[:4] == (7, 4, 7, True)
    points[0] = point(2, 0.05, 0.9)  # as much, but worth less
    assert conclude(points)[:4] == (7, 4, 7, True)
    points[1] = point(3, 0.1, 0.95)
    found = conclude(points)
    assert found[:4] == (7, 3, 7, False)  # too wide
    assert "between 3 and 7" in found.in_words()


def test_runners_up_are_other_peaks_and_what_agrees_most():
    values = {2: 0.2, 3: 0.86, 4: 0.5, 5: 1.0, 6: 0.9, 7: 0.8, 8: 0.84, 9: 0.3}
    points = [CountPoint(k, v, 0.01, 1.0, v - 0.1) for k, v in values.items()]
    assert conclude(points).runners_up == [3]  # 6 is no peak, 8 is too low
    points[0] = CountPoint(2, 0.2, 0.01, 0.2, 1.0)
    assert conclude(points).runners_up == [2, 3]
    assert conclude(curve(0.1, 0.9, 0.1)).runners_up == []


def test_it_prints_as_a_sentence():
    found = conclude(
        [CountPoint(k, 1.0 - abs(k - 4), 0.1, 1, 0.9) for k in (2, 3, 4, 5)]
    )
    assert str(found) == f"<ClusterCount: {found.in_words()}; 4 numbers tried>"
    assert "4 clusters" in str(found)


def test_survives_a_round_trip_through_json():
    found = conclude(curve(0.1, 0.9, 0.2))
    assert check(ClusterCount, json.loads(json.dumps(found.as_dict()))) == found


@pytest.mark.parametrize("truth", [3, 6])
def test_finds_the_number_that_is_there(truth):
    views, _ = clustered_views(240, truth, seed=truth, spread=0.6)
    features = [torch.from_numpy(h - h.mean(axis=0)) for _, h in views.items()]
    seen = []
    found = count_clusters(features, range(2, 10), seed=0, on_candidate=seen.append)
    assert found.best == truth
    assert found.sure
    assert [point.n_clusters for point in seen] == list(range(2, 10))


def test_views_of_one_sample_stay_together():
    """Rows of a resample are the same in all views: shuffling one spoils the count."""
    views, _ = clustered_views(240, 5, spread=0.4)
    wide, narrow = (torch.from_numpy(h - h.mean(axis=0)) for _, h in views.items())
    together = count_clusters([wide, narrow], [4, 5, 6], seed=0)
    apart = count_clusters([wide, narrow[torch.randperm(240)]], [4, 5, 6], seed=0)
    assert max(p.value for p in together.curve) > 2 * max(p.value for p in apart.curve)


def test_a_stiff_regression_tells_less_of_one_cluster_too_many():
    """One that bends finds a plane through any cluster, and counts on and on."""
    rng = np.random.default_rng(0)
    labels = np.arange(120) % 4
    views = []
    for _ in range(2):
        x = rng.normal(size=(4, 40))[labels] + rng.normal(size=(120, 40))
        views.append(torch.from_numpy(x - x.mean(axis=0)))
    curve = count_clusters(views, [3, 4, 5, 6], 0).curve
    information = {point.n_clusters: point.information for point in curve}
    assert information[4] > 1.1 * max(information[k] for k in (3, 5, 6))


def test_a_killed_run_does_not_count_again(tmp_path):
    found = conclude([CountPoint(k, float(k == 3), 0.1, 1.0, 1.0) for k in (2, 3, 4)])
    counted, path = [], tmp_path / "cluster-count.json"

    def estimate():
        counted.append(1)
        return found

    for expected in (1, 1):
        assert kept_count(path, {"seed": 0}, estimate) == found
        assert len(counted) == expected
    kept_count(path, {"seed": 1}, estimate)  # another run
    assert len(counted) == 2
    path.write_text("{")
    kept_count(path, {"seed": 1}, estimate)
    assert len(counted) == 3
