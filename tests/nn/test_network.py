"""The network against the paper's equations written out, and its variants."""

import pytest
import torch
from torch.nn.functional import linear

from sagl.nn import Network, ViewNetwork, vote
from sagl.nn.network import concatenate, vote_by_product
from tests.nn.slow import normal, slow_attend

F64 = torch.float64


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def view_of(width=5, C=3, seed=0, **options):
    """A view in float64 whose bias is not zero and whose gate is not idle."""
    view = ViewNetwork(width, C, generator=seeded(seed), **options).double()
    with torch.no_grad():
        view.bias.copy_(normal(C, seed=seed))
        for parameter in view.parameters():
            parameter.mul_(2)
    return view


def slow_view(view, h):
    """eqs. linearfeat, lrs, gate, sim / alsim, entmax, rep; row by row."""
    v, g = view.encoder.v, view.encoder.g
    W = torch.stack([g[c] * v[c] / v[c].square().sum().sqrt() for c in range(len(v))])
    z = linear(h, W, view.encoder.b)
    if view.graph == "identity":
        return 2 * z + view.bias
    factor = None
    if view.gate is not None:
        x = z if view.gate_input == "z" else h
        hidden = linear(x, view.gate.W1, view.gate.b1).clamp(min=0)
        omega = linear(hidden, view.gate.W2, view.gate.b2)[:, 0].sigmoid()
        sharpen = view.gate_form == "sharpen"
        factor = 1 / (1 - omega + 1e-6) if sharpen else 1 - omega
    out, _ = slow_attend(
        z @ view.U,
        z @ view.V,
        z,
        factor,
        1 if view.graph == "dense" else 1.5,
        None if view.self_loops else torch.arange(len(z)),
    )
    return out + z + view.bias


@pytest.mark.parametrize("graph", ["sparse", "dense", "identity"])
@pytest.mark.parametrize(
    ("gate", "gate_input"),
    [
        ("none", "z"),
        ("shrink", "z"),
        ("shrink", "features"),
        ("sharpen", "z"),
        ("sharpen", "features"),
    ],
)
def test_view_equals_the_equations(graph, gate, gate_input):
    """p and the gradients of h and of every parameter, for every variant."""
    check_against_slow(view_of(graph=graph, gate=gate, gate_input=gate_input))


@pytest.mark.parametrize("gate", ["none", "shrink", "sharpen"])
def test_view_without_self_loops_equals_the_equations(gate):
    check_against_slow(view_of(gate=gate, self_loops=False))


def check_against_slow(view):
    h = normal(7, 5, seed=1).requires_grad_()
    cotangent = normal(7, 3, seed=2)
    fast, slow = view(h), slow_view(view, h)
    torch.testing.assert_close(fast, slow)
    wanted = [h, *view.parameters()]
    grads = torch.autograd.grad((fast * cotangent).sum(), wanted)
    expected = torch.autograd.grad((slow * cotangent).sum(), wanted)
    for got, correct in zip(grads, expected, strict=True):
        assert bool((correct != 0).any())
        torch.testing.assert_close(got, correct, rtol=0, atol=1e-9)


def names(view):
    return {name.split(".")[0] for name, _ in view.named_parameters()}


def test_variants_hold_only_what_they_use():
    """SAGL_i has no graph to learn, SAGL_w no gate; the gate's width is its input's."""
    assert names(view_of(graph="identity", gate="shrink")) == {"encoder", "bias"}
    assert names(view_of(gate="none")) == {"encoder", "bias", "U", "V"}
    assert names(view_of(gate="shrink")) == {"encoder", "bias", "U", "V", "gate"}
    assert view_of(8, 4, gate="shrink").gate.W1.shape == (2, 4)
    features = view_of(8, 4, gate="shrink", gate_input="features")
    assert features.gate.W1.shape == (4, 8)


@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("gate", ["none", "shrink", "sharpen"])
def test_attention_graph(gate, self_loops):
    """A of a batch, as the loop gives it, and its share of entries that are not 0."""
    view = view_of(gate=gate, self_loops=self_loops)
    h = normal(8, 5, seed=0)
    parts = view.linear(h)
    exclude = None if self_loops else torch.arange(8)
    _, expected = slow_attend(
        parts.queries, parts.keys, parts.values, parts.gate, 1.5, exclude
    )
    A = view.attention_graph(parts)
    assert A.layout == torch.sparse_csr
    torch.testing.assert_close(A.to_dense(), expected)
    assert bool((expected.diagonal() == 0).all()) != self_loops
    assert view.sparsity(h) == int((expected > 0).sum()) / 64


