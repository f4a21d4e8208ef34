"""Annealing of a few clusters: equal to that of all, where all are new."""

import pytest
import torch

from sagl.partition.anneal import COOL, Start, anneal, anneal_new, outlook, softened

C = 4
STEPS = 10


def disturbed(truth, seed):
    """A tenth of the labels at random."""
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.rand(len(truth), generator=generator) < 0.1
    return torch.where(
        chosen, torch.randint(C, truth.shape, generator=generator), truth
    )


@pytest.mark.parametrize("seed", range(5))
def test_with_all_clusters_new_it_is_annealing(problem, seed):
    space, truth = problem
    labels = disturbed(truth, seed)
    near, graph = outlook(space, labels, C)
    start = Start(labels, torch.arange(C))
    (found,) = anneal_new(space, [start], near, graph, steps=STEPS)
    soft = softened(labels, C)
    assert torch.equal(found, anneal(space, soft, hot=COOL, steps=STEPS, graph=graph))


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
