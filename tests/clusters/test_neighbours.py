"""Whom samples attend to, as the obvious computation has it."""

from pathlib import Path

import numpy as np
import pytest
import torch

from sagl import SAGL, Views
from sagl.clusters.neighbours import rows_of_anchors
from sagl.nn.inference import anchor_features
from tests.conftest import clustered_views

PAPER = {"recipe": "paper", "steps": 20, "normalize": "standard", "random_state": 3}
RECIPES = [
    None,  # the default, fitted for all tests of this package
    {"steps": 20, "n_anchors": 50, "random_state": 3},
    PAPER,
    {**PAPER, "graph": "dense", "n_anchors": 30},
]


@pytest.fixture(scope="module", params=RECIPES, ids=str)
def model(request, fitted, views):
    return fitted if request.param is None else SAGL(4, **request.param).fit(views)


@pytest.fixture(scope="module")
def new():
    return clustered_views(70, seed=5, spread=1.0)[0]


def attended(model, views):
    features = [torch.from_numpy(h) for h in views.take(np.arange(len(views)))]
    return model._model.predictor.attended(features).numpy()


def test_anchors_are_these_samples(model, views):
    check_anchors(model, views)


def test_anchors_stay_known_when_a_model_is_changed(fitted, views, new):
    check_anchors(fitted.refit(views, {"labels": {7: 1, 30: 2}}), views)
    arrays = {name: np.concatenate([views[name], new[name]]) for name in views.names}
    check_anchors(fitted.update(new, old=views), Views(arrays))
    with pytest.raises(ValueError, match="naming neighbours needs all samples"):
        fitted.update(new).neighbours(new)


def check_anchors(model, views):
    features = [torch.from_numpy(h) for h in views.take(rows_of_anchors(model._model))]
    for ours, theirs in zip(
        model.anchors_, anchor_features(model.network_, features), strict=True
    ):
        assert torch.equal(ours, theirs)


def test_weights_are_those_of_the_prediction(model, new):
    """Taken out of what a network with heads says, the heads alone are left."""
    A = attended(model, new)
    assert (A >= 0).all()
    if model.anchor_labels_ is None:
        assert (A.sum(axis=1) <= 1 + 1e-9).all()
        assert A.sum(axis=1).min() < 1, "the rest is what a sample attends to itself"
        return
    np.testing.assert_allclose(A.sum(axis=1), 1)
    votes = np.eye(4)[model.anchor_labels_.numpy()]
    weight = model.network_.graph_weight
    expected = model.transform(new)[:, :4] - float(weight) * A @ votes
    kept = weight.clone()
    weight.fill_(0)
    try:
        np.testing.assert_allclose(model.transform(new)[:, :4], expected, atol=1e-6)
    finally:
        weight.copy_(kept)


def test_the_largest_weights_come_first_whatever_the_company(model, new):
    rows, A = rows_of_anchors(model._model), attended(model, new)
    found = model.neighbours(new, 4)
    for i, near in enumerate(found):
        expected = np.sort(A[i])[::-1][:4]
        assert [one.weight for one in near] == expected[expected > 0].tolist()
        for one in near:
            assert A[i, rows == one.sample] == [one.weight]
            assert one.cluster == model.labels_[one.sample]
    assert model.neighbours(new[40:41], 4) == found[40:41]
    assert model.neighbours(new[::-1], 4) == found[::-1]


def test_a_sample_attends_to_its_like(fitted, views):
    for label, near in zip(fitted.labels_, fitted.neighbours(views), strict=True):
        assert 1 <= len(near) <= 5
        assert {one.cluster for one in near} == {label}


def test_samples_are_called_by_their_ids(fitted, new, tmp_path):
    fitted.save(tmp_path / "run", ids=[f"sample {i}" for i in range(240)])
    loaded = SAGL.load(tmp_path / "run")
    for ours, theirs in zip(
        fitted.neighbours(new), loaded.neighbours(new), strict=True
    ):
        assert [one._replace(sample=f"sample {one.sample}") for one in ours] == theirs


def test_no_graph_no_neighbours(views):
    model = SAGL(4, **PAPER, graph="identity").fit(views)
    assert model.neighbours(views[:3]) == [[], [], []]


@pytest.mark.parametrize("n", [0, -1, 1.5, True])
def test_a_number_that_cannot_be(fitted, new, n):
    with pytest.raises(ValueError, match="n must be a whole number of at least 1"):
        fitted.neighbours(new, n)


def test_a_model_with_other_clusters_keeps_its_anchors(fitted, views):
    merged = fitted.merge(views, 0, 1)
    assert (rows_of_anchors(merged._model) == rows_of_anchors(fitted._model)).all()
    near = [one for row in merged.neighbours(views) for one in row]
    assert {one.cluster for one in near} <= {0, 1, 2}


def test_runs_of_before_do_not_say_which_samples():
    old = SAGL.load(Path(__file__).parents[1] / "data" / "run-0.1")
    sizes = zip(old.view_names_, old.view_widths_, strict=True)
    new = {name: np.zeros((2, width), dtype=np.float32) for name, width in sizes}
    with pytest.raises(ValueError, match="does not say which samples its anchors are"):
        old.neighbours(new)
