"""What annealing keeps to: each constraint by itself, and all of them together."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl.search.anneal import anneal, reanneal, smoothed
from sagl.search.constraints import constraints

checked = settings(max_examples=60, deadline=None, derandomize=True, database=None)
N, C = 12, 4


@st.composite
def told(draw):
    """Disjoint groups, clusters that some samples may be in, pairs to be apart."""
    order = draw(st.permutations(range(N)))
    cuts = draw(st.lists(st.integers(2, 3), max_size=3))
    groups, at = [], 0
    for size in cuts:
        groups.append(order[at : at + size])
        at += size
    some = st.sets(st.integers(0, C - 1), min_size=2)
    allowed = draw(st.dictionaries(st.integers(0, N - 1), some, max_size=4))
    home = {row: g for g, rows in enumerate(groups) for row in rows}
    for rows in groups:  # else a group may have no cluster left
        for row in rows[1:]:
            allowed.pop(row, None)
    pairs = draw(st.lists(st.tuples(*[st.integers(0, N - 1)] * 2), max_size=4))
    apart = [
        (a, b) for a, b in pairs if a != b and (a not in home or home[a] != home.get(b))
    ]
    return groups, allowed, apart


@checked
@given(told(), st.integers(0, 1000))
def test_decided_labels_keep_what_can_be_kept(problem, seed):
    groups, allowed, apart = problem
    held = constraints(N, C, allowed=allowed, linked=groups, apart=apart)
    generator = torch.Generator().manual_seed(seed)
    p = held.within(3 * torch.randn(N, C, generator=generator))
    Y = held.kept_apart(torch.softmax(p, dim=1))
    torch.testing.assert_close(Y.sum(dim=1), torch.ones(N))
    labels = held.decided(Y).tolist()
    for rows in groups:
        assert len({labels[row] for row in rows}) == 1
    for row, clusters in allowed.items():
        assert labels[row] in clusters
    free = torch.ones(N, dtype=torch.bool)
    free[held.rows] = False
    assert torch.equal(torch.tensor(labels)[free], Y.argmax(dim=1)[free])
    # Each group has two clusters or more to choose from: one other group can always be
    # made way for.
    degree = max(map(len, held.apart), default=0)
    if degree <= 1:
        assert all(labels[a] != labels[b] for a, b in apart)


def test_the_surer_one_of_two_comes_first():
    held = constraints(2, 3, allowed={}, apart=[(0, 1)])
    Y = torch.tensor([[0.6, 0.4, 0.0], [0.9, 0.1, 0.0]])
    kept = held.kept_apart(Y)
    assert torch.equal(kept[1], Y[1])
    expected = torch.tensor([0.6 * 0.1, 0.4 * 0.9, 0.0])
    torch.testing.assert_close(kept[0], expected / expected.sum())
    assert held.decided(kept).tolist() == [1, 0]


def test_too_many_that_are_to_be_apart_get_a_cluster_all_the_same():
    apart = [(a, b) for a in range(4) for b in range(a)]
    held = constraints(4, 2, allowed={}, apart=apart)
    labels = held.decided(held.kept_apart(torch.full((4, 2), 0.5)))
    assert set(labels.tolist()) == {0, 1}


@pytest.mark.parametrize("sizes", ["balanced", "any"])
@pytest.mark.parametrize("swapped", [False, True])
def test_annealing_carries_labels_to_others_and_keeps_them(problem, sizes, swapped):
    space, truth = problem
    start = torch.where(truth == 1, 0, truth)  # two are taken for one
    wanted = truth
    if swapped:
        wanted = torch.tensor([1, 0, 2, 3])[truth]
    rows = torch.nonzero(wanted == 1).flatten()[:4].tolist()
    start[rows] = 1
    allowed, emphasis = {row: [1] for row in rows}, dict.fromkeys(rows, 3.0)
    held = constraints(len(space), 4, allowed=allowed, emphasis=emphasis)
    labels = reanneal(space, start, 4, sizes=sizes, held=held)
    assert torch.equal(labels[rows], wanted[rows])
    assert (labels == wanted).float().mean() > 0.95


def test_nothing_held_is_the_same_bits(problem):
    space, truth = problem
    Y = smoothed(space, truth.roll(40), 4)
    held = constraints(len(space), 4, allowed={})
    assert torch.equal(anneal(space, Y), anneal(space, Y, held=held))


def test_shares_are_what_sizes_are_brought_to(problem):
    space, _truth = problem
    generator = torch.Generator().manual_seed(0)
    Y = torch.softmax(torch.randn(len(space), 2, generator=generator), dim=1)
    shares = torch.tensor([0.25, 0.75])
    held = constraints(len(space), 2, allowed={}, shares=shares)
    found = torch.bincount(anneal(space, Y, held=held), minlength=2) / len(space)
    even = torch.bincount(anneal(space, Y), minlength=2) / len(space)
    assert abs(float(found[0]) - 0.25) < 0.06
    assert abs(float(even[0]) - 0.5) < 0.06
