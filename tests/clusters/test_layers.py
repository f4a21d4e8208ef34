"""Layers nest, for training samples and for new ones, and find what is nested."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from sagl import SAGL, Views
from sagl.clusters.layers import with_layers
from sagl.clusters.table import sample_table
from sagl.evaluation import clustering_accuracy
from sagl.search.count import CountPoint, conclude
from tests.conftest import clustered_views


def nested_views(seed=0, n=360):
    """Two groups of three clusters, each of two halves: 2 < 6 < 12."""
    rng = np.random.default_rng(seed)
    halves = rng.permutation(np.arange(n) % 12)
    made = np.random.default_rng(0)
    views = {}
    for name, width in (("one", 16), ("other", 12)):
        group = 4 * made.normal(size=(2, width))
        cluster = group.repeat(3, axis=0) + 2 * made.normal(size=(6, width))
        half = cluster.repeat(2, axis=0) + 0.6 * made.normal(size=(12, width))
        noise = 0.3 * rng.normal(size=(n, width))
        views[name] = (half[halves] + noise).astype(np.float32)
    return Views(views), halves


@pytest.fixture(scope="module")
def nested():
    return nested_views()


@pytest.fixture(scope="module")
def model(nested):
    return SAGL(6, random_state=0).fit(nested[0])


def inside(finer, coarser):
    """Whether each cluster is in one of the coarser ones."""
    return len(set(zip(finer, coarser, strict=True))) == len(set(finer))


def test_they_are_from_coarse_to_fine_with_that_asked_for(model):
    sizes = [layer.n_clusters for layer in model.layers_]
    assert sizes == sorted(sizes)
    assert 6 in sizes
    assert sizes[-1] == 12
    for coarser, layer in zip(model.layers_, model.layers_[1:], strict=False):
        assert sorted(set(layer.parents)) == list(range(coarser.n_clusters))
        assert len(layer.parents) == layer.n_clusters
        assert 0 <= layer.stability <= 1
        assert layer.kept >= coarser.kept
    assert model.layers_[0].parents == ()
    (asked,) = [layer for layer in model.layers_ if layer.n_clusters == 6]
    assert asked.kept == pytest.approx(1)
    assert asked.stability > 0.9


def test_numbers_that_were_nearly_chosen_are_layers(model, nested):
    values = {2: 0.1, 3: 0.1, 4: 0.1, 5: 0.95, 6: 0.9, 7: 1.0, 8: 0.1}
    points = [CountPoint(k, v, 0.01, 1.0, 0.8) for k, v in values.items()]
    points[2] = CountPoint(4, 0.1, 0.01, 1.0, 0.9)  # agrees most
    count = conclude(points)
    assert count.runners_up == [4, 5]
    counted, _ = with_layers(replace(model._model, cluster_count=count), nested[0])
    before = {layer.n_clusters for layer in model.layers_}
    assert {layer.n_clusters for layer in counted.layers} == before | {4, 5}
    for coarser, finer in itertools.pairwise(counted.layers):
        assert sorted(set(finer.parents)) == list(range(coarser.n_clusters))


def test_they_find_what_is_nested(model, nested):
    _, halves = nested
    coarsest = model.layers_[0].n_clusters
    assert coarsest == 2
    assert clustering_accuracy(halves // 6, model.labels_at(2)) == 1
    assert clustering_accuracy(halves // 2, model.labels_at(6)) > 0.98
    assert clustering_accuracy(halves, model.labels_at(12)) > 0.9


def test_samples_nest_new_ones_as_well(model):
    new, halves = nested_views(seed=5, n=120)
    sizes = [layer.n_clusters for layer in model.layers_]
    for ask in (model.labels_at, lambda k: model.predict(new, layer=k)):
        for coarser, finer in itertools.pairwise(sizes):
            assert inside(ask(finer), ask(coarser))
    assert clustering_accuracy(halves, model.predict(new, layer=12)) > 0.9
    assert np.array_equal(model.predict(new, layer=6), model.predict(new))


def test_the_same_alone_and_in_any_company(model, nested):
    views = nested[0]
    for k in (2, 12):
        together = model.predict(views, layer=k)
        assert np.array_equal(together, model.labels_at(k))
        for row in (0, 100, 359):
            assert model.predict(views[row : row + 1], layer=k)[0] == together[row]


def test_they_come_back_from_disk(model, nested, tmp_path):
    model.save(tmp_path / "run")
    loaded = SAGL.load(tmp_path / "run")
    assert loaded.layers_ == model.layers_
    for layer in model.layers_:
        k = layer.n_clusters
        assert np.array_equal(loaded.labels_at(k), model.labels_at(k))
        theirs = loaded.predict(nested[0][:9], layer=k)
        assert np.array_equal(theirs, model.predict(nested[0][:9], layer=k))
    columns = sample_table(model._model)
    assert np.array_equal(columns["of_2"], model.labels_at(2))


def test_doubtful_samples_have_no_cluster_in_a_layer_either(model, nested):
    labels = model.predict(nested[0], layer=2, agreement=1.0)
    plain = model.predict(nested[0], agreement=1.0)
    assert np.array_equal(labels == -1, plain == -1)


def test_no_such_layer(model, nested):
    with pytest.raises(ValueError, match="no layer has 7 clusters; layers have 2,"):
        model.predict(nested[0], layer=7)
    paper = SAGL(4, recipe="network", steps=5, random_state=0)
    paper.fit(clustered_views(60)[0])
    assert not hasattr(paper, "layers_")
    with pytest.raises(ValueError, match="refine=True"):
        paper.labels_at(2)


@pytest.mark.parametrize("C", [2, 3])
def test_few_clusters_have_few_layers(C):
    views = clustered_views(80, C)[0]
    model = SAGL(C, random_state=0).fit(views)
    assert [layer.n_clusters for layer in model.layers_] == [C, 2 * C]


def test_what_cannot_be_cut_stays_whole():
    """Clusters of one sample, over and over."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(3, 8)).astype(np.float32)
    model = SAGL(3, random_state=0).fit({"a": points.repeat(20, axis=0)})
    assert model.layers_[-1].n_clusters == 3
    assert np.array_equal(model.labels_at(3), model.labels_)


def test_merged_models_have_layers_of_their_own(model, nested):
    merged = model.merge(nested[0], 0, 1)
    assert 5 in [layer.n_clusters for layer in merged.layers_]
    assert 6 not in [layer.n_clusters for layer in merged.layers_[:-1]]
