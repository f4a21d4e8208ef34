"""Moves: one merge and one split, kept if the score rises; halves by 2-means."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl.evaluation import clustering_accuracy
from sagl.search.anneal import anneal_new
from sagl.search.evidence import evidence
from sagl.search.moves import filled, halved, split_and_merge
from sagl.search.score import confusion, graph_information, score
from sagl.search.space import Space
from tests.conftest import clustered_views
from tests.search.conftest import configured

checked = settings(max_examples=60, deadline=None, derandomize=True, database=None)
C = 4


def stuck(truth):
    """Clusters 0 and 1 in one, cluster 2 cut at random: no single move mends it."""
    labels = torch.where(truth == 1, 0, truth)
    third = torch.nonzero(truth == 2).flatten()
    labels[third[::2]] = 1
    return labels


def test_a_cluster_too_few_and_one_too_many_are_mended(problem):
    space, truth = problem
    labels = stuck(truth)
    assert clustering_accuracy(truth, labels) < 0.8
    assert clustering_accuracy(truth, split_and_merge(space, labels, C)) > 0.95


def test_the_score_never_falls(problem):
    space, truth = problem
    generator = torch.Generator().manual_seed(0)
    for labels in (truth, stuck(truth), torch.randint(C, (160,), generator=generator)):
        before = score(space, labels, C).total
        moved = split_and_merge(configured(space, proposals=5), labels, C)
        assert score(space, moved, C).total >= before


def test_the_most_promising_merge_and_split_are_proposed_first(problem):
    space, truth = problem
    found = split_and_merge(configured(space, proposals=1), stuck(truth), C)
    assert clustering_accuracy(truth, found) > 0.95


@pytest.mark.parametrize("proposals", [2, 5])
def test_no_more_moves_are_tried_than_configured(problem, proposals, monkeypatch):
    space, truth = problem
    tried = []

    def spy(space, starts, *args, **options):
        tried.extend(starts)
        return anneal_new(space, starts, *args, **options)

    monkeypatch.setattr("sagl.search.moves.anneal_new", spy)
    split_and_merge(configured(space, proposals=proposals), truth % 3, C)
    assert 0 < len(tried) <= proposals
    tried.clear()
    split_and_merge(space, truth % 3, C)
    assert len(tried) > proposals


def test_nothing_to_propose_where_a_merge_leaves_nothing_to_split(problem):
    space, truth = problem
    labels = truth % 2
    assert torch.equal(split_and_merge(space, labels, 2), labels)


def test_empty_and_tiny_clusters_are_not_split(problem):
    space, truth = problem
    labels = truth.clone()
    labels[labels == 3] = 0
    labels[:2] = 3
    found = split_and_merge(space, labels, 6)
    assert score(space, found, 6).total > score(space, labels, 6).total
    assert clustering_accuracy(truth, found) > clustering_accuracy(truth, labels)


def test_a_cluster_of_one_sample_many_times_is_not_split():
    views, labels = clustered_views(80, spread=1.0)
    same = labels == 0
    rows = [h.copy() for _, h in views.items()]
    for h in rows:
        h[same] = h[same][0]
    space = Space([torch.from_numpy(h - h.mean(axis=0)) for h in rows], 10)
    truth = torch.from_numpy(labels)
    assert clustering_accuracy(truth, split_and_merge(space, truth, C)) > 0.95


def test_confusion_counts_every_sample_under_its_label(problem):
    space, truth = problem
    table = confusion(space, truth, C)
    assert torch.equal(table.sum(dim=0), torch.bincount(truth, minlength=C).float())
    assert table.trace() / len(truth) == pytest.approx(score(space, truth, C).agreement)


def test_a_merge_tells_less_of_neighbours(problem):
    space, truth = problem
    merged = torch.where(truth == 1, 0, truth)
    assert graph_information(space, truth, C) > graph_information(space, merged, C)


class TestFreeSizes:
    def test_an_empty_cluster_is_filled_where_another_clearly_is_two(self, uneven):
        space, truth = uneven
        for one, other in ((0, 1), (1, 2), (0, 4)):
            labels = torch.where(truth == other, one, truth)
            before = clustering_accuracy(truth, labels)
            # To use the empty cluster is what is proposed first.
            one_proposal = configured(space, proposals=1)
            found = split_and_merge(one_proposal, labels, 5, sizes="any")
            assert clustering_accuracy(truth, found) > max(0.95, before)
            assert len(found.unique()) == 5

    def test_the_value_of_the_evidence_never_falls(self, uneven):
        space, truth = uneven
        generator = torch.Generator().manual_seed(0)
        arbitrary = torch.randint(5, (len(truth),), generator=generator)
        few_proposals = configured(space, proposals=5)
        for labels in (truth, torch.where(truth == 1, 0, truth), arbitrary):
            before = evidence(space, labels, 5).value
            found = split_and_merge(few_proposals, labels, 5, sizes="any")
            assert evidence(space, found, 5).value >= before


class TestFilled:
    def test_clusters_that_are_two_are_split_until_all_are_used(self, uneven):
        space, truth = uneven
        labels = torch.where(truth == 1, 0, truth)
        kept = labels.clone()
        found = filled(space, labels, 5)
        assert clustering_accuracy(truth, found) > 0.95
        changed = found != labels
        assert (found[changed] == 1).all()
        assert torch.equal(labels, kept)

    def test_several_empty_clusters_take_parts_of_several_others(self, uneven):
        space, truth = uneven
        labels = truth % 3
        found = filled(space, labels, 5)
        assert found.unique().tolist() == list(range(5))
        for new in (3, 4):
            assert len(labels[found == new].unique()) == 1

    def test_nothing_changes_where_all_are_used(self, uneven):
        space, truth = uneven
        assert torch.equal(filled(space, truth, 5), truth)


def test_two_groups_are_found():
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(60, 20, generator=generator)
    truth = torch.arange(60) % 3 == 0
    rows[truth] += 3
    side = halved(rows)
    assert torch.equal(side, truth) or torch.equal(side, ~truth)


@checked
@given(st.integers(0, 10**6), st.integers(2, 40), st.integers(1, 8))
def test_every_sample_is_nearer_to_its_own_centre(seed, n, d):
    rows = torch.randn(n, d, generator=torch.Generator().manual_seed(seed))
    side = halved(rows)
    assert 0 < side.sum() < n
    centres = torch.stack([rows[~side].mean(dim=0), rows[side].mean(dim=0)])
    distances = torch.cdist(rows, centres)
    own = distances.gather(1, side.long()[:, None])
    other = distances.gather(1, (~side).long()[:, None])
    assert (own <= other + 1e-4).all()


def test_rows_that_are_all_alike_are_not_cut():
    for n in (1, 5):
        assert not halved(torch.full((n, 3), 0.1)).any()


def test_the_order_of_rows_does_not_matter():
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(50, 6, generator=generator)
    order = torch.randperm(50, generator=generator)
    one, other = halved(rows)[order], halved(rows[order])
    assert torch.equal(one, other) or torch.equal(one, ~other)
