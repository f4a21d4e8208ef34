"""Annealing of a few clusters: equal to an obvious loop over dense matrices."""

import pytest
import torch

from sagl.partition.anneal import Start, anneal_new, outlook, softened

C = 4
STEPS = 5  # few, from labels at random: where it ends depends on every detail


def arbitrary(seed, n=160):
    return torch.randint(C, (n,), generator=torch.Generator().manual_seed(seed))


def obvious(space, start, near, graph):
    """All clusters are predicted anew in each step, then the old ones put back."""
    A = torch.zeros(graph.shape)
    A[graph.rows(), graph.cols] = graph.entries
    old = [k for k in range(C) if k not in start.new]
    Y = softened(start.labels, C)
    for step in range(STEPS):
        centred = Y - Y.mean(dim=0)
        z = sum(fit.left_out(centred) for fit in space.fits) / len(space.fits)
        p = z + 0.5 * A @ centred
        p = p / p.std(dim=0)
        p[:, old] = near[:, old]
        Y = (p / (0.3 * (0.1 / 0.3) ** (step / STEPS))).softmax(dim=1)
        for _ in range(3):
            Y = Y / Y.sum(dim=0)
            Y = Y / Y.sum(dim=1, keepdim=True)
    return Y.argmax(dim=1)


@pytest.mark.parametrize("new", [[0, 1], [2, 3, 1], [3, 0, 2, 1]])
@pytest.mark.parametrize("seed", range(5))
def test_is_the_obvious_loop(problem, seed, new):
    space, _ = problem
    near, graph = outlook(space, arbitrary(seed), C)
    kept = near.clone()
    start = Start(arbitrary(seed + 100), torch.tensor(new))
    (found,) = anneal_new(space, [start], near, graph, steps=STEPS)
    assert torch.equal(found, obvious(space, start, near, graph))
    assert torch.equal(near, kept)


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
