"""The step by hand against autograd on the network and the objective."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl.nn import Network, Objective, fused_step
from tests.nn.slow import normal

checked = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def by_autograd(network, objective, features, generator=None):
    loss = objective(network(features, generator))
    parameters = list(network.parameters())
    return loss, dict(
        zip(parameters, torch.autograd.grad(loss.total, parameters), strict=True)
    )


def build(widths, C, seed=0, **options):
    generator = torch.Generator().manual_seed(seed)
    network = Network(widths, C, generator=generator, **options).double()
    with torch.no_grad():
        for p in network.parameters():  # no zeros, lengths g that are not those of v
            p.add_(0.3 * torch.randn(p.shape, generator=generator, dtype=p.dtype))
    return network


@given(
    seed=st.integers(0, 2**31),
    widths=st.lists(st.integers(1, 7), min_size=1, max_size=4),
    n=st.integers(2, 12),
    C=st.integers(2, 6),
    alpha=st.sampled_from([1.3, 1.5, 2]),
    graph=st.sampled_from(["sparse", "dense"]),
    gate=st.sampled_from(["none", "shrink", "sharpen"]),
    gate_input=st.sampled_from(["z", "features"]),
    self_loops=st.booleans(),
    dropout=st.sampled_from([0.0, 0.4]),
    label=st.sampled_from(["log", "linear"]),
    align=st.sampled_from(["symmetric", "one-way"]),
    count=st.sampled_from(["views", "pairs"]),
    gamma=st.sampled_from([0.0, 3.0]),
    beta=st.sampled_from([0.0, 0.7]),
)
@checked
def test_equals_autograd(
    seed, widths, n, C, label, align, count, gamma, beta, **options
):
    """Loss, labels and the gradient of every parameter, in every form."""
    network = build(widths, C, seed, **options)
    objective = Objective(gamma, beta, label, align, count)
    features = [normal(n, width, seed=seed + width) for width in widths]
    slow, slow_grads = by_autograd(
        network, objective, features, torch.Generator().manual_seed(seed)
    )
    fast, fast_grads = fused_step.loss_and_gradients(
        network, objective, features, torch.Generator().manual_seed(seed)
    )
    torch.testing.assert_close(tuple(fast), tuple(term.detach() for term in slow))
    assert set(fast_grads) == set(network.parameters())
    for name, p in network.named_parameters():
        torch.testing.assert_close(
            fast_grads[p], slow_grads[p], msg=lambda text, name=name: f"{name}: {text}"
        )


@pytest.mark.parametrize("train", [True, False])
def test_dropout_belongs_to_training(train):
    network = build([5, 3], 3, dropout=0.5).train(train)
    features = [normal(9, width, seed=width) for width in (5, 3)]

    def loss(seed):
        generator = torch.Generator().manual_seed(seed)
        found, _ = fused_step.loss_and_gradients(
            network, Objective(1.0, 1.0), features, generator
        )
        return float(found.total)

    assert (loss(0) == loss(1)) is not train


@pytest.mark.parametrize(
    ("graph", "n", "taken"),
    [("sparse", 512, True), ("sparse", 513, False), ("identity", 10, False)],
)
def test_takes_small_batches_that_have_a_graph(graph, n, taken):
    assert fused_step.takes(build([4], 3, graph=graph), n) is taken


def test_leaves_the_network_as_it_was():
    network = build([4, 6], 3, gate="shrink")
    before = {name: p.clone() for name, p in network.named_parameters()}
    features = [normal(8, width, seed=width) for width in (4, 6)]
    copies = [h.clone() for h in features]
    fused_step.loss_and_gradients(network, Objective(1.0, 1.0), features)
    for name, p in network.named_parameters():
        assert torch.equal(p, before[name])
        assert p.grad is None
    for h, copy in zip(features, copies, strict=True):
        assert torch.equal(h, copy)
