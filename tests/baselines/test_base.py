"""Views side by side, and pairs of neighbours."""

import itertools

import numpy as np
import pytest
import torch

from sagl.baselines.base import (
    neighbour_pairs,
    side_by_side,
    usable_neighbours,
)
from sagl.nn.neighbours import nearest_neighbours


def rows(n: int, d: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    # Rows of very different lengths: only the direction may count.
    lengths = torch.rand((n, 1), generator=generator) * 9 + 0.1
    return torch.randn((n, d), generator=generator, dtype=torch.float64) * lengths


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


def draw(x, batches, seed=3, generator=0):
    pairs = neighbour_pairs(x, 4, 7, seed, torch.Generator().manual_seed(generator))
    drawn = [batch.chunk(2) for batch in itertools.islice(pairs, batches)]
    return [torch.cat(side).tolist() for side in zip(*drawn, strict=True)]


def test_pairs_are_samples_with_one_of_their_neighbours():
    x = rows(20, 3)
    neighbours, _ = nearest_neighbours(x, 4)
    seen = [set() for _ in range(20)]
    samples, others = draw(x, 3 * 100)  # 100 epochs of 3 batches
    for i, j in zip(samples, others, strict=True):
        seen[i].add(j)
    assert [sorted(s) for s in seen] == neighbours.sort(dim=1).values.tolist()
    np.testing.assert_array_equal(np.bincount(samples), np.full(20, 100))


def test_pairs_repeat_with_the_seeds():
    x = rows(20, 3)
    first = draw(x, 9)
    assert draw(x, 9) == first
    assert draw(x, 9, seed=4)[0] != first[0]
    assert draw(x, 9, generator=1)[0] == first[0]
    assert draw(x, 9, generator=1)[1] != first[1]
