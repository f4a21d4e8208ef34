"""Mergers lose what the criterion says they lose, and the cheapest comes first."""

import itertools
import math

import torch

from sagl.clusters import merging
from sagl.clusters.merging import (
    Tables,
    cuts,
    information,
    loss,
    tables_of,
    with_nearness,
)
from sagl.search.score import mutual_information, score
from tests.conftest import clustered_views
from tests.search.conftest import space_of


def some_tables(C=6, seed=0):
    p = torch.rand(3, C, C, generator=torch.Generator().manual_seed(seed)).double() ** 4
    p[0] = p[0] + p[0].T
    p[1, 2, 3] = 0
    return Tables(
        p / p.sum(dim=(1, 2), keepdim=True), torch.tensor([0.5, 0.2, 0.3]).double()
    )


def xlogx(x):
    return x * math.log(x)


def p_of(tables, k):
    """All that is in the row and in the column of a cluster."""
    p = (tables.weight[:, None, None] * tables.p).sum(dim=0)
    return torch.cat([p[k], p[:, k]])


def told(p):
    return mutual_information(p)


def test_the_tables_tell_what_the_criterion_measures():
    views, labels = clustered_views(120, spread=2.0)
    space, labels = space_of(views), torch.from_numpy(labels)
    total = score(space, labels, 4).total
    assert abs(information(tables_of(space, labels, 4)) - total) < 1e-5


def test_loss_is_that_of_adding_up_rows_and_columns():
    tables = some_tables()
    one, other = torch.triu_indices(6, 6, offset=1)
    lost = loss(tables, one, other)
    for a, b, nats in zip(one.tolist(), other.tolist(), lost.tolist(), strict=True):
        place = torch.eye(6, dtype=torch.float64)
        place[a] += place[b]
        place = place[[k for k in range(6) if k != b]]
        expected = sum(
            float(w) * (told(p) - told(place @ p @ place.T))
            for p, w in zip(*tables, strict=True)
        )
        assert abs(nats - expected) < 1e-9
        assert nats > -1e-12


def test_cuts_nest_and_the_first_is_the_cheapest():
    tables = some_tables(8)
    found, told = cuts(tables)
    assert sorted(found) == list(range(2, 9))
    for k in range(2, 9):
        assert found[k].unique().tolist() == list(range(k))
    assert [told[k] for k in range(2, 9)] == sorted(told.values())
    for k in range(3, 9):
        inside = {(int(a), int(b)) for a, b in zip(found[k], found[k - 1], strict=True)}
        assert len(inside) == k  # each cluster is in one of the coarser ones
    pairs = list(itertools.combinations(range(8), 2))

    def relative(pair):
        a, b = (float(p_of(tables, k).sum()) for k in pair)
        apart = xlogx(a + b) - xlogx(a) - xlogx(b)
        return float(loss(tables, *torch.tensor(pair)[:, None])) / apart

    cheapest = min(pairs, key=relative)
    together = found[7]
    assert together[cheapest[0]] == together[cheapest[1]]


def test_of_many_clusters_the_pairs_that_share_most_are_enough(monkeypatch):
    """Blocks of clusters that are mistaken for each other alone."""
    p = torch.full((1, 12, 12), 1e-4).double()
    for block in range(4):
        p[:, 3 * block : 3 * block + 3, 3 * block : 3 * block + 3] = 1.0
    tables = Tables(p / p.sum(), torch.ones(1).double())
    whole = cuts(tables).places[4]
    monkeypatch.setattr(merging, "_MOST_PAIRS", 12)
    assert torch.equal(cuts(tables).places[4], whole)
    assert whole.tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3


def test_clusters_that_nobody_mistakes_merge_by_their_means():
    tables = Tables(torch.eye(4).double()[None] / 4, torch.ones(1).double())
    means = torch.tensor([[1.0, 0.1], [0.1, 1.0], [1.0, 0.0], [0.0, 1.0]])
    guide = with_nearness(tables, means, torch.ones(4).double())
    assert cuts(tables, guide).places[2].tolist() == [0, 1, 0, 1]
