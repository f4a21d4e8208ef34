"""What is said about clusters, against slow and obvious versions of it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sagl.report.clusters import attended, describe_clusters, weight_between
from tests.report.pages import random_graph


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
    np.testing.assert_allclose(weight_between(graph, labels, sizes), expected)
    np.testing.assert_allclose(attended(graph, labels), received, atol=1e-12)


def test_examples_are_the_surest_and_the_least_sure():
    labels = np.array([0] * 10 + [2] * 3)
    confidence = np.array([0.9, 0.1, 0.8, 0.2, 0.7, 0.3, 0.6, 0.4, 0.5, 0.55, 1, 1, 1])
    first, last = describe_clusters(labels, confidence, 4, examples=3)
    assert (first.number, first.size) == (0, 10)
    assert first.typical.tolist() == [0, 2, 4]
    assert first.doubtful.tolist() == [1, 3, 5]
    assert first.confidence == np.mean(confidence[:10])
    # A small cluster shows no sample twice.
    assert (last.number, last.size) == (2, 3)
    assert sorted([*last.typical, *last.doubtful]) == [10, 11, 12]


def test_among_the_sure_the_graph_decides():
    labels = np.zeros(5, dtype=int)
    graph = random_graph(5, 1).toarray() * 0
    graph[:, 3] = 1.0  # all attend to sample 3
    from scipy.sparse import csr_matrix

    [cluster] = describe_clusters(labels, np.full(5, 0.991), 1, csr_matrix(graph), 2)
    assert cluster.typical[0] == 3


def test_neighbours_are_other_clusters_by_weight():
    labels = np.repeat([0, 1, 2], 4)
    graph = np.kron([[0.7, 0.1, 0.2], [0, 1, 0], [0.5, 0, 0.5]], np.full((4, 4), 0.25))
    from scipy.sparse import csr_matrix

    clusters = describe_clusters(labels, np.ones(12), 3, csr_matrix(graph))
    assert [k for k, _ in clusters[0].neighbours] == [2, 1]
    np.testing.assert_allclose([s for _, s in clusters[0].neighbours], [0.2, 0.1])
    assert clusters[1].neighbours == ()
