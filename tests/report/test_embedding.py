"""Where points go: fair samples, the same result twice, room for every sample."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import block_diag
from sklearn.neighbors import NearestNeighbors

from sagl import SAGL
from sagl.report.embedding import (
    LEVELS,
    discs,
    embed,
    graph_features,
    lay_out,
    lay_out_views,
    stratified_rows,
    three_levels,
)
from tests.conftest import QUICK, clustered_views
from tests.report.pages import random_graph

pytest.importorskip("openTSNE", reason="needs the extra report")


def blobs(n, n_clusters=4, width=10, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % n_clusters
    return 8 * rng.normal(size=(n_clusters, width))[labels] + rng.normal(
        size=(n, width)
    ), labels


def neighbours_share_label(points, labels, k=5):
    _, neighbours = NearestNeighbors(n_neighbors=k + 1).fit(points).kneighbors(points)
    return (labels[neighbours[:, 1:]] == labels[:, None]).mean()


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=300),
    st.integers(1, 100),
    st.integers(0, 5),
)
@settings(deadline=None)
def test_a_stratified_sample_takes_shares(labels, size, seed):
    labels = np.array(labels)
    rows = stratified_rows(labels, size, seed)
    assert len(rows) == min(size, len(labels))
    assert (np.diff(rows) > 0).all()
    counts = np.bincount(labels, minlength=7)
    taken = np.bincount(labels[rows], minlength=7)
    if size >= (counts > 0).sum():
        assert (taken[counts > 0] > 0).all()  # no cluster disappears
    expected = counts * len(rows) / len(labels)
    assert (np.abs(taken - expected) <= (counts > 0).sum() + 1).all()


def test_a_sample_depends_on_the_seed_alone():
    labels = np.random.default_rng(0).integers(0, 5, 1000)
    a, b, c = (stratified_rows(labels, 100, seed) for seed in (1, 1, 2))
    assert (a == b).all()
    assert (a != c).any()


def test_tsne_keeps_neighbours_and_repeats():
    X, labels = blobs(200)
    points = embed(X, seed=3)
    assert points.shape == (200, 2)
    assert neighbours_share_label(points, labels) > 0.99
    assert (points == embed(X, seed=3)).all()


def test_every_sample_gets_a_place_among_its_like():
    X, labels = blobs(3000)
    points = embed(X, labels, sample=300, seed=0)
    assert points.shape == (3000, 2)
    assert np.isfinite(points).all()
    assert neighbours_share_label(points, labels) > 0.99
    rows = stratified_rows(labels, 300, 0)
    others = np.setdiff1d(np.arange(3000), rows)
    spread = np.ptp(points[rows], axis=0)
    assert (np.ptp(points[others], axis=0) < 1.3 * spread).all()  # none flies off
    assert len(np.unique(points.round(6), axis=0)) > 2900  # nor do they pile up
    assert (points == embed(X, labels, sample=300, seed=0)).all()


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((1, 3)),
        np.ones((30, 3)),
        np.arange(5.0)[:, None],
        np.arange(40.0)[:, None],
        np.repeat(np.eye(3), 20, axis=0),
        np.random.default_rng(0).normal(size=(13, 80)),
    ],
    ids=["one", "constant", "few", "one column", "duplicates", "wide"],
)
def test_odd_shapes_still_get_finite_places(X):
    for points in (embed(X), embed(X, sample=12)):
        assert points.shape == (len(X), 2)
        assert np.isfinite(points).all()


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros(3), "Expected 2D array"),
        (np.zeros((0, 2)), "0 sample"),
        (np.array([[0.0, 1], [np.nan, 1]]), "contains NaN"),
    ],
)
def test_bad_features_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        embed(X)
    with pytest.raises(ValueError, match="size of at least 1"):
        stratified_rows([0, 1], 0)


def test_three_levels_are_those_of_the_model():
    views, _ = clustered_views(120)
    model = SAGL(4, steps=20, search=QUICK, random_state=0).fit(views)
    rows = np.array([5, 2, 80])
    levels = three_levels(model, views, rows)
    assert list(levels) == ["wide", "narrow"]
    chosen = views[np.sort(rows)]
    p = model.transform(chosen)
    for i, (name, features) in enumerate(levels.items()):
        assert list(features) == list(LEVELS)
        original, linear, final = features.values()
        np.testing.assert_array_equal(original, chosen[name])
        np.testing.assert_array_equal(final, p[:, 4 * i : 4 * i + 4])
        encoder = model.network_.view_networks[i].encoder
        import torch

        with torch.no_grad():
            z = encoder(encoder.standardize(torch.from_numpy(chosen[name])))
        np.testing.assert_allclose(linear, z.numpy(), atol=1e-4)


def separation(points, labels):
    """Distances between centres over those inside clusters."""
    centres = np.stack([points[labels == k].mean(axis=0) for k in np.unique(labels)])
    inside = np.linalg.norm(points - centres[labels], axis=1).mean()
    apart = np.linalg.norm(centres[:, None] - centres[None], axis=2)
    return apart[~np.eye(len(centres), dtype=bool)].min() / inside


def test_discs_are_apart_and_sure_samples_in_the_middle():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2, 3, 4], [400, 100, 100, 10, 1])
    confidence = rng.random(len(labels))
    points = discs(labels, confidence)
    for k in range(5):
        own = points[labels == k]
        centre = own[confidence[labels == k].argmax()]
        radius = np.linalg.norm(own - centre, axis=1)
        # The area is in proportion to the size: so is the square of the radius.
        assert radius.max() <= 1.25 * np.sqrt((labels == k).sum() / 400)
        others = np.linalg.norm(points[labels != k] - centre, axis=1)
        assert radius.max() < others.min()
    assert len(np.unique(points.round(9), axis=0)) == len(points)


def test_the_graph_shows_its_components():
    graph = block_diag([random_graph(60, 8, seed) for seed in range(3)], format="csr")
    labels = np.repeat([0, 1, 2], 60)
    features = graph_features(graph)
    alike = np.abs(features @ features.T)
    apart = labels[:, None] != labels[None]
    # Who shares no neighbour has next to nothing in common.
    assert alike[apart].max() < 0.1 * alike[~apart].max()
    layout = lay_out(labels, np.ones(180), None, graph)
    assert "graph" in layout.words
    assert separation(layout.points, labels) > 1.5


def test_without_anything_there_are_discs():
    labels = np.repeat([0, 1], 50)
    layout = lay_out(labels, np.ones(100), None, None)
    assert layout.points.shape == (100, 2)
    assert "disc" in layout.words


def test_representations_come_first(small_data):
    layout = small_data.layout
    assert "representations" in layout.words
    assert separation(layout.points, small_data.labels) > 2


@pytest.mark.slow  # numba compiles for a minute
def test_umap_keeps_clusters_together_and_repeats_itself():
    pytest.importorskip("umap", reason="needs the extra peers")
    X, labels = blobs(240)
    points = embed(X, labels, method="umap", sample=200)
    assert neighbours_share_label(points, labels) > 0.95
    assert (points == embed(X, labels, method="umap", sample=200)).all()


def test_each_view_has_its_map():
    views, labels = clustered_views(n_samples=80)
    maps = lay_out_views(views, labels)
    assert list(maps) == ["wide", "narrow"]
    for name, layout in maps.items():
        np.testing.assert_array_equal(layout.points, embed(views[name], labels))
        assert f"features of {name}" in layout.words


def test_an_unknown_embedding_is_refused():
    with pytest.raises(ValueError, match="no embedding 'pca'; choose tsne or umap"):
        embed(np.eye(20), method="pca")
