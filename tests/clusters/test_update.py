"""New samples: old clusters keep their numbers, new ones are found, drift is told."""

import numpy as np
import pytest
import torch

from sagl import SAGL, Views
from sagl.clusters.drift import energy
from tests.conftest import clustered_views

ROWS = np.arange(240)


@pytest.fixture(scope="module")
def stream():
    """Five clusters, of which the last is not among the first samples."""
    views, labels = clustered_views(300, n_clusters=5, seed=2)
    first = np.flatnonzero((labels < 4) & (np.arange(300) < 200))
    rest = np.setdiff1d(np.arange(300), first)
    model = SAGL(4, random_state=0).fit(views[first])
    model.rename({k: f"name {k}" for k in range(4)})
    return model, views, labels, first, rest


def as_found(model, labels, first):
    """The number of the cluster of each class; the fifth class is new."""
    classes = [
        np.bincount(model.labels_[labels[first] == k]).argmax() for k in range(4)
    ]
    return np.array([*classes, 4])


@pytest.mark.parametrize("with_old", [False, True])
def test_a_class_that_appears_is_a_new_cluster(stream, with_old):
    model, views, labels, first, rest = stream
    old = views[first] if with_old else None
    new = model.update(views[rest], old)
    told = new.update_
    wanted = as_found(model, labels, first)[labels]
    assert np.array_equal(new.labels_[-len(rest) :], wanted[rest])
    assert new.n_clusters_ == 5
    assert new.names_ == {k: f"name {k}" for k in range(4)}
    assert told.moved == 0
    assert [each.number for each in told.new_clusters] == [4]
    assert told.new_clusters[0].size == (labels == 4).sum()
    assert told.new_clusters[0].earlier == 0
    assert told.new_clusters[0].recall > 0.9
    assert told.new_clusters[0].gain > 0.1
    typical = told.new_clusters[0].typical
    assert (new.labels_[typical] == 4).all()
    assert all(view.p_value < 0.05 for view in told.views)
    assert model.n_clusters_ == 4  # the model itself stays as it is


@pytest.mark.parametrize("with_old", [False, True])
def test_more_of_the_same_makes_no_cluster(stream, with_old):
    model, views, _labels, first, _ = stream
    rng = np.random.default_rng(0)
    rows = first[rng.permutation(len(first))[:80]]
    again = {k: h + 0.2 * rng.normal(size=h.shape) for k, h in views[rows].items()}
    told = model.update(again, views[first] if with_old else None).update_
    assert told.new_clusters == ()
    assert told.moved == 0
    assert told.n_new == 80


@pytest.mark.parametrize("with_old", [False, True])
def test_much_more_of_one_cluster_makes_none(stream, with_old):
    model, views, labels, first, _ = stream
    rng = np.random.default_rng(1)
    of_one = first[labels[first] == 2]
    rows = np.concatenate([of_one, of_one, first[rng.permutation(len(first))[:30]]])
    again = {k: h + 0.2 * rng.normal(size=h.shape) for k, h in views[rows].items()}
    told = model.update(again, views[first] if with_old else None).update_
    assert told.new_clusters == ()


@pytest.mark.parametrize("with_old", [False, True])
def test_classes_that_appear_together_are_clusters_of_their_own(with_old):
    views, labels = clustered_views(360, n_clusters=6, seed=2)
    first = np.flatnonzero((labels < 3) & (np.arange(360) < 240))
    rest = np.setdiff1d(np.arange(360), first)
    model = SAGL(3, random_state=0).fit(views[first])
    new = model.update(views[rest], views[first] if with_old else None)
    found = new.labels_[-len(rest) :]
    assert len(new.update_.new_clusters) == 3
    for k in (3, 4, 5):
        assert len(set(found[labels[rest] == k])) == 1
    assert len(set(found[labels[rest] >= 3])) == 3


