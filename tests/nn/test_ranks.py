"""Processes that share a batch against one process that has all of it."""

import pytest
import torch

from sagl.nn import Network, Objective
from sagl.nn.ranks import ALONE, Ranks, SharedBatch
from sagl.training.step import loss_and_gradients, trained_parameters
from tests.nn.slow import normal
from tests.several import in_processes

C = 5
FORMS = [
    (Objective(5.0, 1.0, "log"), {"gate": "shrink", "dropout": 0.3}),
    (
        Objective(5.0, 0.5, "linear", "one-way", "pairs"),
        {"gate": "sharpen", "gate_input": "features"},
    ),
    (Objective(10.0, 1.0, "linear"), {"self_loops": False, "dropout": 0.1}),
    (Objective(1.0, 1.0), {"graph": "identity"}),
    (Objective(1.0, 1.0), {"graph": "dense"}),
]
TARGETED = (Objective(0.0, 0.0), {"z_width": 4, "self_loops": False})


def network_of(options, width=7, sharper=1.0):
    generator = torch.Generator().manual_seed(0)
    network = Network([width, width + 2], C, generator=generator, **options).double()
    with torch.no_grad():
        for parameter in trained_parameters(network):
            parameter.mul_(sharper)
    return network.train()


def step(ranks, form, features, target=None, sharper=1.0):
    """Loss, labels of all rows and summed gradients of one step."""
    objective, options = form
    network, n = network_of(options, sharper=sharper), len(features[0])
    batch = ranks.batch(n)
    rows = slice(None) if batch is None else batch.own
    generator = torch.Generator().manual_seed(3)
    own = [h[rows] for h in features]
    loss, gradients = loss_and_gradients(
        network, objective, own, generator, target, batch
    )
    labels = ranks.gather(loss.labels, n)
    summed = [ranks.sum_(gradients[p].clone()) for p in trained_parameters(network)]
    return torch.stack(loss.terms()), labels, summed


def features_of(n):
    return [normal(n, width, seed=width) for width in (7, 9)]


def check_steps(ranks):
    """n is divisible by neither 2, 3 nor 4; 601 rows take the path of large batches."""
    target = torch.arange(23) % C
    cases = [(form, features_of(23), None, 1.0) for form in FORMS]
    cases.append((TARGETED, features_of(23), target, 1.0))
    # Of two views one is kept dense and one sparse; then blocks of a view differ.
    cases.append((FORMS[0], features_of(601), None, 6.0))
    cases.append((FORMS[2], features_of(2300), None, 2.0))
    cases.append((TARGETED, features_of(601), torch.arange(601) % C, 1.0))
    for case in cases:
        found, expected = step(ranks, *case), step(ALONE, *case)
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
        everywhere = ranks.gather(
            torch.cat([g.view(-1) for g in found[2]])[None], ranks.count
        )
        assert (everywhere == everywhere[0]).all(), "processes have different gradients"
    check_rows(ranks)


def check_rows(ranks):
    for n in (ranks.count, 10, 11):
        x = torch.arange(2.0 * n).view(n, 2)
        assert torch.equal(ranks.gather(x[ranks.own(n)].clone(), n), x)
        assert torch.equal(ranks.gather(x.T[:, ranks.own(n)], n, dim=1), x.T)
    vectors = ranks.gather_vectors(torch.arange(3 * ranks.index))
    assert [len(v) for v in vectors] == [3 * i for i in range(ranks.count)]
    assert int(ranks.sum_(torch.tensor(ranks.index))) == sum(range(ranks.count))
    h = normal(30, 7, seed=1)
    view = network_of(FORMS[0][1]).view_networks[0]
    assert view.sparsity(h, ranks) == view.sparsity(h)
    if ranks.count > 1:
        with pytest.raises(ValueError, match="a batch of 1 samples is too small for"):
            ranks.batch(1)
        with pytest.raises(ValueError, match="has 9 of 5 rows"):
            ranks.gather(torch.zeros(9, 1), 5)


def test_gradients_of_two_to_four_processes_are_those_of_one():
    in_processes(4, check_steps)


def test_one_alone_has_everything():
    check_rows(ALONE)
    assert ALONE.batch(7) is None
    assert ALONE.first


class Fourth(Ranks):
    """One of four that knows of no others."""

    def __init__(self):
        super().__init__()
        self.index, self.count = 3, 4


def test_slices_are_contiguous_and_of_nearly_equal_size():
    ranks = Fourth()
    assert ranks.sizes(10) == [3, 3, 2, 2]
    assert SharedBatch(10, ranks).own == slice(8, 10)
    assert not ranks.first
