"""Collecting what is known about a run: complete, and only its own."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, save_npz

from sagl import SAGL
from sagl.report.inputs import Inputs
from sagl.report.run_data import attended, collect, describe_clusters, weight_between
from sagl.run import ALL_VIEWS
from sagl.views import Views
from tests.conftest import clustered_views
from tests.report.pages import random_graph
from tests.runs import enter_parts


def numbered(n):
    return [str(row) for row in range(n)]


def test_everything_from_views(small_data, small_run):
    model = SAGL.load(small_run)
    views, _ = clustered_views()
    n = len(views)
    assert list(small_data.graphs) == ["wide", "narrow"]
    for graph, expected in zip(
        small_data.graphs.values(), model.attention_graph(views), strict=True
    ):
        assert (graph != expected).nnz == 0
    np.testing.assert_allclose(small_data.graph.sum(axis=1), 1, atol=1e-5)
    assert len(small_data.layout.points) == n
    assert sum(cluster.size for cluster in small_data.clusters) == n


def test_how_often_views_choose_alike(tmp_path):
    views, _ = clustered_views(spread=2.0)
    model = SAGL(4, recipe="paper", steps=30, random_state=0).fit(views)
    model.save(tmp_path / "run")
    wide, narrow = np.split(model.transform(views), 2, axis=1)
    alike = np.mean(wide.argmax(axis=1) == narrow.argmax(axis=1))
    assert 0.05 < alike < 0.95
    data = collect(tmp_path / "run", Inputs(numbered(len(views)), views))
    assert data.view_agreement == alike


def test_a_run_alone_uses_its_graph(small_run):
    data = collect(small_run, Inputs(numbered(240)))
    assert list(data.graphs) == [ALL_VIEWS]
    assert data.view_agreement is None


def test_a_run_without_graph(small_run, tmp_path):
    SAGL.load(small_run).save(tmp_path / "run")
    data = collect(tmp_path / "run", Inputs(numbered(240)))
    assert data.graphs == {}
    assert data.graph is None
    assert data.clusters[0].neighbours == []


def test_views_of_other_samples_are_refused(small_run):
    views, _ = clustered_views()
    shuffled = views[np.random.default_rng(0).permutation(240)]
    with pytest.raises(ValueError, match=r"not those that .* was fitted on"):
        collect(small_run, Inputs(numbered(240), shuffled))
    with pytest.raises(ValueError, match=r"100 samples, but .* was fitted on 240"):
        collect(small_run, Inputs(numbered(240), views[:100]))


def test_clusters_that_votes_decide_are_those_of_the_run(tmp_path):
    data = Path(__file__).parents[1] / "data"
    with np.load(data / "run-0.1-answers.npz") as kept:
        views = Views({name: kept[name] for name in ("a", "b")})
    model = SAGL.load(data / "run-0.1")  # older runs have voters
    voters = model.voters_
    loud = voters._replace(labels=(voters.labels + 1) % 8, weight=1000.0)
    predicted = []
    for votes in (None, loud):
        model._take(replace(model._model, voters=votes))
        predicted.append(model.predict_with_confidence(views))
    labels, confidence = predicted[1]
    model._take(replace(model._model, labels=labels, confidence=confidence))
    assert (model.labels_ != predicted[0][0]).mean() > 0.5
    model.save(tmp_path / "voted")
    collected = collect(tmp_path / "voted", Inputs(numbered(len(views)), views))
    assert 0 <= collected.view_agreement <= 1


def test_a_foreign_graph_is_refused(small_run, tmp_path):
    run = tmp_path / "run"
    SAGL.load(small_run).save(run)
    save_npz(run / "graph.npz", random_graph(10, 2))
    with pytest.raises(ValueError, match=r"graph\.npz is not of this run"):
        collect(run, Inputs(numbered(240)))
    enter_parts(run)
    with pytest.raises(ValueError, match=r"shape \(10, 10\) and the run 240 samples"):
        collect(run, Inputs(numbered(240)))
    (run / "graph.npz").write_bytes(b"nothing")
    enter_parts(run)
    with pytest.raises(ValueError, match="damaged"):
        collect(run, Inputs(numbered(240)))


@given(st.integers(0, 1000), st.integers(2, 30), st.integers(1, 5))
def test_weights_between_clusters_equal_a_loop(seed, n, n_clusters):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_clusters, n)
    graph = random_graph(n, 3, seed)
    sizes = np.bincount(labels, minlength=n_clusters)
    dense = graph.toarray()
    expected = np.zeros((n_clusters, n_clusters))
    received = np.zeros(n)
    for i in range(n):
        for j in range(n):
            expected[labels[i], labels[j]] += dense[i, j]
            if i != j and labels[i] == labels[j]:
                received[j] += dense[i, j]
    used = sizes > 0
    expected[used] /= expected[used].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(weight_between(graph, labels, n_clusters), expected)
    np.testing.assert_allclose(attended(graph, labels), received, atol=1e-12)


def test_examples_are_the_surest_and_the_least_sure():
    labels = np.array([0] * 10 + [2] * 3)
    confidence = np.array([0.9, 0.1, 0.8, 0.2, 0.7, 0.3, 0.6, 0.4, 0.5, 0.55, 1, 1, 1])
    first, empty, last, _ = describe_clusters(labels, confidence, 4, examples=3)
    assert (first.number, first.size) == (0, 10)
    assert first.typical == [0, 2, 4]
    assert first.doubtful == [1, 3, 5]
    assert first.confidence == np.mean(confidence[:10])
    assert (empty.number, empty.size, empty.typical) == (1, 0, [])
    # A small cluster shows no sample twice.
    assert (last.number, last.size) == (2, 3)
    assert sorted([*last.typical, *last.doubtful]) == [10, 11, 12]


def test_among_the_sure_the_graph_decides():
    labels = np.zeros(5, dtype=int)
    graph = random_graph(5, 1).toarray() * 0
    graph[:, 3] = 1.0  # all attend to sample 3
    [cluster] = describe_clusters(labels, np.full(5, 0.991), 1, csr_matrix(graph), 2)
    assert cluster.typical[0] == 3


def test_neighbours_are_other_clusters_by_weight():
    labels = np.repeat([0, 1, 2], 4)
    graph = np.kron([[0.7, 0.1, 0.2], [0, 1, 0], [0.5, 0, 0.5]], np.full((4, 4), 0.25))
    clusters = describe_clusters(labels, np.ones(12), 3, csr_matrix(graph))
    assert [k for k, _ in clusters[0].neighbours] == [2, 1]
    np.testing.assert_allclose([s for _, s in clusters[0].neighbours], [0.2, 0.1])
    assert clusters[1].neighbours == []
