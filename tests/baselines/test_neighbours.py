"""Nearest neighbours against a sort of all distances."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl.baselines.neighbours import (
    nearest_neighbours,
    neighbour_pairs,
    side_by_side,
    usable_neighbours,
)
from tests.nn.slow import normal

checked = settings(max_examples=30, deadline=None, derandomize=True, database=None)


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(3, 20),
    width=st.integers(2, 6),
    block=st.sampled_from([1, 25, 10_000]),
    data=st.data(),
)
@checked
def test_equals_a_sort_by_cosine(seed, n, width, block, data):
    count = data.draw(st.integers(1, n - 1))
    x = normal(n, width, seed=seed)
    found = nearest_neighbours(x, count, block)
    unit = x / x.norm(dim=1, keepdim=True)
    for i in range(n):
        cosine = [(float(unit[i] @ unit[j]), j) for j in range(n) if j != i]
        expected = [j for _, j in sorted(cosine, reverse=True)][:count]
        assert found[i].tolist() == expected


@pytest.mark.parametrize("count", [0, 5, 6])
def test_refuses_what_is_impossible(count):
    with pytest.raises(ValueError, match="of each of 5 samples: from 1 to 4"):
        nearest_neighbours(normal(5, 3, seed=0), count)


def test_no_more_neighbours_than_an_average_cluster_has():
    assert usable_neighbours(50, 3680, 37) == 50
    assert usable_neighbours(50, 1428, 102) == 14
    assert usable_neighbours(50, 10, 10) == 1


def test_views_side_by_side_count_alike():
    """The cosine of joined rows is the mean of the cosines in the views."""
    a, b = normal(4, 3, seed=0), 100 * normal(4, 5, seed=1)
    joined = side_by_side([a, b])
    for i in range(4):
        for j in range(4):
            mean = (
                torch.cosine_similarity(a[i], a[j], dim=0)
                + torch.cosine_similarity(b[i], b[j], dim=0)
            ) / 2
            cosine = torch.cosine_similarity(joined[i], joined[j], dim=0)
            torch.testing.assert_close(cosine, mean)


def test_pairs_are_of_neighbours_and_each_sample_comes_once_an_epoch():
    near = nearest_neighbours(normal(12, 3, seed=0), 4)
    pairs = neighbour_pairs(near, 5, 0, torch.Generator().manual_seed(0))
    epoch = [next(pairs) for _ in range(3)]
    rows = torch.cat([r for r, _ in epoch])
    assert sorted(rows.tolist()) == list(range(12))
    seen = set()
    for _ in range(90):
        for row, other in zip(*next(pairs), strict=True):
            assert int(other) in near[row].tolist()
            seen.add((int(row), int(other)))
    assert len(seen) == 48  # every neighbour has its turn
