"""Methods that label the samples they are given: others go by their neighbours."""

import sys
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.cluster import SpectralClustering
from sklearn.datasets import make_blobs
from sklearn.preprocessing import StandardScaler, normalize

from sagl import Views
from sagl.baselines import UMAPHDBSCAN, EVoC, Leiden, Spectral, Transductive
from sagl.baselines.umap_hdbscan import hdbscan_labels, labels_of_about
from sagl.environment import MissingExtra
from sagl.evaluation import clustering_accuracy, purity
from tests.conftest import clustered_views


def needs(package):
    reason = f'needs {package}: pip install "sagl[peers]"'
    return pytest.mark.skipif(find_spec(package) is None, reason=reason)


class Stripes(Transductive):
    """Three clusters whatever the samples; every fourth sample is left out."""

    def _cluster(self, x, seed):
        numbers = np.arange(len(x))
        return np.where(numbers % 4 == 3, -1, numbers % 3 * 10)  # gaps in the numbers


class Nothing(Transductive):
    def _cluster(self, x, seed):
        return np.full(len(x), -1)


def joined(train, views):
    """Columns standardised as in training, views side by side with rows of length 1."""
    parts = []
    for name, array in train.items():
        scaler = StandardScaler().fit(array.astype(float))
        parts.append(normalize(scaler.transform(views[name].astype(float))))
    return np.hstack(parts)


def test_new_samples_go_by_the_nearest_that_were_labelled():
    views, _ = clustered_views(60)
    model = Stripes(3).fit(views)
    assert model.n_clusters_ == 3
    assert model.covered_.tolist() == [i % 4 != 3 for i in range(60)]
    new, _ = clustered_views(40, seed=0, spread=0.9)
    rows, x = joined(views, views)[model.covered_], joined(views, new)
    clusters = (np.arange(60) % 3)[model.covered_]
    shares = model.decision_function(new)
    for i, row in enumerate(x):
        distances = ((rows - row) ** 2).sum(axis=1)
        votes = np.zeros(3)
        for j in np.argsort(distances)[:10]:
            votes[clusters[j]] += 1 / (distances[j] + 1e-9)
        np.testing.assert_allclose(shares[i], votes / votes.sum(), atol=1e-3)


def test_wide_features_and_many_samples_give_the_same_bits_in_any_company():
    """Wide enough for ordinary products to add up in an order that depends on rows."""
    arrays = np.random.default_rng(0).normal(size=(3, 700, 517)).astype(np.float32)
    views = Views(list(arrays))
    model = Stripes(3).fit(views)
    together = model.decision_function(views)
    assert np.array_equal(model.decision_function(views[::-1])[::-1], together)
    for row in (0, 300, 699):
        alone = model.decision_function(views[row : row + 1])
        assert np.array_equal(alone[0], together[row])


def test_samples_keep_the_cluster_that_the_method_gave_them():
    views, _ = clustered_views(60)
    model = Stripes(3).fit(views)
    own = (np.arange(60) % 3)[model.covered_]
    assert np.array_equal(model.labels_[model.covered_], own)
    assert set(model.labels_[~model.covered_]) <= {0, 1, 2}  # full coverage


def test_where_all_are_left_out_there_is_one_cluster():
    views, _ = clustered_views(60)
    model = Nothing(3).fit(views)
    assert not model.covered_.any()
    assert model.n_clusters_ == 1
    assert (model.labels_ == 0).all()


def test_what_was_covered_is_saved(tmp_path):
    views, _ = clustered_views(60)
    model = Stripes(3).fit(views)
    model.save(tmp_path)
    again = Stripes.load(tmp_path)
    assert np.array_equal(again.covered_, model.covered_)
    assert np.array_equal(again.predict(views), model.labels_)
    assert not hasattr(Stripes(3), "covered_")


@pytest.mark.parametrize("n", [3, 5, 12])
def test_fewer_samples_than_voters(n):
    views, _ = clustered_views(n)
    assert Stripes(3).fit(views).decision_function(views).shape == (n, 3)


@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
def test_spectral_is_scikit_learn_s():
    views, labels = clustered_views(spread=1.2)
    ours = Spectral(4, neighbours=7, random_state=0).fit(views)
    theirs = SpectralClustering(
        4, affinity="nearest_neighbors", n_neighbors=7, random_state=0
    )
    expected = theirs.fit_predict(joined(views, views))
    assert clustering_accuracy(expected, ours.labels_) == 1
    assert ours.covered_.all()
    assert clustering_accuracy(labels, ours.labels_) > 0.9


