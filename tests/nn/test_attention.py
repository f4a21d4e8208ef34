"""attend against a loop over queries, keys and scalars, on every path it can take."""

import math
from contextlib import contextmanager

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl.nn import attend, attention, entmax, sparse, support
from tests.nn.slow import normal, slow_attend

checked = settings(max_examples=15, deadline=None, derandomize=True, database=None)
F64 = torch.float64

LARGE = (attention, "_SMALL", 0)
ONE_ROW = (support, "_BLOCK_ROWS", 1)
ALWAYS_SPARSE = [LARGE, (support, "_DENSE_SHARE", 2), (support, "_DENSE_ROW", 2)]
ALWAYS_DENSE = [LARGE, (support, "_DENSE_SHARE", -1)]
PATHS = {
    "small": [],
    "as it comes": [LARGE],
    "sparse": ALWAYS_SPARSE,
    "sparse without kernels": [
        *ALWAYS_SPARSE,
        (sparse, "_has_kernels", lambda tensor: False),
        (sparse, "_GATHERED", 3),
    ],
    "dense": ALWAYS_DENSE,
    "dense, computed twice": [*ALWAYS_DENSE, (support, "_KEPT_BYTES", 0)],
    "sparse while there is room": [
        *ALWAYS_SPARSE,
        ONE_ROW,
        (support, "_BLOCK_SCORES", 1),
        (support, "_KEPT_ENTRIES", 7),
        (support, "_KEPT_BYTES", 0),
    ],
    "row by row": [LARGE, ONE_ROW, (support, "_BLOCK_SCORES", 1)],
    "three rows at a time, sparse": [
        *ALWAYS_SPARSE,
        ONE_ROW,
        (support, "_BLOCK_SCORES", 21),
    ],
}


