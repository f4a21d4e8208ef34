"""Where points go: fair samples, the same result twice, room for every sample."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from sagl import SAGL
from sagl.report.embedding import (
    LEVELS,
    embed_all,
    stratified_rows,
    three_levels,
    tsne,
)
from tests.conftest import clustered_views

pytest.importorskip("openTSNE", reason="needs the extra report")


def blobs(n, n_clusters=4, width=10, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % n_clusters
    return 8 * rng.normal(size=(n_clusters, width))[labels] + rng.normal(
        size=(n, width)
    ), labels


def neighbours_share_label(points, labels, k=5):
    _, found = NearestNeighbors(n_neighbors=k + 1).fit(points).kneighbors(points)
    return (labels[found[:, 1:]] == labels[:, None]).mean()


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
    points = tsne(X, seed=3)
    assert points.shape == (200, 2)
    assert neighbours_share_label(points, labels) > 0.99
    assert (points == tsne(X, seed=3)).all()


def test_every_sample_gets_a_place_among_its_like():
    X, labels = blobs(3000)
    points = embed_all(X, labels, sample=300, seed=0)
    assert points.shape == (3000, 2)
    assert np.isfinite(points).all()
    assert neighbours_share_label(points, labels) > 0.99
    rows = stratified_rows(labels, 300, 0)
    others = np.setdiff1d(np.arange(3000), rows)
    spread = np.ptp(points[rows], axis=0)
    assert (np.ptp(points[others], axis=0) < 1.3 * spread).all()  # none flies off
    assert len(np.unique(points.round(6), axis=0)) > 2900  # nor do they pile up
    assert (points == embed_all(X, labels, sample=300, seed=0)).all()


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
    for points in (tsne(X), embed_all(X, sample=12)):
        assert points.shape == (len(X), 2)
        assert np.isfinite(points).all()


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros(3), r"shape \(3,\)"),
        (np.zeros((0, 2)), r"shape \(0, 2\)"),
        (np.array([[0.0, 1], [np.nan, 1]]), "row 1 holds NaN"),
    ],
)
def test_bad_features_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        tsne(X)
    with pytest.raises(ValueError, match="size of at least 1"):
        stratified_rows([0, 1], 0)


def test_three_levels_are_those_of_the_model():
    views, _ = clustered_views(120)
    model = SAGL(4, steps=20, random_state=0).fit(views)
    rows = np.array([5, 2, 80])
    levels = three_levels(model, views, rows)
    assert list(levels) == ["wide", "narrow"]
    some = views[np.sort(rows)]
    p = model.transform(some)
    for i, (name, found) in enumerate(levels.items()):
        assert list(found.named()) == list(LEVELS)
        np.testing.assert_array_equal(found.original, some[name])
        np.testing.assert_array_equal(found.final, p[:, 4 * i : 4 * i + 4])
        encoder = model.network_.view_networks[i].encoder
        import torch

        with torch.no_grad():
            z = encoder(encoder.standardize(torch.from_numpy(some[name])))
        np.testing.assert_allclose(found.linear, z.numpy(), atol=1e-4)
