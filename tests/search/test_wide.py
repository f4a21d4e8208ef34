"""What few samples found is annealed once more among many."""

import numpy as np
import pytest
import torch

from sagl import SAGL
from sagl.evaluation import clustering_accuracy
from sagl.pipeline import search_rows
from sagl.search import anneal, wide
from sagl.search.anneal import _leading, reanneal
from sagl.search.space import Space, one_hot
from sagl.search.wide import head_line, widened
from tests.conftest import QUICK, clustered_views
from tests.search.conftest import space_of

N, C = 600, 6
FEW = {**QUICK, "rows": 90, "rows_per_cluster": 1}


@pytest.fixture(scope="module")
def problem():
    """Few of many samples of clusters that overlap, and labels of these that err."""
    views, truth = clustered_views(N, C, spread=2.2)
    rows = np.sort(np.random.default_rng(0).permutation(N)[:90])
    truth = torch.from_numpy(truth)
    labels = truth[rows].clone()
    labels[::6] = (labels[::6] + 1) % C
    every = space_of(views)
    few = Space([x[rows] for x in every.views], 10)
    return few, labels, every, torch.from_numpy(rows), truth


def accuracy(truth, labels):
    return clustering_accuracy(truth.numpy(), labels.numpy())


def test_begins_with_what_regressions_say_and_keeps_what_is_known(problem, monkeypatch):
    few, labels, every, place, _ = problem
    monkeypatch.setattr(wide, "reanneal", lambda space, start, *_, **__: start)
    start = widened(few, labels, every, place, C)
    assert torch.equal(start[place], labels)
    Y = one_hot(labels, C)
    said = torch.zeros(N, C)
    for x, fit in zip(every.views, few.fits, strict=True):
        said += x @ fit.weights(Y - Y.mean(dim=0)) / len(every.views)
    line = head_line(
        sum(fit.left_out(Y - Y.mean(dim=0)) for fit in few.fits) / len(few.fits),
        Y,
        "balanced",
    )
    expected = ((said - line.middle) * line.slope).argmax(dim=1)
    others = torch.ones(N, dtype=torch.bool)
    others[place] = False
    assert torch.equal(start[others], expected[others])


def test_ends_where_annealing_among_all_ends(problem, monkeypatch):
    few, labels, every, place, truth = problem
    with monkeypatch.context() as patch:
        patch.setattr(wide, "reanneal", lambda space, start, *_, **__: start)
        start = widened(few, labels, every, place, C)
    found = widened(few, labels, every, place, C)
    assert torch.equal(found, reanneal(every, start, C))
    assert accuracy(truth, found) > accuracy(truth, start) + 0.02


def test_a_cluster_that_nobody_is_in_gets_nobody_to_begin_with(problem, monkeypatch):
    few, labels, every, place, _ = problem
    monkeypatch.setattr(wide, "reanneal", lambda space, start, *_, **__: start)
    start = widened(few, labels, every, place, C + 1)
    assert (start < C).all()


def test_a_fit_labels_by_more_samples_than_were_searched(problem, monkeypatch):
    views, truth = clustered_views(N, C, spread=2.2)
    model = SAGL(C, search=FEW, random_state=0).fit(views)
    monkeypatch.setattr("sagl.search.config._WIDER", N)
    narrow = SAGL(C, search=FEW, random_state=0).fit(views)
    assert len(model.anchor_labels_) == len(search_rows(N, model.settings_)) == 90
    better = clustering_accuracy(truth, model.labels_)
    assert better > clustering_accuracy(truth, narrow.labels_) + 0.02
    one = model.predict_proba(views[5:6])
    assert np.array_equal(one, model.predict_proba(views)[5:6])


def test_the_longest_directions_of_z_keep_products_of_few_directions():
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(50, 4, generator=generator) @ torch.randn(
        4, 30, generator=generator
    )
    short = _leading(z, 6)
    assert short.shape == (50, 6)
    torch.testing.assert_close(short @ short.T, z @ z.T, rtol=1e-4, atol=1e-3)
    assert _leading(z, 30) is z


def test_of_many_clusters_the_graph_of_z_is_that_of_few_directions(
    problem, monkeypatch
):
    """Where all directions are kept the graph is that of all of z."""
    few, labels, *_ = problem
    Y = one_hot(labels, C)
    said, graph = anneal._with_graph(few, Y - Y.mean(dim=0))
    monkeypatch.setattr(anneal, "_leading", lambda z, _: _leading(_padded(z), C))
    again, narrow = anneal._with_graph(few, Y - Y.mean(dim=0))
    assert torch.equal(said, again)
    torch.testing.assert_close(
        narrow.tensor().to_dense(), graph.tensor().to_dense(), rtol=1e-3, atol=1e-4
    )


def _padded(z):
    return torch.nn.functional.pad(z, (0, 3))