@contextmanager
def path_taken(path):
    """The library's constants set so that only this path is left to it."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in PATHS[path]:
            patch.setattr(module, name, value)
        yield


def scores_of(inputs):
    ones = torch.ones(len(inputs["queries"]), dtype=F64)
    return support.Scores(inputs["queries"], ones, inputs["keys"], 1.5, None)


def draw_inputs(seed, m, n, C, D, gate=False, exclude=False, scale=2.0):
    """Arguments of attend, in float64."""
    tensors = {
        "queries": scale * normal(m, C, seed=seed),
        "keys": normal(n, C, seed=seed + 1),
        "values": normal(n, D, seed=seed + 2),
    }
    if gate:
        tensors["gate"] = normal(m, seed=seed + 3).exp()
    if exclude:
        generator = torch.Generator().manual_seed(seed)
        tensors["exclude"] = torch.randint(n, (m,), generator=generator)
    return tensors


def leaves(inputs):
    """Copies of the inputs that ask for gradients, where they can."""
    return {
        name: value.clone().requires_grad_() if value.is_floating_point() else value
        for name, value in inputs.items()
    }


def output_and_grads(function, inputs, cotangent):
    inputs = leaves(inputs)
    wanted = [value for value in inputs.values() if value.requires_grad]
    out = function(**inputs)
    return [out.detach(), *torch.autograd.grad((out * cotangent).sum(), wanted)]


def assert_all_close(got, expected):
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-8)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("gate", [False, True], ids=["no gate", "gate"])
@pytest.mark.parametrize("exclude", [False, True], ids=["all keys", "exclude"])
@given(
    seed=st.integers(0, 2**31),
    m=st.integers(1, 6),
    n=st.integers(2, 7),
    C=st.integers(1, 5),
    D=st.integers(1, 4),
    alpha=st.sampled_from([1, 1.3, 1.5, 2, 2.5]),
    scale=st.sampled_from([0.5, 2.0, 20.0]),
)
@checked
def test_equals_the_slow_twin(path, gate, exclude, seed, m, n, C, D, alpha, scale):
    """Output and the gradient of every input, rectangular, with every option."""
    inputs = draw_inputs(seed, m, n, C, D, gate, exclude, scale)
    cotangent = normal(m, D, seed=seed + 9)
    slow = output_and_grads(
        lambda **kw: slow_attend(alpha=alpha, **kw)[0], inputs, cotangent
    )
    with path_taken(path):
        fast = output_and_grads(
            lambda **kw: attend(alpha=alpha, **kw), inputs, cotangent
        )
    assert_all_close(fast, slow)


@pytest.mark.parametrize("path", ["sparse", "sparse without kernels", "dense"])
@pytest.mark.parametrize("alpha", [1, 1.3, 1.5, 2])
def test_gradcheck(path, alpha):
    inputs = leaves(draw_inputs(1, 3, 5, 3, 2, gate=True, exclude=True))
    exclude = inputs.pop("exclude")
    with path_taken(path):
        assert torch.autograd.gradcheck(
            lambda *args: attend(*args, alpha=alpha, exclude=exclude),
            tuple(inputs.values()),
        )


def test_paths_are_what_they_say():
    """Which rows end sparse and which dense; softmax is always dense."""
    mixed = draw_inputs(0, 9, 30, 3, 2)
    mixed["queries"][::2] *= 20  # every other row is clear-cut,
    mixed["queries"][1::2] *= 0.1  # the others are flat
    scores = scores_of(mixed)

    def shares(path, alpha=1.5):
        with path_taken(path):
            found = support.find_support(scores._replace(alpha=alpha))
        full = sum(block.rows.stop - block.rows.start for block in found.dense)
        kept = [block.kept is not None for block in found.dense]
        return int((found.sparse.crow.diff() > 0).sum()), full, kept

    assert shares("sparse") == (9, 0, [])
    assert shares("dense") == (0, 9, [True])
    assert shares("dense, computed twice") == (0, 9, [False])
    assert shares("sparse", alpha=1) == (0, 9, [True])
    in_csr, full, _ = shares("row by row")
    assert in_csr + full == 9
    assert min(in_csr, full) >= 3


@pytest.mark.parametrize("limit", [1, 28, 35, 1000])
def test_blocks_hold_no_more_than_their_limit(monkeypatch, limit):
    """Every query once, in order, and never more scores at once than allowed."""
    monkeypatch.setattr(*ONE_ROW)
    monkeypatch.setattr(support, "_BLOCK_SCORES", limit)
    inputs = draw_inputs(0, 11, 7, 3, 2)
    scores = scores_of(inputs)
    sizes = [rows.stop - rows.start for rows in scores.blocks()]
    covered = [i for rows in scores.blocks() for i in range(rows.start, rows.stop)]
    assert covered == list(range(11))
    assert max(sizes) == min(11, max(1, limit // 7))


def test_scores_are_gated_scaled_dot_products():
    """By hand: C = 4, q·k = 8 and 0, gate 1/2, so the scores are 2 and 0."""
    queries = torch.tensor([[2.0, 2.0, 0.0, 0.0]])
    keys = torch.tensor([[2.0, 2.0, 1.0, 0.0], [0.0, 0.0, 5.0, 5.0]])
    out = attend(queries, keys, torch.eye(2), torch.tensor([0.5]), alpha=1)
    high = math.exp(2) / (math.exp(2) + 1)
    torch.testing.assert_close(out, torch.tensor([[high, 1 - high]]))


@pytest.mark.parametrize("alpha", [1, 1.5])
def test_closed_gate_with_an_excluded_key(alpha):
    """A gate of 0, which a saturated ω gives, is uniform over the keys allowed."""
    inputs = draw_inputs(0, 3, 4, 2, 2, exclude=True)
    inputs["gate"] = torch.zeros(3, dtype=F64)
    out, graph = slow_attend(alpha=alpha, **inputs)
    assert sorted(graph[0].tolist()) == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])
    torch.testing.assert_close(attend(alpha=alpha, **inputs), out)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("alpha", [1, 1.3, 1.5, 2])
def test_graph(path, alpha):
    """CSR, detached, rows sum to one, and graph times values is the output."""
    inputs = leaves(draw_inputs(0, 8, 9, 3, 2, gate=True))
    with path_taken(path):
        out, graph = attend(alpha=alpha, return_graph=True, **inputs)
    assert graph.layout == torch.sparse_csr
    assert graph.shape == (8, 9)
    assert not graph.requires_grad
    dense = graph.to_dense()
    torch.testing.assert_close(dense.sum(1), torch.ones(8, dtype=F64))
    torch.testing.assert_close(out, dense @ inputs["values"])
    torch.testing.assert_close(dense, slow_attend(alpha=alpha, **inputs)[1])
    # only what is not zero is stored, in the order of the columns
    assert graph.values().numel() == int((dense > 0).sum())
    assert (graph.values().numel() < dense.numel()) == (alpha > 1)
    rows = graph.col_indices().split(graph.crow_indices().diff().tolist())
    assert all(row.tolist() == sorted(row.tolist()) for row in rows)


@pytest.mark.parametrize("path", ["sparse", "dense"])
def test_excluded_key_is_not_in_the_graph(path):
    """Not even where it would win: a query's own key, scaled up."""
    inputs = draw_inputs(0, 6, 6, 3, 2)
    inputs["keys"] = 5 * inputs["queries"]
    inputs["exclude"] = torch.arange(6)
    with path_taken(path):
        _, graph = attend(return_graph=True, **inputs)
    assert bool((graph.to_dense().diagonal() == 0).all())
    torch.testing.assert_close(graph.to_dense(), slow_attend(**inputs)[1])


