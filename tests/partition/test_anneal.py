"""Annealing of a few clusters: equal to the obvious one, where all are new."""

import pytest
import torch

from sagl.partition.anneal import Start, anneal_new, outlook, softened

C = 4
STEPS = 10


def disturbed(truth, seed):
    """A tenth of the labels at random."""
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.rand(len(truth), generator=generator) < 0.1
    return torch.where(
        chosen, torch.randint(C, truth.shape, generator=generator), truth
    )


def obvious(space, labels, graph):
    """All clusters predicted anew in each step, one partition, a dense graph."""
    A = torch.zeros(graph.shape)
    A[graph.rows(), graph.cols] = graph.entries
    Y = softened(labels, C)
    for step in range(STEPS):
        centred = Y - Y.mean(dim=0)
        z = sum(fit.left_out(centred) for fit in space.fits) / len(space.fits)
        p = z + 0.5 * A @ centred
        p = p / p.std(dim=0) / (0.3 * (0.1 / 0.3) ** (step / STEPS))
        Y = p.softmax(dim=1)
        for _ in range(3):
            Y = Y / Y.sum(dim=0)
            Y = Y / Y.sum(dim=1, keepdim=True)
    return Y.argmax(dim=1)


@pytest.mark.parametrize("seed", range(5))
def test_with_all_clusters_new_it_is_annealing(problem, seed):
    space, truth = problem
    labels = disturbed(truth, seed)
    near, graph = outlook(space, labels, C)
    start = Start(labels, torch.arange(C))
    (found,) = anneal_new(space, [start], near, graph, steps=STEPS)
    assert torch.equal(found, obvious(space, labels, graph))


def test_starts_side_by_side_do_not_see_each_other(problem):
    space, truth = problem
    near, graph = outlook(space, truth, C)
    starts = [
        Start(torch.where(truth == 1, 0, truth), torch.tensor([0, 1])),
        Start(disturbed(truth, 1), torch.tensor([2, 3, 1])),
        Start(truth, torch.tensor([0, 1, 2, 3])),
    ]
    together = anneal_new(space, starts, near, graph, steps=STEPS)
    for start, found in zip(starts, together, strict=True):
        (alone,) = anneal_new(space, [start], near, graph, steps=STEPS)
        assert torch.equal(found, alone)


def test_what_predicts_the_other_clusters_stays(problem):
    space, truth = problem
    near, graph = outlook(space, truth, C)
    kept = near.clone()
    labels = torch.where(truth == 1, 0, truth)
    start = Start(labels, torch.tensor([0, 1]))
    (found,) = anneal_new(space, [start], near, graph, steps=STEPS)
    assert torch.equal(near, kept)
    others = truth >= 2
    assert (found[others] == truth[others]).float().mean() > 0.9
