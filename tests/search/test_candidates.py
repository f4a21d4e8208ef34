"""The score, annealing, proposals and the search."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import random as sparse_random

from sagl.evaluation import clustering_accuracy
from sagl.nn.sparse import CSR
from sagl.search.anneal import anneal, smoothed
from sagl.search.candidates import candidates_of, search
from sagl.search.journal import Journal
from sagl.search.proposals import (
    centre_labels,
    consensus,
    leading_images,
    spectral_labels,
)
from sagl.search.score import (
    graph_information,
    guesses,
    mutual_information,
    neighbour_information,
    score,
    split_information,
)
from sagl.search.space import Space, from_edges
from tests.search.conftest import configured

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
        space = Space([x], 10)
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

    @pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
    def test_some_of_the_neighbours_are_those_of_the_attention_graph(
        self, problem, share
    ):
        space, truth = configured(problem[0], attention=share), problem[1]
        n = len(space)
        # Everybody attends to the next sample, of any cluster.
        crow, cols = torch.arange(n + 1), torch.arange(1, n + 1) % n
        attending = space.attending(CSR(crow, cols, torch.ones(n), (n, n)))
        table = torch.zeros(C, C)
        for i in range(n):
            table[truth[i], truth[(i + 1) % n]] += 1
        without = score(space, truth, C).graph
        told = mutual_information(table + table.T)
        expected = share * told + (1 - share) * without
        assert neighbour_information(attending, truth, C) == pytest.approx(expected)
        found = score(attending, truth, C)
        assert found.graph == pytest.approx(expected)
        assert found.total == pytest.approx(found.linear + expected)
        assert told < 0.6 * without
        assert space.attention is None

    def test_views_count_by_their_weights(self, problem):
        space, truth = problem
        alone = [score(space.only(view), truth, C).linear for view in (0, 1)]
        assert alone[0] != pytest.approx(alone[1])
        found = score(space.weighted([3.0, 1.0]), truth, C).linear
        assert found == pytest.approx(0.75 * alone[0] + 0.25 * alone[1], rel=1e-4)


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
        labels = anneal(space, smoothed(space, truth, C), hot=0.3, steps=40)
        assert (labels == truth).float().mean() > 0.95

    def test_softened_labels_are_distributions(self, problem):
        space, truth = problem
        Y = smoothed(space, truth, C)
        torch.testing.assert_close(Y.sum(dim=1), torch.ones(len(truth)))
        assert (Y > 0).all()
        assert torch.equal(Y.argmax(dim=1), truth)

    @pytest.mark.parametrize("smoothing", [0.0, 0.2, 1.0])
    def test_what_labels_give_up_is_shared_by_all_clusters(self, problem, smoothing):
        space, truth = problem
        Y = smoothed(configured(space, smoothing=smoothing), truth, C)
        own = torch.nn.functional.one_hot(truth, C).bool()
        torch.testing.assert_close(Y[own], torch.full((160,), 1 - smoothing * 3 / C))
        torch.testing.assert_close(Y[~own], torch.full((480,), smoothing / C))


@pytest.mark.parametrize("seed", range(3))
def test_centre_labels_find_clusters(problem, seed):
    space, truth = problem
    assert clustering_accuracy(truth, centre_labels(space, C, seed)) > 0.95


def test_spectral_labels_find_clusters(problem):
    space, truth = problem
    assert clustering_accuracy(truth, spectral_labels(space, C, 0)) > 0.95


@pytest.mark.parametrize(("n", "columns"), [(40, 15), (15, 40), (20, 20)])
def test_leading_images_are_those_of_the_singular_values(n, columns):
    members = sparse_random(n, columns, density=0.4, random_state=0)
    left, values, _ = np.linalg.svd(members.toarray(), full_matrices=False)
    found, slow = leading_images(members.tocsr(), 6), left[:, :6] * values[:6]
    np.testing.assert_allclose(found @ found.T, slow @ slow.T, atol=1e-10)
    np.testing.assert_allclose((found**2).sum(axis=0)[::-1], values[:6] ** 2)


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
        calls = []
        found, _ = search(space, C, 0, on_candidate=lambda: calls.append(1))
        totals = [candidate.score.total for candidate in found]
        assert totals == sorted(totals, reverse=True)
        assert len(calls) == len(found) == candidates_of(space.config.starts)
        assert clustering_accuracy(truth, found[0].labels) > 0.95

    def test_starts_are_of_all_views_and_of_each_alone_in_turn(
        self, problem, monkeypatch
    ):
        space, _ = problem
        asked = []

        def spy(place, n_clusters, seed):
            asked.append([x.shape[1] for x in place.views])
            return centre_labels(place, n_clusters, seed)

        monkeypatch.setattr("sagl.search.candidates.centre_labels", spy)
        search(space, C, 0, starts=5)
        assert asked == [[12, 6], [12], [6], [12, 6], [12]]
        asked.clear()
        search(space.only(1), C, 0, starts=2)
        assert asked == [[6], [6]]

    def test_what_is_learned_decides_from_the_last_round_on(self, problem):
        space, truth = problem
        given = []

        def learn(partitions):
            given.extend(partitions)
            n = len(space)
            same = truth[:, None] == truth
            rows, cols = torch.nonzero(same.fill_diagonal_(False), as_tuple=True)
            return space.attending(from_edges(rows, cols, torch.ones(len(rows)), n))

        found, used = search(space, C, 0, starts=2, learn=learn)
        assert used.attention is not None
        best = score(space, given[0], C).total
        assert best == max(score(space, labels, C).total for labels in given)
        for candidate in found:
            assert candidate.score == score(used, candidate.labels, C)

    def test_a_journal_finds_the_same_again_and_computes_nothing_twice(
        self, problem, tmp_path, monkeypatch
    ):
        space, _ = problem
        whole, _ = search(space, C, 3, starts=3)
        computed = []

        def killed_after(count):
            def spy(*args, **kwargs):
                if len(computed) == count:
                    raise KeyboardInterrupt
                computed.append(1)
                return anneal(*args, **kwargs)

            return spy

        monkeypatch.setattr("sagl.search.candidates.anneal", killed_after(2))
        with pytest.raises(KeyboardInterrupt):
            search(space, C, 3, starts=3, journal=Journal(tmp_path, {"run": 1}, 0.0))
        computed.clear()
        monkeypatch.setattr("sagl.search.candidates.anneal", killed_after(None))
        again, _ = search(
            space, C, 3, starts=3, journal=Journal(tmp_path, {"run": 1}, 0.0)
        )
        assert len(computed) == 1  # of three
        for one, other in zip(whole, again, strict=True):
            assert torch.equal(one.labels, other.labels)
            assert one.score == other.score
        with pytest.raises(ValueError, match="belongs to another run: run was 1"):
            Journal(tmp_path, {"run": 2})

    def test_equal_seeds_equal_labels(self, problem):
        space, _ = problem
        one, again = (search(space, C, 7, starts=2)[0] for _ in range(2))
        for a, b in zip(one, again, strict=True):
            assert torch.equal(a.labels, b.labels)


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