@pytest.mark.parametrize("path", PATHS)
def test_gradient_of_a_plain_sum(path):
    """Its cotangent has stride 0, and the values may be any slice: kernels beware."""
    inputs = draw_inputs(0, 5, 7, 3, 4)

    def plain(function, **tensors):
        columns = tensors.pop("values").T.contiguous().T[:, ::2]
        return function(values=columns, **tensors).sum()

    slow = output_and_grads(
        lambda **kw: plain(lambda **args: slow_attend(**args)[0], **kw), inputs, 1
    )
    with path_taken(path):
        fast = output_and_grads(lambda **kw: plain(attend, **kw), inputs, 1)
    assert_all_close(fast, slow)


@pytest.mark.parametrize("path", ["sparse", "dense", "dense, computed twice"])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_backward_twice(path, dropout):
    """The same gradient again: nothing that is kept is overwritten."""
    inputs = leaves(draw_inputs(0, 5, 7, 3, 4, gate=True))
    with path_taken(path):
        out = attend(dropout=dropout, **inputs).square().sum()
        first = torch.autograd.grad(out, inputs.values(), retain_graph=True)
        again = torch.autograd.grad(out, inputs.values())
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


@pytest.mark.parametrize("wanted", ["queries", "keys", "values", "gate"])
def test_one_input_alone_may_want_a_gradient(wanted):
    inputs = draw_inputs(0, 5, 7, 3, 2, gate=True)
    inputs[wanted].requires_grad_()
    torch.testing.assert_close(
        torch.autograd.grad(attend(**inputs).square().sum(), inputs[wanted]),
        torch.autograd.grad(slow_attend(**inputs)[0].square().sum(), inputs[wanted]),
    )


@pytest.mark.parametrize(
    ("path", "gate"),
    [
        ("dense", 1e8),
        ("sparse", 1e5),
        ("sparse", 1e8),
        ("row by row", 1e8),
    ],
)
def test_large_scores(path, gate):
    """A gate that is nearly open: the whole weight is on the best key."""
    inputs = draw_inputs(0, 4, 20, 3, 2)
    inputs = {name: value.float() for name, value in inputs.items()}
    inputs["gate"] = torch.tensor([1.0, gate, gate, gate])
    with path_taken(path):
        _, graph = attend(return_graph=True, **inputs)
    best = (inputs["queries"] @ inputs["keys"].T).argmax(dim=1)
    assert torch.equal(graph.to_dense()[1:], torch.eye(20)[best[1:]])
    expected = entmax(inputs["queries"] @ inputs["keys"].T / 3**0.5)
    torch.testing.assert_close(graph.to_dense()[0], expected[0])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_unsound_scores_are_not_hidden(bad):
    """NaN in, NaN out (or an error), on the sparse path as on the dense one."""
    inputs = draw_inputs(0, 4, 6, 3, 2)
    inputs["queries"][1, 0] = bad
    with path_taken("dense"):
        dense = attend(**inputs)
    assert bool(dense[1].isnan().all())
    with path_taken("sparse"):
        torch.testing.assert_close(attend(**inputs), dense, equal_nan=True)


def dropped(inputs, seed, **options):
    generator = torch.Generator().manual_seed(seed)
    return attend(dropout=0.4, generator=generator, **inputs, **options)


