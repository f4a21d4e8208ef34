"""Nearest neighbours against a sort of all similarities."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl.nn.neighbours import nearest_neighbours

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
    found, cosines = nearest_neighbours(x, count, block)
    assert found.tolist() == slow_neighbours(x, count)
    expected = torch.cosine_similarity(x[:, None], x[found], dim=2)
    torch.testing.assert_close(cosines, expected)


def test_a_row_is_not_its_own_neighbour_even_beside_its_copies():
    x = rows(10, 3).repeat(2, 1)  # each row twice
    found, _ = nearest_neighbours(x, 4)
    assert not (found == torch.arange(20)[:, None]).any()
    assert found[:, 0].tolist() == [*range(10, 20), *range(10)]


def test_a_row_of_zeros_is_no_accident():
    x = rows(6, 3)
    x[2] = 0
    found, _ = nearest_neighbours(x, 5)
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