def test_dense_graph_has_no_zeros():
    """SAGL_b is softmax whatever α says; SAGL has zeros, SAGL_i only a diagonal."""
    h = 3 * normal(20, 5, seed=0)
    assert view_of(graph="dense", alpha=2).sparsity(h) == 1
    assert 1 / 20 <= view_of(graph="sparse", alpha=2).sparsity(h) < 1
    assert view_of(graph="identity", alpha=2).sparsity(h) == 1 / 20


@pytest.mark.parametrize("self_loops", [True, False])
def test_some_rows_of_a_graph_are_the_first_of_all(self_loops, monkeypatch):
    view = view_of(graph="sparse", gate="shrink", self_loops=self_loops)
    h = normal(20, 5, seed=0)
    parts = view.linear(h)
    whole = view.attention_graph(parts).to_dense()
    torch.testing.assert_close(
        view.attention_graph(parts, slice(6)).to_dense(), whole[:6], rtol=0, atol=1e-12
    )
    monkeypatch.setattr("sagl.nn.network._COUNTED_ROWS", 6)
    assert view.sparsity(h) == int((whole[:6] > 0).sum()) / (6 * 20)


@pytest.mark.parametrize("gate", ["none", "shrink"])
@pytest.mark.parametrize("gate_input", ["z", "features"])
def test_linear_part_is_row_by_row(gate, gate_input):
    """A sample's z, query, key and gate need no other sample; blocks concatenate.

    The product is the caller's choice: here, one row at a time.
    """
    view = view_of(gate=gate, gate_input=gate_input)
    h = normal(6, 5, seed=0)
    calls = []

    def product(left, right):
        calls.append(left.shape)
        return torch.stack([row @ right for row in left])

    whole = view.linear(h)
    by_row = view.linear(h, product)
    assert len(calls) == (3 if gate == "none" else 5)  # z, z U, z V; two in the gate
    blocks = concatenate([view.linear(h[:2]), view.linear(h[2:])])
    for got in (by_row, blocks):
        for one, other in zip(got, whole, strict=True):
            if other is None:
                assert one is None
            else:
                torch.testing.assert_close(one, other)


@pytest.mark.parametrize("alpha", [1.3, 2])
def test_alpha_is_used(alpha):
    view = view_of(alpha=alpha)
    h = normal(6, 5, seed=0)
    z, queries, keys, _ = view.linear(h)
    expected = slow_attend(queries, keys, z, None, alpha)[0] + z + view.bias
    torch.testing.assert_close(view(h), expected)


def test_without_self_loops_two_samples_swap():
    """Each has only the other to look at."""
    view = view_of(self_loops=False)
    h = normal(2, 5, seed=0)
    z = view.encoder(h)
    torch.testing.assert_close(view(h), z.flip(0) + z + view.bias)
    with pytest.raises(ValueError, match="the only key is excluded"):
        view(h[:1])


def test_dropout_is_for_training():
    """Off in eval; on in train, from the generator, and gone from the global state."""
    view, plain = view_of(dropout=0.5), view_of()
    h = normal(9, 5, seed=0)
    before = torch.get_rng_state()
    first = view(h, seeded(1))
    assert torch.equal(first, view(h, seeded(1)))
    assert not torch.equal(first, view(h, seeded(2)))
    assert not torch.allclose(first, plain(h))
    assert torch.equal(view.eval()(h, seeded(1)), plain(h))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("widths", [[5], [5, 2], [5, 2, 4]])
def test_network_is_its_views_side_by_side(widths):
    """log softmax of each view, and no view sees another."""
    network = Network(widths, 3, gate="sharpen", generator=seeded()).double()
    features = [normal(6, width, seed=i) for i, width in enumerate(widths)]
    log_q = network(features)
    assert len(network.view_networks) == len(log_q) == len(widths)
    for view, h, got in zip(network.view_networks, features, log_q, strict=True):
        p = slow_view(view, h)
        expected = p - p.exp().sum(dim=1, keepdim=True).log()
        torch.testing.assert_close(got, expected)
    changed = network([features[0] + 1, *features[1:]])
    assert not torch.equal(changed[0], log_q[0])
    for one, other in zip(changed[1:], log_q[1:], strict=True):
        assert torch.equal(one, other)


