"""Measures of a sparse graph."""

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from sagl.evaluation import graphs as module
from sagl.evaluation.graphs import entries, sparsity_ratio, weight_inside


def some_graph(n=50, density=0.1, seed=0):
    return random_array(
        (n, n), density=density, format="csr", rng=np.random.default_rng(seed)
    )


@pytest.mark.parametrize("chunk", [1, 3, 7, 1000])
def test_entries_are_those_of_the_matrix(monkeypatch, chunk):
    monkeypatch.setattr(module, "_CHUNK", chunk)
    full = some_graph().toarray()
    full[[0, 7]] = 0  # empty rows, at the start and elsewhere
    graph = csr_array(full)
    dense = np.zeros(graph.shape)
    for rows, columns, weights in entries(graph):
        assert len(weights) <= chunk
        dense[rows, columns] += weights
    np.testing.assert_array_equal(dense, graph.toarray())


def test_weight_inside_equals_the_dense_sum():
    graph = some_graph()
    labels = np.random.default_rng(1).integers(0, 4, 50)
    same = labels[:, None] == labels
    dense = graph.toarray()
    expected = dense[same].sum() / dense.sum()
    assert weight_inside(graph, labels) == pytest.approx(expected)
    assert weight_inside(graph, np.zeros(50, dtype=int)) == pytest.approx(1)
    assert weight_inside(csr_array((3, 3)), [0, 1, 2]) == 0


def test_stored_zeros_are_no_links():
    graph = csr_array(([0.0, 1.0], ([0, 1], [1, 1])), shape=(2, 2))
    assert sparsity_ratio(graph) == 0.25


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="ndarray; give a SciPy sparse matrix"):
        sparsity_ratio(np.eye(3))
    with pytest.raises(ValueError, match=r"shape \(2, 3\)"):
        sparsity_ratio(csr_array((2, 3)))
    with pytest.raises(ValueError, match="2 labels for a graph of 3 samples"):
        weight_inside(csr_array(np.eye(3)), [0, 1])
