"""Prediction by anchors: the obvious answer, and the same bits in any company."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl.nn import Network
from sagl.nn.inference import (
    Predictor,
    anchor_features,
    exact_matmul,
    exact_mean,
    transductive_probabilities,
    whole_set,
)
from tests.nn.slow import slow_entmax

checked = settings(max_examples=40, deadline=None, derandomize=True, database=None)
VARIANTS = [
    {},
    {"gate": "sharpen"},
    {"gate": "shrink", "gate_input": "features"},
    {"graph": "dense"},
    {"graph": "identity"},
    {"alpha": 2.0},
]


def network(**options):
    net = Network([7, 30], 5, generator=torch.Generator().manual_seed(0), **options)
    for view in net.view_networks:
        view.encoder.shift.fill_(0.5)
        view.encoder.scale.fill_(3.0)
    return net.eval()


def features(n, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(n, width, generator=generator) * 2 for width in (7, 30)]


@given(
    seed=st.integers(0, 2**31),
    shape=st.tuples(st.integers(1, 40), st.integers(1, 300), st.integers(1, 20)),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
)
@checked
def test_exact_matmul_is_a_product_without_rounding(seed, shape, scale):
    """Close to the true product, and the same bits for any subset of the rows."""
    n, k, m = shape
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, k, generator=generator, dtype=torch.float64) * scale
    y = torch.randn(k, m, generator=generator, dtype=torch.float64)
    product = exact_matmul(x, y)
    bound = 1e-5 * x.abs().amax() * y.abs().amax() * k**0.5
    torch.testing.assert_close(product, x @ y, rtol=0, atol=float(bound))
    order = torch.randperm(n, generator=generator)
    assert torch.equal(exact_matmul(x[order], y), product[order])
    terms = torch.randperm(k, generator=generator)  # the order of summation, too
    assert torch.equal(exact_matmul(x[:, terms], y[terms]), product)
    for i in range(n):
        assert torch.equal(exact_matmul(x[i : i + 1], y), product[i : i + 1])


def test_exact_matmul_of_zeros():
    zeros = torch.zeros(3, 4, dtype=torch.float64)
    assert torch.equal(exact_matmul(zeros, zeros.T), torch.zeros(3, 3).double())


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_equals_the_obvious_computation(options):
    """Each sample alone: entmax over the anchors and itself, then the mean softmax."""
    net = network(**options)
    anchors = anchor_features(net, features(40, seed=1))
    new = features(9, seed=2)
    answer = Predictor(net, anchors).answer(new)
    expected_q = []
    for i, view in enumerate(net.view_networks):
        view = view.double()
        rows = []
        for h in new[i].double():
            one = view.linear(view.encoder.standardize(h[None]))
            if view.graph == "identity":
                rows.append(2 * one.values + view.bias)
                continue
            z_all = torch.cat([anchors[i].double(), one.values])
            keys = z_all @ view.V
            scores = one.queries @ keys.T / 5**0.5
            if one.gate is not None:
                scores = scores * one.gate[:, None]
            weights = slow_entmax(scores, view.alpha)
            rows.append(weights @ z_all + one.values + view.bias)
        p = torch.cat(rows)
        torch.testing.assert_close(answer.p[i], p, rtol=0, atol=2e-4)
        expected_q.append(torch.softmax(p, dim=1))
    q = torch.stack(expected_q).mean(dim=0)
    torch.testing.assert_close(answer.q, q, rtol=0, atol=1e-4)


class TestHeads:
    """Networks whose heads say the clusters, and whose neighbours add to it."""

    WEIGHTS, VOTE = (0.8, 0.2), 2.5

    def network(self, **options):
        net = network(z_width=6, self_loops=False, vote="product", **options)
        generator = torch.Generator().manual_seed(3)
        for view in net.view_networks:
            view.head.copy_(torch.randn(view.head.shape, generator=generator) / 20)
            view.bias.copy_(torch.randn(view.bias.shape, generator=generator) / 2)
        net.view_weights.copy_(torch.tensor(self.WEIGHTS))
        net.graph_weight.fill_(self.VOTE)
        return net.double()

    def together(self, net, rows, keys):
        """What each view's head says, and the weighted sum of the views' scores."""
        said, scores = [], 0.0
        for weight, view, h, k in zip(
            self.WEIGHTS, net.view_networks, rows, keys, strict=True
        ):
            one = view.linear(h)
            said.append(one.values + view.bias)
            gate = 1.0 if one.gate is None else one.gate[:, None]
            scores = scores + weight * gate * (one.queries @ k.T) / 6**0.5
        return torch.stack(said), scores

    @pytest.mark.parametrize(
        "options", [{}, {"gate": "sharpen"}, {"graph": "dense"}], ids=str
    )
    def test_clusters_of_anchors_are_added_to_what_heads_say(self, options):
        net = self.network(**options)
        anchors = anchor_features(net, features(40, seed=1))
        labels = torch.arange(40) % 5
        new = features(9, seed=2)
        answer = Predictor(net, anchors, labels).answer(new)
        views = net.view_networks
        rows = [
            v.encoder.standardize(h.double()) for v, h in zip(views, new, strict=True)
        ]
        keys = [z.double() @ v.V for v, z in zip(views, anchors, strict=True)]
        said, scores = self.together(net, rows, keys)
        A = slow_entmax(scores, views[0].alpha)
        votes = torch.stack([A[:, labels == k].sum(dim=1) for k in range(5)], dim=1)
        p = said + self.VOTE * votes
        torch.testing.assert_close(torch.stack(answer.p), p, rtol=0, atol=1e-3)
        q = torch.softmax(p.mean(dim=0), dim=1)
        torch.testing.assert_close(answer.q, q, rtol=0, atol=1e-3)

    def test_in_one_graph_neighbours_count_by_what_their_own_heads_say(self):
        net = self.network()
        rows = [h.double() for h in features(30)]
        keys = [v.linear(h).keys for v, h in zip(net.view_networks, rows, strict=True)]
        said, scores = self.together(net, rows, keys)
        A = slow_entmax(scores.fill_diagonal_(-torch.inf), 1.5)
        votes = A @ torch.softmax(said.mean(dim=0), dim=1)
        expected = torch.softmax(said.mean(dim=0) + self.VOTE * votes, dim=1)
        q = transductive_probabilities(net, [rows])
        torch.testing.assert_close(q, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_company_does_not_matter(options):
    net = network(**options)
    predictor = Predictor(net, anchor_features(net, features(300, seed=1)))
    new = features(50, seed=2)
    together = predictor.answer(new)
    for rows in ([0], [49, 3], list(range(10, 40)), list(range(49, -1, -1))):
        answer = predictor.answer([h[rows] for h in new])
        assert torch.equal(answer.q, together.q[rows])
        for one, other in zip(answer.p, together.p, strict=True):
            assert torch.equal(one, other[rows])


def test_the_number_of_rows_at_once_follows_the_anchors_alone():
    net = network()
    few = Predictor(net, anchor_features(net, features(10)))
    many = Predictor(net, [z.repeat(2000, 1) for z in few.anchors])
    assert few.block_rows == 256
    assert 2 <= many.block_rows < 256


def test_whole_set_is_the_same_in_blocks():
    net = network(gate="sharpen")
    h = features(30)
    blocks = [[view[:13] for view in h], [view[13:] for view in h]]
    for one, other in zip(whole_set(net, [h]), whole_set(net, blocks), strict=True):
        for a, b in zip(one, other, strict=True):
            torch.testing.assert_close(a, b)
    q = transductive_probabilities(net, blocks)
    assert q.shape == (30, 5)
    torch.testing.assert_close(q, net(h).exp().mean(dim=0), rtol=0, atol=1e-5)


def test_votes_are_the_bits_of_the_exact_mean_of_clusters():
    """The slow twin: a product with the one-hot clusters of all anchors."""
    net = network(z_width=4, vote="product", self_loops=False)
    h = features(40)
    labels = torch.arange(40) % 5
    predictor = Predictor(net, anchor_features(net, h), labels)
    A = torch.rand(30, 40, generator=torch.Generator().manual_seed(1)).double()
    A = torch.where(A > 0.7, A, 0.0)
    A = A / A.sum(dim=1, keepdim=True)
    one_hot = torch.nn.functional.one_hot(labels, 5).double()
    assert torch.equal(predictor._votes_of(A), exact_mean(A, one_hot))


def test_whole_set_without_values_has_the_same_queries_and_keys():
    net, h = network(gate="sharpen"), features(9)
    for one, other in zip(
        whole_set(net, [h]), whole_set(net, [h], values=False), strict=True
    ):
        assert other.values.shape == (9, 0)
        assert torch.equal(one.queries, other.queries)
        assert torch.equal(one.keys, other.keys)
        assert torch.equal(one.gate, other.gate)
