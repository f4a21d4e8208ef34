"""Clusters of unequal sizes: found where they are, and only there."""

import pytest
import torch

from sagl.evaluation import clustering_accuracy
from sagl.partition import unequal as module
from sagl.partition.anneal import anneal, softened
from sagl.partition.evidence import Evidence, evidence
from sagl.partition.score import score
from sagl.partition.search import search
from sagl.partition.unequal import is_clear, steps_of, unequal
from tests.partition.conftest import EQUAL, blobs, space_of

C = 5


@pytest.fixture(scope="module")
def even_of_uneven(uneven):
    return search(uneven[0], C, 0, restarts=2)[0]


@pytest.fixture(scope="module")
def equal():
    """Equal clusters that overlap a little, and what the search finds."""
    views, labels = blobs(EQUAL, spread=2.0)
    space = space_of(views)
    return space, torch.from_numpy(labels), search(space, C, 0, restarts=2)[0]


def test_unequal_clusters_are_let_go(uneven, even_of_uneven):
    space, truth = uneven
    even = even_of_uneven[0].labels
    assert clustering_accuracy(truth, even) < 0.8
    steps = []
    found = unequal(space, C, 0, even_of_uneven, on_step=lambda: steps.append(1))
    assert found is not None
    assert clustering_accuracy(truth, found[0].labels) > 0.95
    assert is_clear(evidence(space, even, C), evidence(space, found[0].labels, C))
    assert len(steps) == steps_of()


def test_others_are_the_starts_of_the_search_let_go(uneven, even_of_uneven):
    space, _ = uneven
    best, *others = unequal(space, C, 0, even_of_uneven)
    assert not best.own_start
    starts = [c.labels for c in even_of_uneven if c.own_start]
    assert len(starts) == 3  # two of k-means, one spectral
    for start, other in zip(starts, others, strict=True):
        soft = softened(start, C)
        labels = anneal(space, soft, hot=0.3, steps=40, first_graph=0.0, sizes="any")
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


def test_without_doubt_they_are_let_go_all_the_same(equal):
    space, truth, even = equal
    steps = []
    found = unequal(space, C, 0, even, doubted=False, on_step=lambda: steps.append(1))
    assert found is not None
    assert len(steps) == steps_of()
    assert clustering_accuracy(truth, found[0].labels) > 0.9


def test_no_cluster_is_left_empty(equal, monkeypatch):
    """Jumps may end with one that nobody is in."""
    space, truth, even = equal
    merged = torch.where(truth == 1, 0, truth)
    monkeypatch.setattr(module, "jump", lambda *_, **__: merged)
    found = unequal(space, C, 0, even, doubted=False)
    assert clustering_accuracy(truth, found[0].labels) > 0.95


@pytest.mark.parametrize(
    ("share", "even_entropy", "free_entropy", "needed"),
    [
        (0.5, 1.0, 1.0, module._GAIN),
        (0.5, 1.0, 1.5, module._GAIN),  # entropy gained is no reason to ask for less
        (0.4, 2.0, 1.0, module._PER_NAT),
        (0.4, 1.5, 1.0, module._PER_NAT / 2),
        (0.4, 1.01, 1.0, module._GAIN),
        (1.5, 2.0, 1.0, 1.5 * (2**module._ELASTICITY - 1)),
        (1.9, 2.0, 1.6, 1.9 * (1.25**module._ELASTICITY - 1)),
    ],
)
def test_what_must_be_gained_to_be_clear(share, even_entropy, free_entropy, needed):
    even = Evidence(share * even_entropy, even_entropy)
    for more, clear in ((1e-6, True), (-1e-6, False)):
        free = Evidence((share + needed + more) * free_entropy, free_entropy)
        assert is_clear(even, free) is clear


@pytest.mark.parametrize("information", [0.0, -0.01])
def test_even_clusters_may_tell_nothing_at_all(information):
    assert is_clear(Evidence(information, 1.0), Evidence(0.5, 0.9))
    assert not is_clear(Evidence(information, 1.0), Evidence(0.0, 0.0))


def test_what_must_be_gained_is_as_measured():
    found = (module._GAIN, module._PER_NAT, module._ELASTICITY)
    assert found == (0.04, 0.3, 0.65)
