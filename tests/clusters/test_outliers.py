"""Outlier scores and the views' disagreement, of one sample at a time."""

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from sagl import SAGL, Views
from sagl.nn.network import Network
from tests.conftest import QUICK, clustered_views


@pytest.fixture(scope="module")
def strange():
    """Samples of two clusters that nobody was fitted on, after those that are known."""
    rng = np.random.default_rng(9)
    known = clustered_views()[0]  # the clusters of the fit
    mixed = {}
    for name, h in known.items():
        centres = 2 * rng.normal(size=(2, h.shape[1]))
        new = centres.repeat(10, axis=0) + 0.5 * rng.normal(size=(20, h.shape[1]))
        mixed[name] = np.concatenate([h, new]).astype(np.float32)
    return Views(mixed)


def test_what_was_not_there_is_further_away(fitted, strange):
    scores = fitted.outliers(strange)
    assert roc_auc_score(np.arange(260) >= 240, scores) > 0.95
    assert (scores >= 0).all()
    assert (scores <= 2).all()


@pytest.mark.parametrize("what", ["outliers", "disagreement"])
def test_the_same_bits_in_any_company(fitted, strange, what):
    ask = getattr(fitted, what)
    together = ask(strange)
    for row in (0, 7, 250):
        assert ask(strange[row : row + 1])[0] == together[row]
    order = np.random.default_rng(0).permutation(260)[:37]
    assert np.array_equal(ask(strange[order]), together[order])


def test_training_samples_are_not_their_own_neighbours(fitted, views):
    """Asked again they get the same; and a little noise changes little."""
    assert np.array_equal(fitted.outliers(views), fitted.outliers())
    rng = np.random.default_rng(0)
    near = Views(
        {k: h + 0.01 * rng.normal(size=h.shape).astype("f4") for k, h in views.items()}
    )
    moved = fitted.outliers(near)
    # A sample that is itself no anchor has its former self for a neighbour.
    assert np.corrcoef(moved, fitted.outliers())[0, 1] > 0.9


def test_the_score_slowly(fitted, views):
    others = clustered_views(20, seed=5)[0]
    cosines = 0
    for view, h, z, share in zip(
        fitted.network_.view_networks,
        others.take(np.arange(20)),
        fitted.anchors_,
        fitted.view_weights_,
        strict=True,
    ):
        new = view.encoder(view.encoder.standardize(torch.from_numpy(h))).detach()
        new = new / new.norm(dim=1, keepdim=True)
        cosines = cosines + share * new @ (z / z.norm(dim=1, keepdim=True)).T
    nearest = np.sort(cosines.numpy(), axis=1)[:, -5:]
    expected = 1 - nearest.mean(axis=1)
    np.testing.assert_allclose(fitted.outliers(others), expected, atol=1e-5)


def test_views_that_say_something_else_disagree(fitted, views):
    """The second view of another cluster's sample in place of a sample's own."""
    wide, narrow = (h.copy() for h in views.take(np.arange(240)))
    k = fitted.labels_
    swapped = [0, 1, 2]
    for row in swapped:
        narrow[row] = views["narrow"][np.flatnonzero(k != k[row])[0]]
    mixed = fitted.disagreement({"wide": wide, "narrow": narrow})
    assert mixed[swapped].min() > np.quantile(mixed[3:], 0.95)
    assert (mixed >= 0).all()
    assert (mixed <= 1).all()


def test_one_view_agrees_with_itself(views):
    model = SAGL(4, search=QUICK, random_state=0).fit({"wide": views["wide"]})
    assert (model.disagreement() == 0).all()


@pytest.mark.parametrize("recipe", ["paper", "network"])
def test_other_recipes_know_it_as_well(views, strange, recipe):
    model = SAGL(4, recipe=recipe, steps=60, random_state=0).fit(views)
    assert isinstance(model.network_, Network)
    assert roc_auc_score(np.arange(260) >= 240, model.outliers(strange)) > 0.8
    assert model.outliers(strange[3:4])[0] == model.outliers(strange)[3]
