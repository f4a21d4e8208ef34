"""The linear map against torch's own weight normalisation."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from sagl.nn import LinearEncoder
from tests.nn.slow import normal

checked = settings(max_examples=20, deadline=None, derandomize=True, database=None)


def encoder_of(width, n_clusters, seed=0):
    return LinearEncoder(width, n_clusters, torch.Generator().manual_seed(seed))


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 6),
    width=st.integers(1, 8),
    C=st.integers(1, 5),
)
@checked
def test_equals_torch_weight_norm(seed, n, width, C):
    """Value, and the gradients of h, v, g and b, for the same v, g and b."""
    encoder = encoder_of(width, C, seed).double()
    twin = weight_norm(nn.Linear(width, C)).double()
    norms = twin.parametrizations.weight
    with torch.no_grad():
        encoder.g.mul_(normal(C, seed=seed))  # no longer the length of v
        norms.original0.copy_(encoder.g[:, None])
        norms.original1.copy_(encoder.v)
        twin.bias.copy_(encoder.b)
    h = normal(n, width, seed=seed + 1).requires_grad_()
    cotangent = normal(n, C, seed=seed + 2)
    z, expected = encoder(h), twin(h)
    torch.testing.assert_close(z, expected)
    ours = torch.autograd.grad(
        (z * cotangent).sum(), [h, encoder.v, encoder.g, encoder.b]
    )
    theirs = torch.autograd.grad(
        (expected * cotangent).sum(),
        [h, norms.original1, norms.original0, twin.bias],
    )
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other.reshape(mine.shape))


def test_rows_of_W_have_length_g():
    """Whatever v is, up to the sign of g; at the start W is v itself."""
    encoder = encoder_of(7, 4).double()
    torch.testing.assert_close(encoder.weight(), encoder.v)
    g = torch.tensor([0.5, 2.0, 3.0, 10.0], dtype=torch.float64)
    with torch.no_grad():
        encoder.g.copy_(g)
        encoder.v.mul_(17)
    W = encoder.weight()
    torch.testing.assert_close(W.norm(dim=1), g)
    torch.testing.assert_close(
        torch.cosine_similarity(W, encoder.v), torch.ones_like(g)
    )


@pytest.mark.parametrize("width", [4, 100])
def test_start(width):
    """v and b fill ±1/sqrt(d), like torch's linear layers."""
    encoder = encoder_of(width, 500)
    bound = width**-0.5
    for parameter in (encoder.v.detach(), encoder.b.detach()):
        assert float(parameter.abs().max()) <= bound
        assert float(parameter.max()) > 0.95 * bound
        assert float(parameter.min()) < -0.95 * bound


def test_standardize():
    """(h − shift) · scale: constants that are saved, moved, and never trained."""
    encoder = encoder_of(3, 2)
    h = normal(5, 3, seed=0, dtype=torch.float32)
    assert torch.equal(encoder.standardize(h), h)
    encoder.shift.copy_(torch.tensor([1.0, -2.0, 0.0]))
    encoder.scale.fill_(0.5)
    expected = torch.stack([h[:, 0] - 1, h[:, 1] + 2, h[:, 2]], dim=1) / 2
    torch.testing.assert_close(encoder.standardize(h), expected)
    assert {name for name, _ in encoder.named_parameters()} == {"v", "g", "b"}

    other = encoder_of(3, 2, seed=1)
    other.load_state_dict(encoder.state_dict())
    torch.testing.assert_close(other.standardize(h), expected)
    torch.testing.assert_close(other(h), encoder(h))


def test_generator_decides_the_start():
    before = torch.get_rng_state()
    first, again, other = encoder_of(5, 3), encoder_of(5, 3), encoder_of(5, 3, seed=1)
    for name, parameter in first.named_parameters():
        assert torch.equal(parameter, again.get_parameter(name))
        assert not torch.equal(parameter, other.get_parameter(name))
    assert torch.equal(torch.get_rng_state(), before)
