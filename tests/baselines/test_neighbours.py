"""Nearest neighbours against a sort of all similarities, and pairs drawn from them."""

import itertools

import numpy as np
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

checked = settings(max_examples=30, deadline=None, derandomize=True, database=None)


def rows(n: int, d: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    # Rows of very different lengths: only the direction may count.
    lengths = torch.rand((n, 1), generator=generator) * 9 + 0.1
    return torch.randn((n, d), generator=generator, dtype=torch.float64) * lengths


def slow_neighbours(x: torch.Tensor, count: int) -> list[list[int]]:
    found = []
    for i, a in enumerate(x):
        others = [j for j in range(len(x)) if j != i]
        cosine = {j: float(a @ x[j] / (a.norm() * x[j].norm())) for j in others}
        found.append(sorted(others, key=lambda j: -cosine[j])[:count])
    return found


@checked
@given(
    n=st.integers(2, 25),
    d=st.integers(2, 5),
    block=st.integers(1, 700),
    seed=st.integers(0, 999),
    data=st.data(),
)
def test_the_most_similar_rows_come_first_in_any_block(n, d, block, seed, data):
    count = data.draw(st.integers(1, n - 1))
    x = rows(n, d, seed)
    assert nearest_neighbours(x, count, block).tolist() == slow_neighbours(x, count)


def test_a_row_is_not_its_own_neighbour_even_beside_its_copies():
    x = rows(10, 3).repeat(2, 1)  # each row twice
    found = nearest_neighbours(x, 4)
    assert not (found == torch.arange(20)[:, None]).any()
    assert found[:, 0].tolist() == [*range(10, 20), *range(10)]


def test_a_row_of_zeros_is_no_accident():
    x = rows(6, 3)
    x[2] = 0
    found = nearest_neighbours(x, 5)
    assert sorted(found[2].tolist()) == [0, 1, 3, 4, 5]


@pytest.mark.parametrize("count", [0, 5, 9])
def test_impossible_numbers_are_refused(count):
    with pytest.raises(ValueError, match=f"{count} neighbours of each of 5 samples"):
        nearest_neighbours(rows(5, 2), count)


def test_memory_is_bounded_by_the_block(monkeypatch):
    largest = 0
    topk = torch.Tensor.topk

    def spy(self, *args, **kwargs):
        nonlocal largest
        largest = max(largest, self.numel())
        return topk(self, *args, **kwargs)

    monkeypatch.setattr(torch.Tensor, "topk", spy)
    nearest_neighbours(rows(50, 3), 4, block_scores=220)
    assert 0 < largest <= 220


def test_views_count_alike_whatever_their_scale():
    a, b = rows(8, 3, 1), rows(8, 7, 2)
    joined = side_by_side([a, b * 1000])
    assert joined.shape == (8, 10)
    cosine = torch.nn.functional.cosine_similarity
    for i, j in itertools.combinations(range(8), 2):
        mean = (cosine(a[i], a[j], dim=0) + cosine(b[i], b[j], dim=0)) / 2
        torch.testing.assert_close(cosine(joined[i], joined[j], dim=0), mean)


@pytest.mark.parametrize(
    ("wanted", "n", "C", "usable"),
    [(50, 3680, 37, 50), (50, 1428, 102, 14), (50, 30, 20, 1), (9, 3, 3, 1)],
)
def test_no_more_neighbours_than_a_cluster_has_members(wanted, n, C, usable):
    assert usable_neighbours(wanted, n, C) == usable


def draw(neighbours, batches, seed=3, generator=0):
    pairs = neighbour_pairs(
        neighbours, 7, seed, torch.Generator().manual_seed(generator)
    )
    drawn = list(itertools.islice(pairs, batches))
    return [torch.cat(side).tolist() for side in zip(*drawn, strict=True)]


def test_pairs_are_samples_with_one_of_their_neighbours():
    neighbours = nearest_neighbours(rows(20, 3), 4)
    seen = [set() for _ in range(20)]
    samples, others = draw(neighbours, 3 * 100)  # 100 epochs of 3 batches
    for i, j in zip(samples, others, strict=True):
        seen[i].add(j)
    assert [sorted(s) for s in seen] == neighbours.sort(dim=1).values.tolist()
    np.testing.assert_array_equal(np.bincount(samples), np.full(20, 100))


def test_pairs_repeat_with_the_seeds():
    neighbours = nearest_neighbours(rows(20, 3), 4)
    first = draw(neighbours, 9)
    assert draw(neighbours, 9) == first
    assert draw(neighbours, 9, seed=4)[0] != first[0]
    assert draw(neighbours, 9, generator=1)[0] == first[0]
    assert draw(neighbours, 9, generator=1)[1] != first[1]