@pytest.mark.parametrize("path", PATHS)
def test_dropout_keeps_or_drops_single_weights(path):
    """Each is 0 or its value / (1 − p); zeros stay zeros; the graph is untouched."""
    inputs = draw_inputs(0, 40, 9, 3, 9)
    inputs["values"] = torch.eye(9, dtype=F64)
    with path_taken(path):
        clean, clean_graph = attend(return_graph=True, **inputs)
        out, graph = dropped(inputs, 0, return_graph=True)
    assert torch.equal(graph.to_dense(), clean_graph.to_dense())
    kept = out != 0
    # p is rounded to 16 bits
    torch.testing.assert_close(out[kept], (clean / 0.6)[kept], rtol=1e-4, atol=0)
    assert not bool((kept & (clean == 0)).any())
    there = int((clean > 0).sum())
    assert 0.45 * there < int(kept.sum()) < 0.75 * there


@pytest.mark.parametrize("path", ["sparse", "dense", "row by row"])
def test_dropout_is_independent(path):
    """Over many copies of one query: the mean is right, and nothing is correlated."""
    copies = 4000
    inputs = draw_inputs(0, 1, 6, 3, 6)
    inputs["queries"] = 0.2 * inputs["queries"].expand(copies, -1)
    inputs["values"] = torch.eye(6, dtype=F64)
    with path_taken(path):
        out = dropped(inputs, 0, alpha=1.1)
    clean = attend(alpha=1.1, **inputs)[0]
    assert bool((clean > 0).all())
    five_sigma = 5 * out.std(dim=0) / copies**0.5
    assert bool(((out.mean(dim=0) - clean).abs() < five_sigma + 1e-4).all())
    within_rows = torch.corrcoef(out.T) - torch.eye(6, dtype=F64)
    assert float(within_rows.abs().max()) < 5 / copies**0.5
    kept = (out != 0).double()
    rows = torch.corrcoef(torch.stack([kept[:-1].ravel(), kept[1:].ravel()]))[0, 1]
    assert abs(float(rows)) < 5 / (6 * copies) ** 0.5


@pytest.mark.parametrize("path", ["sparse", "dense"])
def test_dropout_follows_its_generator(path):
    """The same seed, the same weights; torch's global state is left alone."""
    inputs = draw_inputs(0, 10, 9, 3, 2)
    with path_taken(path):
        before = torch.get_rng_state()
        first = dropped(inputs, 0)
        assert torch.equal(first, dropped(inputs, 0))
        assert not torch.equal(first, dropped(inputs, 1))
        assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("alpha", [1, 1.5])
def test_dropout_gradient(path, alpha):
    """Gradient through a known mask, which identity values make visible."""
    inputs = draw_inputs(0, 6, 5, 3, 2, gate=True)
    cotangent = normal(6, 2, seed=9)
    with path_taken(path):
        eye = {**inputs, "values": torch.eye(5, dtype=F64)}
        visible = dropped(eye, 3, alpha=alpha)
        fast = output_and_grads(
            lambda **kw: dropped(kw, 3, alpha=alpha), inputs, cotangent
        )
    weights = slow_attend(alpha=alpha, **inputs)[1]
    mask = torch.where(visible != 0, visible / weights, 0)
    slow = output_and_grads(
        lambda **kw: (slow_attend(alpha=alpha, **kw)[1] * mask) @ kw["values"],
        inputs,
        cotangent,
    )
    assert_all_close(fast, slow)


@pytest.mark.parametrize("dropout", [1.0, -1.0])
def test_refuses_dropout_outside_zero_to_one(dropout):
    with pytest.raises(ValueError, match="dropout"):
        attend(dropout=dropout, **draw_inputs(0, 2, 3, 2, 2))