@needs("leidenalg")
class TestLeiden:
    @pytest.mark.parametrize("n_clusters", [2, 4, 9, 20])
    def test_there_are_as_many_clusters_as_asked_for(self, n_clusters):
        views, _ = clustered_views(spread=2.0)  # one piece
        model = Leiden(n_clusters, random_state=0).fit(views)
        assert abs(model.n_clusters_ - n_clusters) <= 1

    def test_a_resolution_of_ones_own(self):
        views, _ = clustered_views()
        few = Leiden(20, resolution=0.1, random_state=0).fit(views)
        many = Leiden(2, resolution=5.0, random_state=0).fit(views)
        assert few.n_clusters_ <= 4 < many.n_clusters_
        with pytest.raises(ValueError, match="resolution must be above 0 and finite"):
            Leiden(4, resolution=0).fit(views)

    def test_separate_groups_stay_apart(self):
        """Clusters without a link between them cannot be joined."""
        X, y = make_blobs(120, n_features=8, centers=6, random_state=0)
        model = Leiden(2, neighbours=5, random_state=0).fit(X)
        assert model.n_clusters_ == 6
        assert clustering_accuracy(y, model.labels_) == 1


class TestDensity:
    BLOBS, TRUTH = make_blobs(
        400, n_features=3, centers=5, cluster_std=0.6, random_state=1
    )

    def test_the_number_of_clusters_is_the_nearest_there_is(self):
        counts = {
            size: hdbscan_labels(self.BLOBS, size).max() + 1
            for size in range(3, 400 // 5 + 1)
        }
        assert len(set(counts.values())) > 1
        assert labels_of_about(self.BLOBS, 5).max() + 1 == 5
        labels = labels_of_about(self.BLOBS, 5)
        assert clustering_accuracy(self.TRUTH[labels >= 0], labels[labels >= 0]) > 0.95

    def test_of_several_the_one_that_leaves_fewest_out(self):
        labels = labels_of_about(self.BLOBS, 5)
        left_out = [
            (clusters < 0).sum()
            for size in (3, 10, 30, 80)
            if (clusters := hdbscan_labels(self.BLOBS, size)).max() + 1 == 5
        ]
        assert left_out
        assert (labels < 0).sum() <= min(left_out)

    def test_few_samples(self):
        assert labels_of_about(self.BLOBS[:4], 3).shape == (4,)

    @pytest.mark.slow
    @needs("umap")
    def test_a_size_of_ones_own(self):
        views, labels = clustered_views(spread=0.8)
        model = UMAPHDBSCAN(2, min_cluster_size=15, random_state=0).fit(views)
        assert model.n_clusters_ == 4  # its own number
        assert clustering_accuracy(labels, model.labels_) > 0.95

    @pytest.mark.slow
    @needs("evoc")
    def test_evoc_by_its_own_number(self):
        views, labels = clustered_views(400)
        own, asked = (
            EVoC(4, own_number=own, random_state=0).fit(views) for own in (True, False)
        )
        assert own.n_clusters_ != asked.n_clusters_ == 4
        assert 0.5 < own.covered_.mean() < 1
        assert purity(labels, own.labels_) > 0.95


@pytest.mark.parametrize(
    ("method", "package"), [(UMAPHDBSCAN, "umap"), (EVoC, "evoc"), (Leiden, "igraph")]
)
def test_a_missing_package_is_named_with_its_cure(monkeypatch, method, package):
    for name in ("umap", "evoc", "igraph", "leidenalg"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"pip install \"sagl\[peers\]\""):
        method(4).fit(clustered_views()[0])


@pytest.mark.parametrize("n", [6, 12, 30])
@pytest.mark.parametrize(
    "method",
    [
        Spectral,
        pytest.param(Leiden, marks=needs("leidenalg")),
        pytest.param(UMAPHDBSCAN, marks=[needs("umap"), pytest.mark.slow]),
        pytest.param(EVoC, marks=[needs("evoc"), pytest.mark.slow]),
    ],
)
@pytest.mark.filterwarnings("ignore")  # of the packages, about few samples
def test_few_samples(method, n):
    views, labels = clustered_views(n, n_clusters=3, spread=0.2)
    model = method(3, random_state=0).fit(views)
    assert model.labels_.shape == (n,)
    if n == 30:
        assert clustering_accuracy(labels, model.labels_) > 0.9


def test_views_count_alike_and_any_normalisation_is_taken():
    views, labels = clustered_views()
    loud = Views({"wide": views["wide"] * 1000, "narrow": views["narrow"]})
    for normalize_by in ("standard", "center", "none"):
        model = Spectral(4, normalize=normalize_by, random_state=0).fit(loud)
        assert clustering_accuracy(labels, model.labels_) > 0.9
    with pytest.raises(ValueError, match="normalize must be one of"):
        Spectral(4, normalize="loud").fit(views)
