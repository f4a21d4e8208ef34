"""A view counts by what its neighbours know of the clusters of the others."""

import numpy as np
import pytest
import torch

from sagl.search.space import Space
from sagl.search.weights import weigh
from tests.conftest import clustered_views
from tests.search.conftest import configured

C = 4


def blurred(amounts, n=300, seed=0):
    """One view per amount of noise added to the same clusters."""
    views, _ = clustered_views(n, spread=1.0)
    rng = np.random.default_rng(seed)
    first = views.take(np.arange(n))[0]
    found = []
    for amount in amounts:
        h = first @ rng.normal(size=(first.shape[1], 10))
        h = h / h.std() + amount * rng.normal(size=h.shape)
        found.append(torch.from_numpy(h - h.mean(axis=0)))
    return Space(found, 10)


@pytest.mark.parametrize("seed", range(3))
def test_a_poor_view_counts_less(seed):
    weights = weigh(blurred([0.3, 1.0, 2.0]), C, seed).weights
    assert sum(weights) == pytest.approx(1)
    assert min(weights[0], weights[1]) > 1.5 * weights[2] > 0


def test_good_views_count_alike():
    weights = weigh(blurred([0.1, 0.1, 0.1]), C, 0).weights
    assert weights == pytest.approx([1 / 3] * 3, rel=0.1)


def test_the_power_says_how_sharply():
    """None of it, all views count alike; twice of it squares the weights."""
    space = blurred([0.3, 1.0, 2.0])
    none, once, twice = (
        weigh(configured(space, view_power=power), C, 0).weights
        for power in (0.0, 1.0, 2.0)
    )
    assert none == pytest.approx([1 / 3] * 3)
    squares = [weight**2 for weight in once]
    assert twice == pytest.approx([square / sum(squares) for square in squares])
    assert max(once) > 1.1 * min(once)


def test_the_order_of_views_does_not_matter():
    space = blurred([0.3, 2.0])
    swapped = Space(space.views[::-1], 10)
    one, other = weigh(space, C, 0).weights, weigh(swapped, C, 0).weights
    assert one == pytest.approx(other[::-1], rel=1e-4)


def test_a_view_is_not_judged_by_itself_on_another_scale():
    space = blurred([0.3, 2.0])
    good, poor = space.views
    twice = Space([good, poor, good, poor], 10, scales=2)
    expected = weigh(space, C, 0).weights
    assert weigh(twice, C, 0).view_weights == pytest.approx(expected, rel=0.1)


def test_one_view_has_all_the_weight():
    assert weigh(blurred([0.5]), C, 0).weights == [1.0]