def test_predictions_do_not_depend_on_company_and_come_back_from_disk(stream, tmp_path):
    model, views, _, _, rest = stream
    new = model.update(views[rest], ids=[f"r{row}" for row in rest])
    q = new.predict_proba(views)
    assert np.array_equal(new.predict_proba(views[7:8]), q[7:8])
    new.save(tmp_path / "run")
    loaded = SAGL.load(tmp_path / "run")
    assert np.array_equal(loaded.predict_proba(views), q)
    assert loaded.stream_ == new.stream_
    assert loaded.stream_.seen == len(views)
    assert loaded.ids_[0] == f"r{rest[0]}"


def test_partial_fit_is_a_fit_and_then_updates(stream):
    model, views, _labels, first, rest = stream
    grown = SAGL(4, random_state=0).partial_fit(views[first])
    assert np.array_equal(grown.labels_, model.labels_)
    assert grown.partial_fit(views[rest]) is grown
    assert grown.n_clusters_ == 5
    assert len(grown.labels_) == len(rest)
    assert grown.partial_fit(views[rest[:40]]).stream_.updates == 2
    assert grown.update_.new_clusters == ()


def test_what_needs_earlier_samples_says_so(stream):
    model, views, _, first, rest = stream
    new = model.update(views[rest])
    for call in (
        lambda: new.merge(views[rest], 0, 1),
        lambda: new.split(views[rest], 0),
        lambda: new.refit(views[rest], {"wrong": [0]}),
        lambda: new.update(views[first], views[rest]),
    ):
        with pytest.raises(ValueError, match="took in new ones without the earlier"):
            call()
    whole = model.update(views[rest], views[first])
    both = Views({k: np.concatenate([h[first], h[rest]]) for k, h in views.items()})
    assert whole.merge(both, 0, 1).n_clusters_ == 4
    assert whole.layers_


def test_corrections_outlive_an_update(stream):
    model, views, _labels, first, rest = stream
    other = int(model.labels_[0] + 1) % 4
    told = model.refit(views[first], {"labels": {0: other}})
    whole = told.update(views[rest], views[first])
    assert whole.labels_[0] == other
    assert whole.corrections_.labels == ((0, other),)
    known = told.update(views[rest])
    for new in (whole, known):
        assert new.was_corrected(views[first[:2]]).tolist() == [True, False]


def test_no_room_for_all_anchors_keeps_a_share_of_each():
    views, _labels = clustered_views(300, n_clusters=4)
    small = {"rows": 100, "rows_per_cluster": 5}
    model = SAGL(4, random_state=0, search=small).fit(views[:150])
    new = model.update(views[150:])
    assert len(new.anchors_[0]) == 100
    assert new.update_.n_earlier == 50
    assert new.update_.n_new == 50
    assert len(new.labels_) == 150


@pytest.mark.parametrize("n", [1, 5])
def test_too_few_or_other_samples_are_refused(stream, n):
    model, views, _, first, _ = stream
    if n == 1:
        with pytest.raises(ValueError, match="at least two new samples"):
            model.update(views[:1])
        return
    with pytest.raises(ValueError, match="the earlier samples are 5"):
        model.update(views[:10], views[first[:n]])
    with pytest.raises(ValueError, match="3 ids for 10 samples"):
        model.update(views[:10], ids=["a", "b", "c"])


class TestEnergy:
    def test_it_is_the_distance_written_out(self):
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(30, 3)), rng.normal(size=(20, 3)) + 0.5

        def mean(a, b):
            return np.mean([np.linalg.norm(p - q) for p in a for q in b])

        expected = 1 - (mean(x, x) + mean(y, y)) / (2 * mean(x, y))
        found, p = energy(torch.from_numpy(x), torch.from_numpy(y), 0)
        assert found == pytest.approx(expected)
        assert 0 < p <= 1

    def test_p_values_of_samples_alike_are_spread_evenly(self):
        rng = np.random.default_rng(1)
        values = [
            energy(*torch.from_numpy(rng.normal(size=(2, 25, 2))), seed)[1]
            for seed in range(60)
        ]
        assert 0.3 < np.mean(values) < 0.7
        assert np.mean(np.array(values) <= 0.1) < 0.25

    def test_rows_that_are_all_the_same_are_not_apart(self):
        same = torch.ones(10, 3)
        assert energy(same, same, 0) == (0.0, 1.0)
