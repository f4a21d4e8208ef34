"""All that is known of samples comes in one pass, as if each were asked for alone."""

import numpy as np
import pytest

from sagl import SAGL
from sagl.clusters.layers import leaves_of
from tests.conftest import QUICK, clustered_views


@pytest.fixture(scope="module")
def views():
    return clustered_views(300, 5, seed=2)[0]


@pytest.fixture(scope="module", params=["auto", 60])
def model(views, request):
    quick = SAGL(5, search=QUICK, n_anchors=request.param, random_state=0)
    return quick.fit(views)


def test_labels_and_confidence_are_those_of_predict(model, views):
    labels, confidence = model.predict_with_confidence(views)
    assert np.array_equal(model.labels_, labels)
    assert np.array_equal(model.confidence_, confidence)


def test_halves_are_those_of_a_pass_of_their_own(model, views):
    anchors = model.leaves_.anchors
    alone = leaves_of(model._model, anchors, views, model.labels_)
    assert np.array_equal(model.leaves_.labels, alone)
    assert len(np.unique(alone)) > 5


def test_facts_are_those_of_new_samples(model, views):
    order = np.random.default_rng(0).permutation(len(views))
    assert np.array_equal(model.outliers(views[order]), model.facts_.outlier[order])
    apart = model.disagreement(views[order])
    assert np.array_equal(apart, model.facts_.disagreement[order])


def test_probabilities_between_clusters_are_means_of_their_samples(model, views):
    q = model.predict_proba(views)
    for k in np.unique(model.labels_):
        own = q[model.labels_ == k].mean(axis=0)
        np.testing.assert_allclose(model.facts_.between[k], own, atol=1e-12)
