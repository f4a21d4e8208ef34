"""The score, annealing, proposals, the search, and the network that reads it out."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl import SAGL, Views
from sagl.evaluation import clustering_accuracy
from sagl.partition.anneal import anneal, softened
from sagl.partition.proposals import centre_labels, consensus, spectral_labels
from sagl.partition.readout import predict_labels, sharpen, sharpening
from sagl.partition.score import (
    graph_information,
    guesses,
    mutual_information,
    neighbour_information,
    score,
    split_information,
)
from sagl.partition.search import candidates_of, search
from sagl.partition.space import Space
from tests.conftest import clustered_views
from tests.partition.conftest import UNEVEN, blobs, space_of

checked = settings(max_examples=40, deadline=None, derandomize=True, database=None)
C = 4


@checked
@given(
    st.lists(
        st.lists(st.integers(0, 50), min_size=3, max_size=3), min_size=3, max_size=3
    ).filter(lambda rows: sum(map(sum, rows)) > 0)
)
def test_mutual_information_term_by_term(rows):
    total = sum(map(sum, rows))
    expected = 0.0
    for i, j in itertools.product(range(3), range(3)):
        p = rows[i][j] / total
        if p > 0:
            row = sum(rows[i]) / total
            column = sum(r[j] for r in rows) / total
            expected += p * math.log(p / (row * column))
    found = mutual_information(torch.tensor(rows))
    assert found == pytest.approx(expected, abs=1e-12)


class TestScore:
    def test_neighbours_are_those_of_single_views(self, problem):
        space, truth = problem
        weighted = space.weighted([3.0, 1.0])
        told = [graph_information(space.only(view), truth, C) for view in (0, 1)]
        expected = 0.75 * told[0] + 0.25 * told[1]
        assert told[0] != pytest.approx(told[1])
        assert neighbour_information(weighted, truth, C) == pytest.approx(expected)

    def test_truth_beats_every_corruption_of_it(self, problem):
        space, truth = problem
        generator = torch.Generator().manual_seed(0)
        best = score(space, truth, C)
        for share in (0.1, 0.3, 0.6):
            labels = truth.clone()
            moved = torch.rand(len(truth), generator=generator) < share
            random = torch.randint(C, (len(truth),), generator=generator)
            labels[moved] = random[moved]
            worse = score(space, labels, C)
            assert worse.linear < best.linear
            assert worse.graph < best.graph
            best = worse

    def test_one_cluster_tells_nothing(self, problem):
        space, truth = problem
        found = score(space, torch.zeros_like(truth), C)
        assert found.total == pytest.approx(0, abs=1e-9)

    def test_a_cluster_merged_or_split_without_reason_loses(self, problem):
        space, truth = problem
        best = score(space, truth, C + 1).total
        merged = torch.where(truth == 1, 0, truth)
        split = truth.clone()
        halves = torch.arange(len(truth)) % 2 == 0
        split[(truth == 2) & halves] = C
        assert score(space, merged, C + 1).total < best
        assert score(space, split, C + 1).total < best

    @pytest.mark.parametrize("seed", range(3))
    def test_a_plane_through_a_cluster_does_not_make_two_of_it(self, seed):
        """Two clusters that overlap are right; one joined and one cut are wrong."""
        generator = torch.Generator().manual_seed(seed)
        centres = torch.randn(C, 80, generator=generator)
        centres *= torch.tensor([6.0, 1.2, 6.0, 6.0])[:, None] / 80**0.5
        centres[1] += centres[0]
        truth = torch.arange(C).repeat_interleave(100)
        x = centres[truth] + torch.randn(400, 80, generator=generator)
        x -= x.mean(dim=0)
        space = Space([x])
        last = x[300:] - x[300:].mean(dim=0)
        plane = torch.linalg.svd(last, full_matrices=False)[2][0]
        wrong = torch.where(truth == 1, 0, truth)
        wrong[300:] = torch.where(last @ plane > 0, 1, 3)
        assert score(space, truth, C).linear > 1.5 * score(space, wrong, C).linear
        bends = [
            mutual_information(guesses(space.fits, labels, C)[0])
            for labels in (truth, wrong)
        ]
        assert bends[0] < 1.05 * bends[1]  # regressions that bend cannot tell

    def test_names_of_clusters_do_not_matter(self, problem):
        space, truth = problem
        names = torch.tensor([2, 0, 3, 1])
        assert score(space, names[truth], C).total == pytest.approx(
            score(space, truth, C).total
        )


class TestAnneal:
    @pytest.mark.parametrize("seed", range(3))
    def test_clusters_are_found_from_random_starts(self, problem, seed):
        space, truth = problem
        generator = torch.Generator().manual_seed(seed)
        start = torch.rand(len(truth), C, generator=generator).softmax(dim=1)
        labels = anneal(space, start)
        assert clustering_accuracy(truth, labels) > 0.95

    def test_a_good_partition_stays(self, problem):
        space, truth = problem
        labels = anneal(space, softened(truth, C), hot=0.3, steps=40)
        assert (labels == truth).float().mean() > 0.95

    def test_softened_labels_are_distributions(self, problem):
        _, truth = problem
        Y = softened(truth, C)
        torch.testing.assert_close(Y.sum(dim=1), torch.ones(len(truth)))
        assert (Y > 0).all()
        assert torch.equal(Y.argmax(dim=1), truth)


@pytest.mark.parametrize("seed", range(3))
def test_centre_labels_find_clusters(problem, seed):
    space, truth = problem
    assert clustering_accuracy(truth, centre_labels(space, C, seed)) > 0.95


def test_spectral_labels_find_clusters(problem):
    space, truth = problem
    assert clustering_accuracy(truth, spectral_labels(space, C, 0)) > 0.95


def test_consensus_outvotes_each_single_partition(problem):
    space, truth = problem
    generator = torch.Generator().manual_seed(0)
    partitions = []
    for _ in range(5):
        labels = truth[torch.arange(len(truth))].clone()
        wrong = torch.rand(len(truth), generator=generator) < 0.25
        labels[wrong] = torch.randint(C, (int(wrong.sum()),), generator=generator)
        names = torch.randperm(C, generator=generator)
        partitions.append(names[labels])
    together = clustering_accuracy(truth, consensus(space, partitions, C, 0))
    assert together > max(clustering_accuracy(truth, p) for p in partitions)


class TestSearch:
    def test_the_best_comes_first_and_all_are_told_of(self, problem):
        space, truth = problem
        told = []
        known = [truth, torch.roll(truth, 3)]
        found = search(space, C, 0, known, on_candidate=told.append)
        totals = [candidate.score.total for candidate in found]
        assert totals == sorted(totals, reverse=True)
        assert len(told) == len(found) == candidates_of(len(known))
        assert clustering_accuracy(truth, found[0].labels) > 0.95

    def test_starts_are_of_all_views_and_of_each_alone_in_turn(
        self, problem, monkeypatch
    ):
        space, _ = problem
        asked = []

        def spy(place, n_clusters, seed):
            asked.append([x.shape[1] for x in place.views])
            return centre_labels(place, n_clusters, seed)

        monkeypatch.setattr("sagl.partition.search.centre_labels", spy)
        search(space, C, 0, restarts=5)
        assert asked == [[12, 6], [12], [6], [12, 6], [12]]
        asked.clear()
        search(space.only(1), C, 0, restarts=2)
        assert asked == [[6], [6]]

    def test_equal_seeds_equal_labels(self, problem):
        space, _ = problem
        one, again = (search(space, C, 7, restarts=2) for _ in range(2))
        for a, b in zip(one, again, strict=True):
            assert torch.equal(a.labels, b.labels)


class TestRefinedModel:
    def test_it_predicts_what_was_found(self):
        views, truth = clustered_views(300, spread=1.5)
        model = SAGL(C, steps=5, random_state=0).fit(views[:200])
        assert clustering_accuracy(truth[:200], model.labels_) > 0.95
        assert clustering_accuracy(truth[200:], model.predict(views[200:])) > 0.95
        assert model.score_.total > 0

    def test_confidence_is_the_share_that_is_right(self):
        """On clusters that overlap, mean confidence is near the true accuracy."""
        views, truth = clustered_views(800, spread=3.0)
        model = SAGL(C, steps=5, random_state=0).fit(views[:400])
        q = model.predict_proba(views[400:])
        accuracy = clustering_accuracy(truth[400:], q.argmax(axis=1))
        assert abs(q.max(axis=1).mean() - accuracy) < 0.12

    def test_restarts_are_chosen_by_the_score(self):
        views, _ = clustered_views(200, spread=2.0)
        one = SAGL(C, steps=5, refine=False, n_restarts=4, random_state=0).fit(views)
        singles = [
            SAGL(C, steps=5, refine=False, n_restarts=k, random_state=0).fit(views)
            for k in (2, 3)
        ]
        totals = [model.score_.total for model in (*singles, one)]
        assert totals == sorted(totals)

    @pytest.mark.parametrize("graph", ["sparse", "dense", "identity"])
    def test_every_form_of_the_graph_can_be_refined(self, graph):
        views, truth = clustered_views(200, spread=1.0)
        model = SAGL(C, steps=5, graph=graph, random_state=0).fit(views)
        assert clustering_accuracy(truth, model.labels_) > 0.95

    def test_a_prediction_does_not_depend_on_company(self):
        views, _ = clustered_views(200, spread=3.0)
        model = SAGL(C, steps=5, random_state=0).fit(views)
        together = model.predict_proba(views)
        assert len(np.unique(together.argmax(axis=1))) == C
        for i in (0, 57, 199):
            np.testing.assert_array_equal(
                model.predict_proba(views[i : i + 1]), together[i : i + 1]
            )


def test_sharpening_changes_confidence_and_not_the_graph():
    views, _ = clustered_views(200, spread=3.0)
    model = SAGL(C, steps=5, random_state=0).fit(views)
    before, graphs = model.transform(views), model.graph(views)
    sharpen(model.network_, 2.0)
    model.adopt(model.network_, model.settings_, views)
    np.testing.assert_allclose(model.transform(views), 2 * before, rtol=1e-4, atol=1e-4)
    for one, other in zip(graphs, model.graph(views), strict=True):
        np.testing.assert_allclose(one.toarray(), other.toarray(), atol=1e-5)


@checked
@given(st.integers(0, 99), st.floats(0.0, 1.0))
def test_what_a_split_tells_is_what_the_split_labels_tell(problem, seed, share):
    space = problem[0].weighted([2.0, 1.0])
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(C, (len(space),), generator=generator)
    second = torch.rand(len(space), generator=generator) < share
    told = split_information(space, labels, C, second)
    for cluster in range(C):
        split = torch.where((labels == cluster) & second, C, labels)
        expected = neighbour_information(space, split, C + 1)
        assert float(told[cluster]) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("sizes", ["even", "free"])
def test_nobody_is_put_into_a_cluster_that_was_empty(sizes):
    views, truth = clustered_views(160, spread=1.0)
    model = SAGL(C + 1, steps=5, refine=False, random_state=0).fit(views)
    features = [torch.from_numpy(h - h.mean(axis=0)) for _, h in views.items()]
    space, labels = Space(features), torch.from_numpy(truth)
    predict_labels(model.network_, space, labels, 10.0, sizes)
    model.adopt(model.network_, model.settings_, views)
    probabilities = model.predict_proba(views)
    assert np.isfinite(probabilities).all()
    assert set(probabilities.argmax(axis=1)) <= set(range(C))
    assert probabilities[:, C].max() < 0.01


def test_small_clusters_are_predicted_better_as_log_odds():
    views, truth = blobs(UNEVEN)
    space, labels = space_of(views), torch.from_numpy(truth)
    rows = {name: x.numpy() for name, x in zip(views.names, space.views, strict=True)}
    params = {"refine": False, "normalize": "none", "random_state": 0}
    model = SAGL(5, steps=50, learning_rate=0.01, **params).fit(rows)
    right = {}
    for sizes in ("even", "free"):
        predict_labels(model.network_, space, labels, 1.0, sizes)
        model.adopt(model.network_, model.settings_, Views(rows))
        right[sizes] = (model.predict(rows) == truth).mean()
    assert right["free"] >= right["even"]
    assert right["free"] > 0.95


@checked
@given(st.floats(0.3, 0.99), st.integers(0, 99))
def test_mean_confidence_is_what_was_asked_for(wanted, seed):
    p = 8 * torch.randn(200, C, generator=torch.Generator().manual_seed(seed))
    factor = sharpening(p, wanted)
    q = torch.softmax(factor * p, dim=-1)
    assert float(q.amax(dim=-1).mean()) == pytest.approx(wanted, abs=1e-3)
    assert sharpening(p, 1.0) > 19  # nobody is ever that sure


def test_representations_of_a_view_are_scaled_by_its_weight():
    views, truth = clustered_views(160, spread=1.0)
    model = SAGL(C, steps=5, refine=False, random_state=0).fit(views)
    features = [torch.from_numpy(h - h.mean(axis=0)) for _, h in views.items()]
    space, labels = Space(features), torch.from_numpy(truth)
    found = []
    for weights in ([1.0, 1.0], [3.0, 1.0]):
        predict_labels(model.network_, space.weighted(weights), labels, 10.0)
        model.adopt(model.network_, model.settings_, views)
        found.append((model.transform(views), model.graph(views)))
    (even, graphs), (uneven, same_graphs) = found
    factors = np.repeat([1.5, 0.5], C)
    np.testing.assert_allclose(uneven, factors * even, rtol=1e-4, atol=1e-4)
    for one, other in zip(graphs, same_graphs, strict=True):
        np.testing.assert_allclose(one.toarray(), other.toarray(), atol=1e-5)
