"""Two clusters without chance: where 2-means would not move a sample."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl.search.centres import halved

checked = settings(max_examples=60, deadline=None, derandomize=True, database=None)


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
