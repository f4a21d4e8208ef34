"""Graphs by cells against all scores, and certificates against the truth."""

import pytest
import torch

from sagl.nn.attention import attend
from sagl.nn.cells import Cells, attention_by_cells, near_in_cells
from sagl.nn.neighbours import nearest_neighbours, unit_rows
from sagl.nn.network import Linear

N, D = 1500, 6


def samples(n=N, spread=0.3, seed=0):
    """Nine groups far apart: most cells can be passed over."""
    generator = torch.Generator().manual_seed(seed)
    centres = 3 * torch.randn(9, D, generator=generator)
    which = torch.randint(9, (n,), generator=generator)
    return centres[which] + spread * torch.randn(n, D, generator=generator)


def linear_of(z, gate=None):
    generator = torch.Generator().manual_seed(1)
    turn = torch.eye(D) + 0.1 * torch.randn(D, D, generator=generator)
    return Linear(z[:, :1], 2 * z @ turn, z, gate)


def dense_graph(linear, alpha, self_loops):
    own = None if self_loops else torch.arange(len(linear.keys))
    _, graph = attend(
        *linear[1:3], linear.values, linear.gate, alpha, True, exclude=own
    )
    return graph.to_dense()


def as_dense(weights):
    return weights.tensor().to_dense()


@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("alpha", [1.3, 1.5, 2.0])
@pytest.mark.parametrize("spread", [0.3, 3.0])  # groups apart, and one cloud
def test_the_graph_is_that_of_all_scores(self_loops, alpha, spread):
    linear = linear_of(samples(spread=spread))
    found = attention_by_cells(linear, alpha, self_loops)
    expected = dense_graph(linear, alpha, self_loops)
    assert found.certified.all()
    torch.testing.assert_close(as_dense(found.weights), expected, atol=1e-4, rtol=0)
    assert torch.equal(as_dense(found.weights) > 1e-4, expected > 1e-4)


def test_gates_sharpen_rows_each_by_its_own_factor():
    gate = torch.rand(N, generator=torch.Generator().manual_seed(2)) + 0.5
    linear = linear_of(samples(), gate)
    found = as_dense(attention_by_cells(linear, 1.5, True).weights)
    expected = dense_graph(linear, 1.5, True)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


def test_a_row_is_certified_only_if_it_is_exact():
    linear = linear_of(samples(spread=1.5))
    found = attention_by_cells(linear, 1.5, False, most=2)
    off = (as_dense(found.weights) - dense_graph(linear, 1.5, False)).abs().amax(dim=1)
    exact = off < 1e-4
    assert exact[found.certified].all()
    assert found.certified.any()
    assert not exact.all()  # else two cells were enough, and nothing is tested


def test_rows_are_in_order_and_sum_to_one():
    weights = attention_by_cells(linear_of(samples()), 1.5, False).weights
    rows = weights.rows()
    assert ((rows.diff() > 0) | (weights.cols.diff() > 0)).all()
    sums = torch.zeros(N).index_add_(0, rows, weights.entries)
    torch.testing.assert_close(sums, torch.ones(N), atol=1e-5, rtol=0)
    assert (rows != weights.cols).all()


def test_cells_that_cannot_count_are_not_looked_into(monkeypatch):
    monkeypatch.setattr("sagl.nn.cells._PER_CELL", 50)
    keys = samples(6000, spread=0.05)
    cells = Cells(keys)
    looked = []
    scores = cells._scores

    def counted(q, chosen):
        looked.append(int(cells.sizes[chosen].sum()) * len(q))
        return scores(q, chosen)

    cells._scores = counted
    for block in cells.blocks(2 * keys):
        cells.above(2 * keys, block, lambda x: x.amax(dim=1) - 1)
    assert sum(looked) < 0.5 * len(keys) ** 2


def test_identical_samples_share_their_weight_alike():
    linear = linear_of(torch.ones(700, D))
    found = attention_by_cells(linear, 1.5, False).weights
    assert len(found.entries) == 700 * 699
    torch.testing.assert_close(found.entries, torch.full_like(found.entries, 1 / 699))


def test_the_k_best_keys_are_above_the_need_of_k_neighbours():
    keys, k = samples(), 7
    cells = Cells(keys)

    def need(x):
        return x.topk(k + 1, dim=1).values[:, -1].nextafter(torch.tensor(-1e9))

    best = (keys @ keys.T).topk(k, dim=1).indices
    for block in cells.blocks(keys):
        found = cells.above(keys, block, need, least=k + 1)
        for i, query in enumerate(block.tolist()):
            assert set(best[query].tolist()) <= set(
                found.keys[found.rows == i].tolist()
            )


def test_with_all_cells_neighbours_are_those_among_all():
    """The slow twin: every pair is compared."""
    x = unit_rows(samples(spread=1.0))
    positions, cosines = near_in_cells(x, 7, cells=N)
    expected, of_expected = nearest_neighbours(x, 7)
    torch.testing.assert_close(cosines, of_expected)
    assert (positions == expected).float().mean() > 0.999  # but for ties


def test_few_cells_hold_most_neighbours():
    generator = torch.Generator().manual_seed(0)
    x = unit_rows(torch.randn(6000, 4, generator=generator))
    positions, cosines = near_in_cells(x, 10, cells=6)
    expected, _ = nearest_neighbours(x, 10)
    own = torch.arange(len(x))[:, None]
    assert (positions != own).all()
    assert (cosines.diff(dim=1) <= 0).all()
    torch.testing.assert_close(cosines, (x[:, None] * x[positions]).sum(dim=2))
    found = (positions[:, :, None] == expected[:, None]).any(dim=1)
    assert found.float().mean() > 0.9


def test_more_cells_are_looked_into_where_some_are_small():
    x = unit_rows(samples(n=600, spread=0.3))
    positions, cosines = near_in_cells(x, 500, cells=1)
    assert cosines.isfinite().all()
    assert all(len(row.unique()) == 500 for row in positions)
