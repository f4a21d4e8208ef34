"""Clusters of unequal sizes: found where they are, and only there."""

import pytest
import torch

from sagl.evaluation import clustering_accuracy
from sagl.search import unequal as module
from sagl.search.anneal import reanneal
from sagl.search.candidates import search
from sagl.search.evidence import clarity, evidence, log_odds, recall
from sagl.search.score import score
from sagl.search.unequal import STEPS, unequal
from tests.search.conftest import EQUAL, blobs, configured, space_of

C = 5


@pytest.fixture(scope="module")
def even_of_uneven(uneven):
    return search(uneven[0], C, 0, starts=2)[0]


@pytest.fixture(scope="module")
def equal():
    """Equal clusters that overlap a little, and what the search finds."""
    views, labels = blobs(EQUAL, spread=2.0)
    space = space_of(views)
    return space, torch.from_numpy(labels), search(space, C, 0, starts=2)[0]


def test_unequal_clusters_are_let_go(uneven, even_of_uneven):
    space, truth = uneven
    even = even_of_uneven[0].labels
    assert clustering_accuracy(truth, even) < 0.8
    steps = []
    found = unequal(space, C, 0, even_of_uneven, on_step=lambda: steps.append(1))
    assert found is not None
    assert clustering_accuracy(truth, found[0].labels) > 0.95
    assert recall(space, found[0].labels, C) > recall(space, even, C)
    assert len(steps) == STEPS


def test_others_are_the_starts_of_the_search_let_go(uneven, even_of_uneven):
    space, _ = uneven
    best, *others = unequal(space, C, 0, even_of_uneven)
    assert not best.own_start
    starts = [c.labels for c in even_of_uneven if c.own_start]
    assert len(starts) == 3  # two of k-means, one spectral
    for start, other in zip(starts, others, strict=True):
        labels = reanneal(space, start, C, sizes="any")
        assert torch.equal(other.labels, labels)
        assert other.score == score(space, labels, C)
        assert other.own_start


def test_equal_seeds_equal_labels(uneven, even_of_uneven):
    one, again = (unequal(uneven[0], C, 7, even_of_uneven) for _ in range(2))
    for a, b in zip(one, again, strict=True):
        assert torch.equal(a.labels, b.labels)


def test_equal_clusters_stay(equal):
    space, truth, even = equal
    assert clustering_accuracy(truth, even[0].labels) > 0.95
    assert unequal(space, C, 0, even) is None


def test_they_must_be_told_apart_more_clearly_by_the_margin(uneven, even_of_uneven):
    space = configured(uneven[0], proposals=4)
    labels = unequal(space, C, 0, even_of_uneven, doubted=False)[0].labels
    gained = clarity(space, labels, C) - clarity(space, even_of_uneven[0].labels, C)
    assert gained > 0
    asked_for_less = configured(space, size_margin=0.99 * gained)
    assert unequal(asked_for_less, C, 0, even_of_uneven) is not None
    asked_for_more = configured(space, size_margin=1.01 * gained)
    assert unequal(asked_for_more, C, 0, even_of_uneven) is None


def test_without_doubt_they_are_let_go_all_the_same(equal):
    space, truth, even = equal
    steps = []
    found = unequal(space, C, 0, even, doubted=False, on_step=lambda: steps.append(1))
    assert found is not None
    assert len(steps) == STEPS
    assert clustering_accuracy(truth, found[0].labels) > 0.9


def test_no_cluster_is_left_empty(equal, monkeypatch):
    """Jumps may end with one that nobody is in."""
    space, truth, even = equal
    merged = torch.where(truth == 1, 0, truth)
    monkeypatch.setattr(module, "split_and_merge", lambda *_, **__: merged)
    found = unequal(space, C, 0, even, doubted=False)
    assert clustering_accuracy(truth, found[0].labels) > 0.95


def test_recall_counts_every_cluster_alike(uneven):
    """Slowly: of each cluster, the share that maps put there."""
    space, truth = uneven
    labels = torch.where(truth == 4, 3, truth)  # the smallest is thrown to another
    labels[labels == 0] = torch.where(torch.arange(300) % 2 == 0, 0, 4)  # one is cut
    for partition in (truth, labels):
        Y = torch.nn.functional.one_hot(partition, C).float()
        z = space.mean([fit.left_out(Y - Y.mean(dim=0)) for fit in space.fits])
        said = (0.5 * log_odds(z, Y) + Y.mean(dim=0).log()).argmax(dim=1)
        known = [(said == k)[partition == k].float().mean() for k in range(C)]
        total = float(sum(known)) / C
        assert recall(space, partition, C) == pytest.approx(total, rel=1e-4)
    assert recall(space, truth, C) > recall(space, labels, C) + 0.1


def test_crumbs_of_overlapping_clusters_are_not_believed():
    """Two pairs of clusters thrown together, and two crumbs broken off."""
    views, labels = blobs((80,) * 6, spread=2.5, seed=3)
    space, truth = space_of(views), torch.from_numpy(labels)
    crumbs = truth.clone()
    crumbs[truth == 1] = 0
    crumbs[truth == 3] = 2
    for source, empty in ((0, 1), (2, 3)):
        crumbs[torch.nonzero(crumbs == source).flatten()[:6]] = empty
    assert recall(space, truth, 6) > recall(space, crumbs, 6)
    assert clarity(space, truth, 6) > clarity(space, crumbs, 6)


def test_clarity_asks_for_information_and_for_recall(uneven):
    space, truth = uneven
    merged = torch.where(truth == 1, 0, truth)
    for labels in (truth, merged):
        expected = evidence(space, labels, C).share + recall(space, labels, C)
        assert clarity(space, labels, C) == pytest.approx(expected)


def test_an_empty_cluster_is_not_counted(uneven):
    space, truth = uneven
    assert recall(space, truth, C + 2) == pytest.approx(recall(space, truth, C))