Q, K, V = torch.zeros(2, 3), torch.zeros(4, 3), torch.zeros(4, 5)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((Q[0], K, V), {}, r"queries must be 2-D, .* got shape \(3,\)"),
        ((Q, K[0], V), {}, r"keys must be 2-D, .* got shape \(3,\)"),
        ((Q, K, V[0]), {}, r"values must be 2-D, .* got shape \(5,\)"),
        (
            (Q[:, :2], K, V),
            {},
            r"keys of shape \(4, 3\) do not fit queries of shape \(2, 2\)",
        ),
        ((Q, K, V[:3]), {}, r"4 keys need 4 values, got \(3, 5\)"),
        ((Q, K[:0], V[:0]), {}, "attention of 2 queries to 0 keys has no answer"),
        ((Q[:0], K, V), {}, "attention of 0 queries to 4 keys has no answer"),
        (
            (Q, K[:1], V[:1]),
            {"exclude": torch.zeros(2, dtype=torch.long)},
            "the only key is excluded",
        ),
        ((Q, K, V, torch.ones(3)), {}, r"gate must have shape \(2,\).* got \(3,\)"),
        ((Q, K, V, torch.ones(2, 1)), {}, r"gate must have shape .* got \(2, 1\)"),
        (
            (Q, K, V),
            {"exclude": torch.zeros(4, dtype=torch.long)},
            r"exclude must have shape \(2,\).* got \(4,\)",
        ),
        ((Q, K, V, None, 0.5), {}, "alpha must be a finite number of at least 1"),
    ],
)
def test_refuses_what_does_not_fit(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        attend(*arguments, **options)


@pytest.mark.parametrize("path", ["small", "sparse", "dense"])
@pytest.mark.parametrize("alpha", [1, 1.5])
def test_several_views_at_once_equal_one_by_one(path, alpha):
    """Output and gradients of stacked views, with a gate and excluded keys."""
    views = [draw_inputs(seed, 5, 6, 3, 2, gate=True) for seed in (0, 10, 20)]
    together = {name: torch.stack([v[name] for v in views]) for name in views[0]}
    exclude = torch.tensor([0, 1, 2, 3, 5])
    cotangent = normal(3, 5, 2, seed=7)
    with path_taken(path):
        stacked = output_and_grads(
            lambda **kw: attend(alpha=alpha, exclude=exclude, **kw), together, cotangent
        )
        single = [
            output_and_grads(
                lambda **kw: attend(alpha=alpha, exclude=exclude, **kw), view, g
            )
            for view, g in zip(views, cotangent, strict=True)
        ]
    expected = [torch.stack(parts) for parts in zip(*single, strict=True)]
    assert_all_close(stacked, expected)


def test_graph_is_of_one_view():
    inputs = {name: t[None] for name, t in draw_inputs(0, 2, 3, 2, 2).items()}
    with pytest.raises(ValueError, match="one view at a time"):
        attend(return_graph=True, **inputs)


@pytest.mark.parametrize("path", ["small", "sparse", "dense", "dense, computed twice"])
@pytest.mark.parametrize("alpha", [1, 1.5, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_autocast_is_for_the_score_product_alone(path, alpha, dtype):
    """The weights are those of bfloat16 scores, computed and summed in float32."""
    inputs = {
        name: tensor.to(dtype).float() if tensor.is_floating_point() else tensor
        for name, tensor in draw_inputs(0, 6, 9, 4, 3, gate=True, exclude=True).items()
    }
    given = {
        name: tensor.to(dtype) if name in ("queries", "keys", "values") else tensor
        for name, tensor in inputs.items()
    }
    scale = (alpha - 1 if alpha > 1 else 1) / 2  # sqrt(C) = 2
    q = (inputs["queries"] * scale * inputs["gate"][:, None]).bfloat16()
    x = (q @ inputs["keys"].bfloat16().T).float()
    x[torch.arange(6), inputs["exclude"]] = -torch.inf
    weights = entmax(x / (alpha - 1 if alpha > 1 else 1), alpha)
    with path_taken(path), torch.autocast("cpu", torch.bfloat16):
        leaves_ = {n: t.requires_grad_(t.is_floating_point()) for n, t in given.items()}
        out, graph = attend(alpha=alpha, return_graph=True, **leaves_)
    assert out.dtype == graph.values().dtype == torch.float32
    torch.testing.assert_close(graph.to_dense(), weights)
    torch.testing.assert_close(out, weights @ inputs["values"])
    out.sum().backward()
    for name in ("queries", "keys", "values", "gate"):
        assert bool(given[name].grad.isfinite().all()), name
    torch.testing.assert_close(
        given["values"].grad, weights.sum(0)[:, None].expand(9, 3).to(dtype)
    )
