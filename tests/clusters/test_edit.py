"""Merged and split models predict, save and load like any other."""

import numpy as np
import pytest
import torch

from sagl import SAGL
from sagl.clusters.edit import relabelled
from sagl.evaluation import clustering_accuracy
from tests.conftest import clustered_views


def one_alone(model, views):
    return np.array([model.predict(views[i : i + 1])[0] for i in range(0, 240, 40)])


def test_heads_solved_anew_for_the_same_clusters_are_the_same(fitted, views):
    again = relabelled(fitted._model, views, lambda of: of.labels, {})
    for name, value in fitted.network_.state_dict().items():
        torch.testing.assert_close(
            again.network.state_dict()[name], value, rtol=1e-4, atol=1e-5
        )
    assert np.array_equal(again.labels, fitted.labels_)


def test_merging_puts_together_what_was_apart_and_nothing_else(fitted, views):
    merged = fitted.merge(views, 1, 3)
    assert merged.n_clusters_ == 3
    assert merged.predict_proba(views[:5]).shape == (5, 3)
    wanted = np.array([0, 1, 2, 1])[fitted.labels_]
    assert np.array_equal(merged.labels_, wanted)
    assert np.array_equal(merged.labels_, merged.predict(views))
    assert fitted.n_clusters_ == 4
    assert len(np.unique(fitted.labels_)) == 4


def test_merging_three(fitted, views):
    merged = fitted.merge(views, 3, 0, 1)
    # 2 and 3 remain, 3 has taken in 0 and 1.
    assert np.array_equal(merged.labels_, np.array([1, 1, 0, 1])[fitted.labels_])


def test_splitting_what_was_merged_brings_it_back(fitted, views, labels):
    merged = fitted.merge(views, 0, 2)
    back = merged.split(views, 0)
    assert back.n_clusters_ == 4
    assert clustering_accuracy(labels, back.labels_) > 0.99
    assert set(np.unique(back.labels_[merged.labels_ == 0])) == {0, 3}


@pytest.mark.parametrize("change", ["merge", "split"])
def test_what_was_changed_comes_back_from_disk(fitted, views, tmp_path, change):
    new = fitted.merge(views, 0, 1) if change == "merge" else fitted.split(views, 2)
    new.save(tmp_path / "run")
    loaded = SAGL.load(tmp_path / "run")
    others = clustered_views(70, seed=3)[0]
    assert np.array_equal(loaded.predict_proba(others), new.predict_proba(others))
    assert np.array_equal(loaded.labels_, new.labels_)
    assert np.array_equal(one_alone(loaded, views), new.predict(views)[::40])
    again = loaded.merge(views, 0, 1)
    assert again.n_clusters_ == new.n_clusters_ - 1


def test_a_split_beyond_the_samples_of_the_search_keeps_them(views):
    small = {"rows": 60, "rows_per_cluster": 20}
    model = SAGL(4, random_state=0, search=small, n_anchors=50).fit(views)
    split = model.split(views, 0).split(views, 1)
    assert split.n_clusters_ == 6
    assert len(split.anchors_[0]) == 50
    merged = split.merge(views, 0, 4).merge(views, 1, 4)
    assert clustering_accuracy(model.labels_, merged.labels_) > 0.97


def test_names_follow(fitted, views):
    named = fitted.merge(views, 0, 1)  # a copy of its own
    named.rename({0: "both", 2: "last"})
    merged = named.merge(views, 2, 0)
    assert merged.names_ == {1: "last"}
    split = named.split(views, 0)
    assert split.names_ == {0: "both 1", 2: "last", 3: "both 2"}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda m, v: m.merge(v, 1), "it takes two"),
        (lambda m, v: m.merge(v, 1, 1), "it takes two"),
        (lambda m, v: m.merge(v, 1, 4), "no cluster 4"),
        (lambda m, v: m.merge(v, 0, 1, 2, 3), "at least two clusters must remain"),
        (lambda m, v: m.split(v, -1), "no cluster -1"),
        (lambda m, v: m.merge(v[:50], 0, 1), "fitted on 240"),
    ],
)
def test_what_cannot_be_done_is_refused(fitted, views, change, error):
    with pytest.raises(ValueError, match=error):
        change(fitted, views)


def test_a_network_without_heads_is_refused(views):
    model = SAGL(4, recipe="paper", steps=5, random_state=0).fit(views)
    with pytest.raises(ValueError, match="refine=True"):
        model.merge(views, 0, 1)
