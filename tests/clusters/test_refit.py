"""Corrected models keep to what they were told, say so, and carry it to others."""

import json

import numpy as np
import pytest

from sagl import SAGL
from sagl.clusters.refit import UnmetWarning
from sagl.evaluation import clustering_accuracy, evaluate
from sagl.schema import checksum
from tests.conftest import clustered_views


@pytest.fixture(scope="module")
def overlapping():
    """Six clusters of which some cannot be told apart well."""
    return clustered_views(240, n_clusters=6, seed=4, spread=3.0)


def test_no_corrections_change_no_bit(fitted, views):
    again = fitted.refit(views, {})
    assert np.array_equal(again.labels_, fitted.labels_)
    assert np.array_equal(again.confidence_, fitted.confidence_)
    assert np.array_equal(again.predict_proba(views), fitted.predict_proba(views))
    assert not hasattr(again, "corrections_")


def test_every_kind_is_kept(fitted, views):
    labels = fitted.labels_
    first = [np.flatnonzero(labels == k) for k in range(4)]
    corrections = {
        "labels": {int(first[0][0]): 1, int(first[1][0]): "odd ones"},
        "must_link": [[int(first[0][1]), int(first[2][1])]],
        "cannot_link": [[int(first[3][0]), int(first[3][1])]],
        "wrong": [int(first[2][5])],
    }
    new = fitted.refit(views, corrections)
    found = new.labels_
    assert found[first[0][0]] == 1
    assert found[first[1][0]] == 4
    assert new.cluster_name(4) == "odd ones"
    assert found[first[0][1]] == found[first[2][1]]
    assert found[first[3][0]] != found[first[3][1]]
    assert found[first[2][5]] != 2
    assert new.corrections_.in_words() == (
        "5 corrections: 2 labels, 1 must-link, 1 cannot-link, 1 marked as wrong"
    )
    assert len(np.unique(new.corrections_.digests)) == 7
    assert ((new.confidence_ >= 0) & (new.confidence_ <= 1)).all()


def test_merge_and_split_with_names_that_stay(fitted, views):
    named = fitted.refit(views, {}).rename({0: "zero", 2: "two", 3: "three"})
    merged = named.refit(views, {"merge": [["zero", 1]]})
    assert np.array_equal(merged.labels_, np.array([0, 0, 1, 2])[fitted.labels_])
    assert merged.names_ == {0: "zero", 1: "two", 2: "three"}
    back = merged.refit(views, {"split": ["zero"]})
    assert back.n_clusters_ == 4
    assert clustering_accuracy(fitted.labels_, back.labels_) > 0.99
    assert back.names_ == {0: "zero 1", 1: "two", 2: "three", 3: "zero 2"}
    assert back.corrections_.given["merge"] == back.corrections_.given["split"] == 1


def test_a_few_labels_undo_a_mistake(overlapping):
    """What was merged by hand comes apart by some labels of the one part."""
    views, _ = overlapping
    model = SAGL(6, random_state=0).fit(views)
    merged = model.merge(views, 0, 1)
    part = np.flatnonzero(model.labels_ == 1)
    told = {int(row): "the other" for row in part[:6]}
    new = merged.refit(views, {"labels": told})
    assert new.n_clusters_ == 6
    rest = np.setdiff1d(part, part[:6])
    inside = new.labels_[rest] == 5
    outside = new.labels_[model.labels_ == 0] == 5
    assert inside.mean() > 0.6
    assert outside.mean() < 0.2


def test_pairs_that_cannot_all_be_apart_are_counted(fitted, views):
    group = [int(row) for row in np.flatnonzero(fitted.labels_ == 0)[:6]]
    with pytest.warns(UnmetWarning, match="of 15 pairs"):
        new = fitted.refit(views, {"cannot_link": [group]})
    assert new.corrections_.unmet >= 2
    assert len(np.unique(new.labels_[group])) == 4
    assert "not kept" in new.corrections_.in_words()


def test_what_was_said_before_still_holds(fitted, views):
    row, other = (int(np.flatnonzero(fitted.labels_ == k)[0]) for k in (0, 1))
    once = fitted.refit(views, {"labels": {row: 2}})
    twice = once.refit(views, {"labels": {other: 3}, "merge": [[0, 1]]})
    assert twice.labels_[row] == 1  # was 2
    assert twice.labels_[other] == 2
    assert twice.corrections_.given["labels"] == 2
    again = twice.refit(views, {"labels": {row: 0}})
    assert again.labels_[row] == 0


