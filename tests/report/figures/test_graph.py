"""The block-diagonal picture: every weight in its cell, and never a dense matrix."""

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix

from sagl.report.figures import draw_graph
from sagl.report.figures.graph import block_density
from sagl.report.saving import words
from tests.report.figures.looked_at import check


def slow_density(graph, codes, cells):
    """The same from the dense, sorted matrix."""
    n = len(codes)
    order = np.argsort(codes, kind="stable")
    dense = graph.toarray()[np.ix_(order, order)]
    side = min(n, cells)
    cell = np.arange(n) * side // n
    out = np.zeros((side, side))
    for i in range(side):
        for j in range(side):
            out[i, j] = dense[np.ix_(cell == i, cell == j)].mean() * n
    return out


def blocks(n, n_clusters, neighbours=10, seed=0):
    """A graph whose rows stay in their cluster nine times out of ten."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_clusters, n)
    order = np.argsort(labels, kind="stable")
    start = np.searchsorted(labels[order], np.arange(n_clusters))
    size = np.bincount(labels, minlength=n_clusters)
    picks = rng.random((n, neighbours))
    own = labels[:, None]
    inside = order[start[own] + (picks * size[own]).astype(int)]
    columns = np.where(
        rng.random((n, neighbours)) < 0.9, inside, (picks * n).astype(int)
    )
    indptr = np.arange(0, n * neighbours + 1, neighbours)
    weights = np.full(n * neighbours, 1 / neighbours, dtype=np.float32)
    return csr_array((weights, columns.ravel(), indptr), shape=(n, n)), labels


@pytest.mark.parametrize(("n", "cells"), [(20, 360), (53, 10), (100, 7), (7, 7)])
def test_cells_hold_the_weights(n, cells):
    rng = np.random.default_rng(n)
    graph = csr_array(rng.random((n, n)) * (rng.random((n, n)) < 0.2))
    codes = rng.integers(0, 4, n)
    np.testing.assert_allclose(
        block_density(graph, codes, cells), slow_density(graph, codes, cells)
    )


def test_the_picture_shows_the_cells_and_the_clusters(tmp_path):
    graph, labels = blocks(600, 5)
    ax = draw_graph(graph, labels, name="dino")
    [image] = ax.images
    density = block_density(graph, labels)
    shown = image.get_array()
    np.testing.assert_array_equal(shown.filled(0), density)
    assert shown.mask.sum() == (density == 0).sum()
    sizes = np.bincount(labels)
    middles = np.cumsum(sizes) - sizes / 2
    np.testing.assert_allclose(ax.get_yticks(), middles)
    assert [t.get_text() for t in ax.get_xticklabels()] == list("01234")
    assert ax.get_title() == "Graph of dino"
    same = labels[:, None] == labels
    inside = graph.toarray()[same].sum() / graph.sum()
    assert f"{inside:.1%} of the weight stays inside" in words(ax).caption
    check(ax, tmp_path)


@pytest.mark.parametrize(
    ("n", "n_clusters"), [(1, 1), (4, 4), (100, 2), (2000, 37), (5000, 1000)]
)
def test_legible_at_many_sizes(n, n_clusters):
    graph, labels = blocks(n, n_clusters, neighbours=min(n, 5))
    check(draw_graph(graph, labels))


def test_a_graph_of_many_rows_is_never_dense():
    n = 200_000  # dense: 160 GB
    graph, labels = blocks(n, 100, neighbours=10)
    tracemalloc.start()
    ax = draw_graph(graph, labels)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 400e6
    density = ax.images[0].get_array()
    assert density.shape == (360, 360)
    on = density.diagonal().mean()
    assert on > 20 * np.ma.filled(density, 0).mean()
    check(ax)


def test_an_empty_graph_and_one_without_weights():
    check(draw_graph(csr_matrix((5, 5)), [0, 0, 1, 1, 1]))


def test_names_of_classes():
    graph, labels = blocks(200, 3)
    names = np.array(["a long class name, really", "$b$", "c"])[labels]
    ax = draw_graph(graph, names)
    assert {t.get_text() for t in ax.get_yticklabels()} == {
        "a long class…",
        "$b$",
        "c",
    }
    check(ax)


def test_bad_input_is_refused():
    graph, labels = blocks(50, 3)
    with pytest.raises(ValueError, match="49 labels for a graph of 50 samples"):
        draw_graph(graph, labels[1:])
    with pytest.raises(ValueError, match="give a SciPy sparse matrix"):
        draw_graph(graph.toarray(), labels)
    with pytest.raises(ValueError, match=r"shape \(50, 20\)"):
        draw_graph(graph[:, :20], labels)
