"""Parameters as one vector: the same values, the same steps, memory given back."""

import copy

import torch

from sagl.nn import Network, Objective, fused_step
from sagl.training.step import FlatParameters, loss_and_gradients
from tests.nn.slow import normal


def network():
    generator = torch.Generator().manual_seed(0)
    return Network([4, 6], 3, gate="sharpen", generator=generator).double()


def batch():
    return [normal(8, 4, seed=0), normal(8, 6, seed=1)]


def test_steps_of_the_vector_are_steps_of_the_parameters():
    """Ten steps of Adam on the vector and on the parameters one by one."""
    ours, theirs = network(), network()
    flat = FlatParameters(ours)
    fast = torch.optim.Adam([flat.values], lr=0.01)
    slow = torch.optim.Adam(theirs.parameters(), lr=0.01)
    objective = Objective(2.0, 0.5)
    for _ in range(10):
        _, gradients = loss_and_gradients(
            ours, objective, batch(), torch.Generator().manual_seed(0)
        )
        flat.set_gradients(gradients)
        fast.step()
        slow.zero_grad()
        objective(theirs(batch())).total.backward()
        slow.step()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other)


def test_what_is_loaded_is_in_the_vector():
    ours = network()
    flat = FlatParameters(ours)
    other = {name: value + 1 for name, value in network().state_dict().items()}
    ours.load_state_dict(other)
    expected = torch.cat([p.detach().reshape(-1) for p in ours.parameters()])
    assert torch.equal(flat.values.detach(), expected)
    assert torch.equal(next(ours.parameters()), other["views.0.bias"])


def test_released_parameters_have_memory_of_their_own():
    ours = network()
    before = copy.deepcopy(ours.state_dict())
    flat = FlatParameters(ours)
    flat.release()
    with torch.no_grad():
        flat.values.zero_()
    for name, value in ours.state_dict().items():
        assert torch.equal(value, before[name])
    assert all(p.grad is None for p in ours.parameters())
    assert len({p.untyped_storage().data_ptr() for p in ours.parameters()}) == len(
        list(ours.parameters())
    )


def test_both_ways_through_a_step_agree(monkeypatch):
    objective, one = Objective(2.0, 0.5), network()
    found = []
    for small in (True, False):
        monkeypatch.setattr(fused_step, "takes", lambda network, n, small=small: small)
        generator = torch.Generator().manual_seed(0)
        found.append(loss_and_gradients(one, objective, batch(), generator))
    (fast, fast_grads), (slow, slow_grads) = found
    torch.testing.assert_close(tuple(fast), tuple(slow))
    assert not any(term.requires_grad for term in slow)
    for p in one.parameters():
        torch.testing.assert_close(fast_grads[p], slow_grads[p])