def test_edits_keep_corrected_samples_where_they_were_put(fitted, views):
    row = int(np.flatnonzero(fitted.labels_ == 0)[0])
    corrected = fitted.refit(views, {"labels": {row: 2}})
    merged = corrected.merge(views, 1, 2)
    assert merged.labels_[row] == 1
    assert merged.corrections_.labels == ((row, 1),)
    split = corrected.split(views, 2)
    assert split.labels_[row] in (2, 4)


def test_samples_beyond_the_search_are_corrected_too(views):
    small = {"rows": 60, "rows_per_cluster": 5}
    model = SAGL(4, random_state=0, search=small).fit(views)
    assert len(model.anchors_[0]) == 60
    seen = model.refit(views, {"labels": dict.fromkeys(range(20), 0)})
    assert (seen.labels_[:20] == 0).all()
    assert len(seen.anchors_[0]) == 60
    assert seen.merge(views, 0, 1).n_clusters_ == 3


def test_it_comes_back_from_disk_and_predicts_alone(fitted, views, tmp_path):
    new = fitted.refit(views, {"labels": {3: 1, 4: 2}, "cannot_link": [[5, 6]]})
    new.save(tmp_path / "run")
    loaded = SAGL.load(tmp_path / "run")
    assert loaded.corrections_ == new.corrections_
    assert np.array_equal(loaded.labels_, new.labels_)
    others = clustered_views(70, seed=3)[0]
    q = new.predict_proba(others)
    assert np.array_equal(loaded.predict_proba(others), q)
    assert np.array_equal(new.predict_proba(others[5:6]), q[5:6])
    again = loaded.refit(views, {"labels": {9: 0}})
    assert again.labels_[9] == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("labels", [[999, 0]]),
        ("labels", [[0, 4]]),
        ("wrong", [[0]]),
        ("must_link", [[0, -1]]),
        ("given", {}),
        ("moved", "many"),
    ],
)
def test_damaged_corrections_of_a_run_are_refused(corrected_run, name, value):
    path = corrected_run / "config.json"
    content = json.loads(path.read_text())
    del content["checksum"]
    content["corrections"][name] = value
    path.write_text(json.dumps(content | {"checksum": checksum(content)}))
    with pytest.raises(ValueError, match=f"corrections.{name}"):
        SAGL.load(corrected_run)


@pytest.fixture(scope="module")
def corrected(fitted, views):
    return fitted.refit(views, {"labels": {3: 1}})


@pytest.fixture
def corrected_run(corrected, tmp_path):
    corrected.save(tmp_path / "run")
    return tmp_path / "run"


def test_scores_leave_corrected_samples_out(fitted, views, labels):
    row = int(np.flatnonzero(labels == 2)[0])
    new = fitted.refit(views, {"labels": {row: int(fitted.labels_[row])}})
    rest = np.delete(np.arange(240), row)
    scores = evaluate(new, views, labels)
    assert scores["n_left_out"] == 1
    assert scores["acc"] == clustering_accuracy(labels[rest], new.predict(views[rest]))
    # It is known by its features, wherever it stands.
    assert new.was_corrected(views[[4, row, 11]]).tolist() == [False, True, False]
    others, truth = clustered_views(70, seed=3)
    assert "n_left_out" not in evaluate(new, others, truth)
    for protocol in ("transductive", "batch"):
        assert evaluate(new, views, labels, protocol)["n_left_out"] == 1
    with pytest.raises(ValueError, match="nothing to score"):
        evaluate(new, views[[row]], labels[[row]])


@pytest.mark.parametrize(
    ("corrections", "error"),
    [
        ({"labels": {0: 7}}, "no cluster 7"),
        ({"split": [0], "merge": [[0, 1]]}, "both to be merged and to be split"),
    ],
)
def test_what_cannot_be_is_refused(fitted, views, corrections, error):
    with pytest.raises(ValueError, match=error):
        fitted.refit(views, corrections)


def test_other_samples_are_refused(fitted, views):
    with pytest.raises(ValueError, match="50 samples, but the model was fitted on 240"):
        fitted.refit(views[:50], {"labels": {0: 1}})


def test_a_network_without_a_search_is_refused(views):
    model = SAGL(4, recipe="paper", steps=5, random_state=0).fit(views)
    with pytest.raises(ValueError, match="refine=True"):
        model.refit(views, {"labels": {0: 1}})
