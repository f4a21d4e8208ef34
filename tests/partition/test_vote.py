"""How much neighbours have to say: by who errs less about the clusters found."""

import numpy as np
import pytest
import torch

from sagl.partition.space import Space
from sagl.partition.vote import elect
from tests.partition.conftest import blobs, space_of


def rings(n=400, seed=0):
    """Two views of four groups on a ring, each in two opposite places: no plane cuts
    out a group, and its samples lie together."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(4, size=n)
    views = []
    for _ in range(2):
        opposite = rng.integers(2, size=n)
        angle = (labels + 4 * opposite) * np.pi / 4 + rng.normal(scale=0.1, size=n)
        ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        views.append(torch.from_numpy(ring).float())
    return Space(views), torch.from_numpy(labels)


def obvious(space, labels, n_clusters, nearest):
    """Errors of ridge regressions and of neighbours, sample by sample."""
    n = len(labels)
    Y = torch.eye(n_clusters)[labels]
    centred = (Y - Y.mean(dim=0)).double()
    maps = torch.zeros(n, n_clusters, dtype=torch.float64)
    votes = torch.zeros(n, n_clusters, dtype=torch.float64)
    for share, view in zip(space.weights, space.views, strict=True):
        x = view.double()
        penalty = 10 * x.square().sum() / n * torch.eye(x.shape[1])
        cosines = x @ x.T
        for i in range(n):
            rest = torch.arange(n) != i
            solved = torch.linalg.solve(
                x[rest].T @ x[rest] + penalty, x[rest].T @ centred[rest]
            )
            maps[i] += share * (x[i] @ solved)
            cosines[i, i] = -2
            for j in cosines[i].argsort(descending=True)[:nearest]:
                votes[i, labels[j]] += share / nearest
    maps /= maps.std(dim=0)
    wrong = [(p.argmax(dim=1) != labels).sum() for p in (maps, votes + 1e-6 * maps)]
    return [float(count) for count in wrong], votes


def test_the_weight_is_by_who_errs_less():
    views, truth = blobs((30, 30, 30, 30, 30), spread=2.5)
    space, labels = space_of(views), torch.from_numpy(truth)
    found = elect(space, labels, 5)
    (maps, neighbours), votes = obvious(space, labels, 5, nearest=10)
    assert maps > 5
    assert neighbours > 5
    expected = 4 * ((maps + 0.5) / (neighbours + 0.5)) ** 4
    assert 0.1 < expected < 8  # where neither limit hides it
    assert found.voters.weight == pytest.approx(expected)
    torch.testing.assert_close(found.votes, votes, atol=1e-6, rtol=0)


def test_neighbours_decide_where_planes_cannot():
    space, labels = rings()
    assert elect(space, labels, 4).voters.weight == 8  # the most there is


def test_neighbours_that_know_far_less_are_not_asked():
    """Noise in all directions but one: a plane ignores it, distances do not."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=1500)
    rows = 3 * rng.normal(size=(1500, 30)).astype(np.float32)
    rows[:, 0] = rows[:, 0] / 3 + 6 * (labels - 0.5)
    space = Space([torch.from_numpy(rows - rows.mean(axis=0))])
    assert elect(space, torch.from_numpy(labels), 2) is None


@pytest.mark.parametrize("sizes", ["even", "free"])
def test_voters_are_the_samples_with_the_clusters_found(uneven, sizes):
    space, truth = uneven
    weighted = space.weighted([3.0, 1.0])
    voters = elect(weighted, truth, 5, sizes).voters
    assert torch.equal(voters.labels, truth)
    assert voters.shares == [0.75, 0.25]
    assert voters.nearest == 10
    for kept, x in zip(voters.features, space.views, strict=True):
        torch.testing.assert_close(kept.float(), x, atol=1e-3, rtol=0)


def test_no_more_vote_than_the_graph_has_neighbours():
    views, truth = blobs((10, 10, 10))
    features = [torch.from_numpy(h - h.mean(axis=0)) for _, h in views.items()]
    labels = torch.from_numpy(truth)
    assert elect(Space(features, neighbours=5), labels, 3).voters.nearest == 5
    few = Space([x[:4] for x in features], neighbours=5)
    assert elect(few, torch.zeros(4, dtype=torch.int64), 3).voters.nearest == 3
