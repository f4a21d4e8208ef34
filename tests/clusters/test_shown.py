"""How models look: another line once they are fitted, and HTML that runs nothing."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sagl import SAGL
from sagl.clusters.shown import sentence
from tests.report.pages import HOSTILE, Page


@pytest.fixture
def named(fitted):
    return SAGL(4)._other(fitted._model).rename({0: HOSTILE[0]})


def test_a_fitted_model_says_what_it_found(fitted):
    found = "240 samples in 4 clusters, seen through 2 views: wide and narrow"
    before = repr(clone(fitted))
    assert before.startswith("SAGL(n_clusters=4, random_state=0")
    assert repr(fitted) == f"<{before}: {found}>"
    pipeline = make_pipeline(StandardScaler(), SAGL("auto"))
    assert "SAGL(n_clusters='auto')" in repr(pipeline)


def test_a_notebook_shows_parameters_before_a_fit_and_clusters_after(fitted):
    before = clone(fitted)._repr_mimebundle_()["text/html"]
    after = fitted._repr_mimebundle_()["text/html"]
    assert "sk-top-container" in before
    assert "n_clusters" in before
    assert "sk-top-container" in after
    found = [row for row in fitted.clusters()]
    for cluster in found:
        assert cluster.name in after
        assert cluster.name not in before
    assert fitted._repr_html_() == after or "240 samples in 4" in fitted._repr_html_()
    with config_context(display="text"):
        assert not hasattr(fitted, "_repr_html_")
        assert "text/html" not in fitted._repr_mimebundle_()


def test_names_are_text(fitted):
    model = SAGL.__new__(SAGL)
    model.__dict__.update(fitted.__dict__)
    model.__dict__["_model"] = fitted._model
    names = dict(fitted._model.names)
    try:
        html = model.rename({0: HOSTILE[1]})._repr_mimebundle_()["text/html"]
    finally:
        fitted._model.names = names
    assert "<img" not in html
    assert HOSTILE[1] in Page(html).text


def test_many_clusters_are_cut_short(fitted):
    assert sentence(np.array([3]), ["one"]) == (
        "1 sample in 1 cluster, seen through 1 view: one."
    )
