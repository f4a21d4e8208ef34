"""The sparsity gate: its number, its two forms, and what they do to the support."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from sagl.nn import SparsityGate, entmax, row_factor
from tests.nn.slow import normal

checked = settings(max_examples=60, deadline=None, derandomize=True, database=None)
F64 = torch.float64


@pytest.mark.parametrize("width", [1, 2, 5, 8])
def test_equals_two_torch_layers(width):
    """sigmoid(W2 relu(W1 x + b1) + b2), value and all gradients; hidden = width / 2."""
    gate = SparsityGate(width, torch.Generator().manual_seed(0)).double()
    hidden = max(1, width // 2)
    assert gate.W1.shape == (hidden, width)
    twin = nn.Sequential(
        nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, 1), nn.Sigmoid()
    ).double()
    ours = [gate.W1, gate.b1, gate.W2, gate.b2]
    with torch.no_grad():
        for theirs, mine in zip(twin.parameters(), ours, strict=True):
            theirs.copy_(mine)
    x = normal(7, width, seed=0)
    cotangent = normal(7, seed=1)
    omega = gate(x)
    assert omega.shape == (7,)
    expected = twin(x)[:, 0]
    torch.testing.assert_close(omega, expected)
    torch.testing.assert_close(
        torch.autograd.grad((omega * cotangent).sum(), ours),
        torch.autograd.grad((expected * cotangent).sum(), list(twin.parameters())),
    )


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 20),
    width=st.integers(1, 12),
    scale=st.floats(0.01, 10),
)
@checked
def test_omega_lies_strictly_between_zero_and_one(seed, n, width, scale):
    gate = SparsityGate(width, torch.Generator().manual_seed(seed))
    omega = gate(scale * normal(n, width, seed=seed, dtype=torch.float32))
    assert omega.shape == (n,)
    assert bool(((omega > 0) & (omega < 1)).all())


def test_row_factor():
    """shrink: 1 − ω; sharpen: 1 / (1 − ω + 1e-6), finite even at ω = 1."""
    omega = torch.tensor([0.0, 0.25, 0.75, 1.0], dtype=F64)
    torch.testing.assert_close(
        row_factor(omega, "shrink"), torch.tensor([1, 0.75, 0.25, 0], dtype=F64)
    )
    expected = torch.tensor([1 / 1.000001, 1 / 0.750001, 1 / 0.250001, 1e6], dtype=F64)
    torch.testing.assert_close(
        row_factor(omega, "sharpen"), expected, rtol=1e-9, atol=0
    )


@pytest.mark.parametrize("form", ["none", "Shrink", ""])
def test_refuses_an_unknown_form(form):
    with pytest.raises(ValueError, match=f"'shrink', 'sharpen'; got '{form}'"):
        row_factor(torch.zeros(1), form)


@pytest.mark.parametrize("form", ["shrink", "sharpen"])
@given(
    seed=st.integers(0, 2**31),
    n=st.integers(2, 60),
    scale=st.floats(0.1, 20),
    alpha=st.floats(1.1, 3),
    omegas=st.lists(st.floats(0, 0.999), min_size=2, max_size=2).map(sorted),
)
@checked
def test_support_is_monotone_in_omega(form, seed, n, scale, alpha, omegas):
    """Larger ω: *shrink* only adds neighbours, *sharpen* only removes them.

    For every α > 1: entry j is out when sum_i [(α − 1) c (s_i − s_j)]_+^(1/(α−1)) ≥ 1,
    and the left side grows with the factor c on the row.
    """
    scores = scale * normal(n, seed=seed)
    factors = row_factor(torch.tensor(omegas, dtype=F64), form)
    lower, higher = entmax(factors[:, None] * scores, alpha) > 0
    fewer, more = (lower, higher) if form == "shrink" else (higher, lower)
    assert bool((more | ~fewer).all())


def mean_support(form, omega):
    scores = 5 * normal(50, 1000, seed=0)
    weights = entmax(row_factor(torch.tensor(omega, dtype=F64), form) * scores, 1.5)
    return float((weights > 0).sum(dim=1).double().mean())


def test_shrink_flattens():
    """The numbers of METHOD.md: 1000 scores, a few neighbours become hundreds."""
    for omega, expected in [(0.0, 2.8), (0.5, 5.4), (0.9, 52), (0.99, 799)]:
        assert mean_support("shrink", omega) == pytest.approx(expected, rel=0.1)


def test_sharpen_does_what_the_paper_says():
    """A larger ω leaves fewer neighbours, in the end one."""
    sizes = [mean_support("sharpen", omega) for omega in (0.0, 0.5, 0.9, 0.999)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 2.5
    assert sizes[-1] < 1.05