def test_network_hands_on_its_options():
    options = {
        "alpha": 1.7,
        "gate": "shrink",
        "gate_input": "features",
        "dropout": 0.3,
        "self_loops": False,
    }
    network = Network([5, 4], 3, **options)
    for view in network.views:
        found = {
            "alpha": view.alpha,
            "gate": view.gate_form,
            "gate_input": view.gate_input,
            "dropout": view.dropout,
            "self_loops": view.self_loops,
        }
        assert found == options
    dense = Network([5], 3, alpha=1.7, graph="dense").views[0]
    assert (dense.graph, dense.alpha) == ("dense", 1.0)


def test_seed_decides_the_start():
    """Same seed, same network; views differ; torch's global state is left alone."""

    def build(seed):
        return Network([5, 5], 3, gate="shrink", generator=seeded(seed))

    before = torch.get_rng_state()
    first, again, other = build(0), build(0), build(1)
    assert torch.equal(torch.get_rng_state(), before)
    for name, parameter in first.named_parameters():
        assert torch.equal(parameter, again.get_parameter(name))
        if not name.endswith("bias"):  # which starts at zero
            assert not torch.equal(parameter, other.get_parameter(name))
    assert not torch.equal(first.views[0].U, first.views[1].U)
    assert not torch.equal(first.views[0].U, first.views[0].V)


def test_training_forward_leaves_the_global_state_alone():
    network = Network([5, 4], 3, dropout=0.5, gate="shrink", generator=seeded())
    features = [normal(8, w, seed=w, dtype=torch.float32) for w in (5, 4)]
    before = torch.get_rng_state()
    first = network(features, seeded(1))
    again = network(features, seeded(1))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


@pytest.mark.parametrize("n_views", [1, 2, 3])
def test_vote(n_views):
    """The mean of the softmax over views, a distribution again."""
    logits = [3 * normal(6, 4, seed=i) for i in range(n_views)]
    votes = vote([torch.log_softmax(p, dim=1) for p in logits])
    expected = sum(p.exp() / p.exp().sum(dim=1, keepdim=True) for p in logits) / n_views
    torch.testing.assert_close(votes, expected)
    torch.testing.assert_close(votes.sum(dim=1), torch.ones(6, dtype=F64))


def test_vote_is_not_a_vote_of_argmaxes():
    """One sure view outweighs two that lean the other way."""
    q = torch.tensor([[[0.99, 0.01]], [[0.4, 0.6]], [[0.4, 0.6]]])
    assert int(vote(list(q.log())).argmax()) == 0


@pytest.mark.parametrize("n_views", [1, 2, 3])
def test_product_vote(n_views):
    """The geometric mean over views, scaled to a distribution."""
    q = [torch.softmax(3 * normal(6, 4, seed=i), dim=1) for i in range(n_views)]
    votes = vote_by_product([part.log() for part in q])
    product = torch.stack(q).prod(dim=0) ** (1 / n_views)
    torch.testing.assert_close(votes, product / product.sum(dim=1, keepdim=True))


@pytest.mark.parametrize(("form", "winner"), [("mean", 1), ("product", 0)])
def test_a_network_votes_as_it_was_told(form, winner):
    """Two views are rather sure of cluster 1, one is very sure of cluster 0."""
    log_q = torch.tensor([[[0.95, 0.05]], [[0.2, 0.8]], [[0.2, 0.8]]]).log()
    assert int(Network([5], 2, vote=form).vote(log_q).argmax()) == winner
    with pytest.raises(ValueError, match="vote"):
        Network([5], 2, vote="loudest")


def test_refuses_a_wrong_number_of_views():
    with pytest.raises(ValueError, match="at least one view"):
        Network([], 3)
    with pytest.raises(ValueError, match=r"shorter|longer"):
        Network([5, 4], 3)([torch.zeros(6, 5)])


def run(**options):
    return Network([5], 3, **options)([torch.zeros(6, 5)])


def test_refuses_an_unknown_gate_and_alpha():
    with pytest.raises(ValueError, match="got 'soft'"):
        run(gate="soft")
    with pytest.raises(ValueError, match="alpha must be"):
        run(alpha=0.5)


@pytest.mark.parametrize(
    "options",
    [
        {"graph": "full"},  # taken for "sparse"
        {"gate": "shrink", "gate_input": "h"},  # taken for "features"
        {"dropout": 2.0},  # found by the first training step
    ],
)
def test_refuses_unknown_options_at_construction(options):
    with pytest.raises(ValueError, match="must be"):
        Network([5], 3, **options)
