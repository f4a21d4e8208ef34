"""Annealing: equal to an obvious loop over dense matrices, whatever the numbers."""

import pytest
import torch

from sagl.evaluation import clustering_accuracy
from sagl.search.anneal import Start, anneal, anneal_new, outlook, reanneal, smoothed
from tests.search.conftest import configured

C = 4
STEPS = 5  # few, from labels at random: where it ends depends on every detail
DEFAULT = {"steps": STEPS}
OTHER = DEFAULT | {
    "hot": 2.0,
    "warm": 0.7,
    "cold": 0.25,
    "smoothing": 0.6,
    "graph_weight": 3.0,
}


def arbitrary(seed, n=160):
    return torch.randint(C, (n,), generator=torch.Generator().manual_seed(seed))


def partly(truth, seed):
    """Labels of which a quarter is right: log odds of chance alone are noise."""
    n = len(truth)
    return torch.where(arbitrary(seed + 200, n) == 0, truth, arbitrary(seed, n))


def odds(p, membership):
    """Log odds of one cluster that samples belong to so much, both (n,)."""
    share = membership.mean()
    inside = (p * membership).sum() / membership.sum()
    outside = (p * (1 - membership)).sum() / (1 - membership).sum()
    apart = max(inside - outside, torch.tensor(1e-6))
    within = p.var() - share * (1 - share) * apart**2
    return (p - (inside + outside) / 2) * apart / within


def scaled(p, Y, sizes, cold):
    """Cluster by cluster: to a deviation of one, or to log odds when it is cold."""
    if sizes == "balanced":
        return p / p.std(dim=0)
    columns = []
    for k in range(C):
        low, high = Y[:, k].min(), Y[:, k].max()
        columns.append(cold * odds(p[:, k], (Y[:, k] - low) / (high - low)))
    return torch.stack(columns, dim=1)


def obvious(space, Y, hot, graph, sizes, near=None, old=()):
    """All clusters are predicted anew in each step, then the old ones put back."""
    A = torch.zeros(graph.shape)
    A[graph.rows(), graph.cols] = graph.entries
    config, old = space.config, list(old)
    for step in range(STEPS):
        centred = Y - Y.mean(dim=0)
        z = sum(fit.left_out(centred) for fit in space.fits) / len(space.fits)
        p = z + config.graph_weight * A @ centred
        p = scaled(p, Y, sizes, config.cold)
        if old:
            p[:, old] = near[:, old]
        Y = (p / (hot * (config.cold / hot) ** (step / STEPS))).softmax(dim=1)
        for _ in range(3 if sizes == "balanced" else 0):
            Y = Y / Y.sum(dim=0)
            Y = Y / Y.sum(dim=1, keepdim=True)
    return Y.argmax(dim=1)


@pytest.mark.parametrize("numbers", [DEFAULT, OTHER], ids=["default", "other"])
@pytest.mark.parametrize("sizes", ["balanced", "any"])
@pytest.mark.parametrize("new", [[0, 1], [2, 3, 1], [3, 0, 2, 1]])
@pytest.mark.parametrize("seed", range(5))
def test_new_clusters_are_those_of_the_obvious_loop(problem, seed, new, sizes, numbers):
    space, truth = configured(problem[0], **numbers), problem[1]
    given = [arbitrary(seed), arbitrary(seed + 100)]
    if sizes == "any":
        given = [partly(truth, seed), partly(truth, seed + 100)]
    near, graph = outlook(space, given[0], C, sizes)
    kept = near.clone()
    start = Start(given[1], torch.tensor(new))
    (found,) = anneal_new(space, [start], near, graph, steps=STEPS, sizes=sizes)
    Y, warm = smoothed(space, start.labels, C), space.config.warm
    old = [k for k in range(C) if k not in new]
    assert torch.equal(found, obvious(space, Y, warm, graph, sizes, near, old))
    assert torch.equal(near, kept)


@pytest.mark.parametrize("numbers", [DEFAULT, OTHER], ids=["default", "other"])
@pytest.mark.parametrize("seed", range(6))
def test_from_hot_to_cold_is_the_obvious_loop(problem, seed, numbers):
    space = configured(problem[0], **numbers)
    Y = smoothed(space, arbitrary(seed), C)
    found = anneal(space, Y, first_graph=1.0)  # the graph as it is, to the end
    expected = obvious(space, Y, space.config.hot, space.graph, "balanced")
    assert torch.equal(found, expected)


@pytest.mark.parametrize("numbers", [DEFAULT, OTHER], ids=["default", "other"])
@pytest.mark.parametrize("seed", range(3))
def test_labels_that_are_there_are_warmed_up_for_two_fifths_of_the_steps(
    problem, seed, numbers
):
    space = configured(problem[0], **numbers)
    labels = arbitrary(seed)
    Y, warm = smoothed(space, labels, C), space.config.warm
    expected = anneal(space, Y, hot=warm, steps=2, first_graph=0.0)
    assert torch.equal(reanneal(space, labels, C), expected)


def test_starts_side_by_side_do_not_see_each_other(problem):
    space, truth = problem
    near, graph = outlook(space, truth, C)
    starts = [
        Start(torch.where(truth == 1, 0, truth), torch.tensor([0, 1])),
        Start(arbitrary(1), torch.tensor([2, 3, 1])),
        Start(arbitrary(2), torch.tensor([0, 1, 2, 3])),
    ]
    together = anneal_new(space, starts, near, graph, steps=STEPS)
    for start, found in zip(starts, together, strict=True):
        (alone,) = anneal_new(space, [start], near, graph, steps=STEPS)
        assert torch.equal(found, alone)


def test_clusters_of_unequal_sizes_stay_only_where_sizes_are_free(uneven):
    space, truth = uneven
    found = {
        sizes: reanneal(space, truth, 5, sizes=sizes) for sizes in ("balanced", "any")
    }
    assert clustering_accuracy(truth, found["any"]) > 0.95
    assert clustering_accuracy(truth, found["balanced"]) < 0.85
