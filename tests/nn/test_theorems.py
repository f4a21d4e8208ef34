"""The paper's theorems, on the library's own code.

(a) capacity: two matrices reach every directed similarity, one shared does not;
(b) subspace preservation: the exact margin that entmax needs;
(c) block-diagonal graphs on independent subspaces, for seen and unseen samples;
(d) support sparsity: the support is what lies above the threshold.
"""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sagl.nn import ViewNetwork, attend, entmax
from tests.nn.slow import normal, slow_support, slow_threshold

checked = settings(max_examples=40, deadline=None, derandomize=True, database=None)
seeds = st.integers(0, 2**31)
alphas = st.floats(1.1, 3)
F64 = torch.float64


def view_with(U, V, alpha=1.5):
    """A view that passes its features on (z = h) and scores them with U and V."""
    C = len(U)
    view = ViewNetwork(C, C, alpha=alpha).double()
    with torch.no_grad():
        view.encoder.v.copy_(torch.eye(C))
        view.encoder.g.fill_(1)
        view.encoder.b.zero_()
        view.U.copy_(U)
        view.V.copy_(V)
    return view


def scores_of(view, Z):
    """S as ``attend`` sees it.

    One more key of zeros has score 0; under softmax the log-ratio of a weight to that
    key's weight is then the score itself.
    """
    z, queries, keys, _ = view.linear(Z)
    keys = torch.cat([keys, torch.zeros_like(keys[:1])])
    values = torch.cat([z, z[:1]])
    _, graph = attend(queries, keys, values, alpha=1, return_graph=True)
    log_weights = graph.to_dense().log()
    return log_weights[:, :-1] - log_weights[:, -1:]


def factors_of(W):
    """U, V of the proof of thm. capacity: sqrt(C) W = P Σ Q^T, halves of Σ each."""
    P, sigma, Qt = torch.linalg.svd(len(W) ** 0.5 * W)
    return P * sigma.sqrt(), Qt.T * sigma.sqrt()


# (a) capacity


@given(seed=seeds, C=st.integers(2, 6), more=st.integers(0, 6))
@checked
def test_two_matrices_reach_every_similarity(seed, C, more):
    """Any A* = Z W* Z^T is recovered, and from it W*, if Z has full column rank."""
    Z = normal(C + more, C, seed=seed)
    assume(float(torch.linalg.cond(Z)) < 1e3)
    W = normal(C, C, seed=seed + 1)
    A = Z @ W @ Z.T
    W, A = 5 * W / A.abs().max(), 5 * A / A.abs().max()
    S = scores_of(view_with(*factors_of(W)), Z)
    torch.testing.assert_close(S, A, rtol=0, atol=1e-9)
    inverse = torch.linalg.pinv(Z)
    torch.testing.assert_close(inverse @ S @ inverse.T, W, rtol=0, atol=1e-6)


@given(seed=seeds, C=st.integers(2, 6), more=st.integers(0, 6))
@checked
def test_one_shared_matrix_does_not(seed, C, more):
    """With U = V the error is at least the skew part of A*, and this is sharp.

    W* = G + N with G positive definite and N skew: a shared root of G misses exactly
    N, any other shared matrix misses more, two matrices miss nothing.
    """
    Z = normal(C + more, C, seed=seed) / 2
    root = normal(C, C, seed=seed + 1) / C**0.5
    N = normal(C, C, seed=seed + 2) / C**0.5
    N = (N - N.T) / 2
    A = Z @ (root @ root.T + N) @ Z.T
    floor = float((A - A.T).norm()) / 2
    assert floor > 1e-3

    def error(U, V):
        return float((scores_of(view_with(U, V), Z) - A).norm())

    best = root * C**0.25
    assert error(best, best) == pytest.approx(floor, rel=1e-6)
    for step in range(3):
        U = best + 0.1 * normal(C, C, seed=seed + 3 + step)
        assert error(U, U) >= floor * (1 - 1e-9)
    assert error(*factors_of(root @ root.T + N)) < 1e-8


# (b) subspace preservation


def needed_margin(k, alpha):
    """k intra scores at m: (k weights of 1/k) τ = (α − 1) m − k^(1−α).

    An inter score below them by Δ stays out exactly if k ((α − 1) Δ)^(1/(α−1)) ≥ 1.
    """
    return k ** (1 - alpha) / (alpha - 1)


@given(
    k=st.integers(1, 20), others=st.integers(1, 10), alpha=alphas, m=st.floats(-5, 5)
)
@checked
def test_the_margin_is_sharp(k, others, alpha, m):
    """k equal intra scores: slightly more than the margin works, less fails."""
    margin = needed_margin(k, alpha)
    for factor, leak in [(1.001, False), (0.999, True)]:
        row = torch.full((k + others,), m, dtype=F64)
        row[k:] -= factor * margin
        weights = entmax(row, alpha)
        assert bool((weights[k:] > 0).all()) == leak
        assert bool((weights[k:] == 0).all()) != leak


@given(
    seed=seeds,
    k=st.integers(1, 15),
    others=st.integers(1, 15),
    alpha=alphas,
    spread=st.floats(0, 3),
)
@checked
def test_the_papers_separation_with_the_exact_margin(seed, k, others, alpha, spread):
    """min intra ≥ max inter + k^(1−α) / (α − 1) is enough, whatever lies above it.

    Intra scores above the minimum only raise the threshold (Assumption simsep made
    exact, Assumption sufsamp as the number k).
    """
    intra = spread * normal(k, seed=seed).abs()
    inter = -spread * normal(others, seed=seed + 1).abs()
    inter = inter + intra.min() - 1.000001 * needed_margin(k, alpha)
    weights = entmax(torch.cat([intra, inter]), alpha)
    assert bool((weights[k:] == 0).all())
    assert float(weights[:k].sum()) == pytest.approx(1)


@pytest.mark.parametrize(("alpha", "margin"), [(1.5, 2.0), (2, 1.0), (1.25, 4.0)])
@given(seed=seeds, k=st.integers(0, 10), others=st.integers(1, 10))
@checked
def test_margin_below_the_largest_score(alpha, margin, seed, k, others):
    """1 / (α − 1) below the row's largest score nothing survives, inter or intra."""
    rest = -3 * normal(k, seed=seed).abs()
    inter = -margin - normal(others, seed=seed + 1).abs()
    weights = entmax(torch.cat([torch.zeros(1, dtype=F64), rest, inter]), alpha)
    assert bool((weights[1 + k :] == 0).all())
    # and this is the smallest such number: alone with the leader, a hair above stays
    pair = entmax(torch.tensor([0.0, -0.999 * margin], dtype=F64), alpha)
    assert float(pair[1]) > 0


# (c) block-diagonal graphs

GROUP = 12  # samples of each subspace


def subspace_samples(bases, n_each, seed):
    """Samples of each subspace with coordinates in [0.5, 1.5], and their labels."""
    Z, labels = [], []
    for label, basis in enumerate(bases):
        generator = torch.Generator().manual_seed(seed + label)
        shape = n_each, basis.shape[1]
        coordinates = 0.5 + torch.rand(shape, generator=generator, dtype=F64)
        Z.append(coordinates @ basis.T)
        labels += [label] * n_each
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    return torch.cat(Z)[order], torch.tensor(labels)[order]


def assert_separated(S, same, margin):
    """Assumption simsep: every intra score above every inter score by the margin."""
    lowest = S.masked_fill(~same, torch.inf).amin(dim=1)
    highest = S.masked_fill(same, -torch.inf).amax(dim=1)
    assert bool((lowest - highest > margin).all())


def assert_block_diagonal(graph, row_labels, column_labels):
    """After sorting by subspace, only the diagonal blocks hold anything."""
    A = graph.to_dense()
    A = A[row_labels.argsort()][:, column_labels.argsort()]
    n_rows, n_columns = row_labels.bincount(), column_labels.bincount()
    blocks = [
        strip.split(n_columns.tolist(), dim=1) for strip in A.split(n_rows.tolist())
    ]
    for i, strip in enumerate(blocks):
        for j, block in enumerate(strip):
            if i == j:
                torch.testing.assert_close(block.sum(dim=1), block.new_ones(n_rows[i]))
            else:
                assert int(block.count_nonzero()) == 0


@pytest.mark.parametrize("self_loops", [True, False])
@given(
    seed=seeds,
    dims=st.lists(st.integers(1, 3), min_size=2, max_size=4),
    alpha=st.sampled_from([1.3, 1.5, 2]),
)
@settings(checked, max_examples=15)
def test_independent_subspaces_give_block_diagonal_graphs(
    self_loops, seed, dims, alpha
):
    """thm. blockdiag, for the samples themselves and for new ones asking them.

    The subspaces are independent but not orthogonal. B^-1 maps each to coordinates
    of its own, so U and V made of it separate them; their scale makes the margin.
    """
    C = sum(dims)
    B = torch.eye(C, dtype=F64) + 0.5 * normal(C, C, seed=seed)
    assume(float(torch.linalg.cond(B)) < 1e3)
    bases = B.split(dims, dim=1)
    Z, labels = subspace_samples(bases, GROUP, seed)
    new, new_labels = subspace_samples(bases, 5, seed + 100)

    margin = needed_margin(GROUP if self_loops else GROUP - 1, alpha)
    # intra dot products of coordinates are at least 1/4
    apart = torch.linalg.inv(B).T
    view = view_with(1.01 * margin * 4 * C**0.5 * apart, apart, alpha)
    z, queries, keys, _ = view.linear(Z)
    exclude = None if self_loops else torch.arange(len(Z))
    _, graph = attend(queries, keys, z, alpha=alpha, exclude=exclude, return_graph=True)
    assert_separated(queries @ keys.T / C**0.5, labels[:, None] == labels, margin)
    assert_block_diagonal(graph, labels, labels)

    asking = view.linear(new).queries
    same = new_labels[:, None] == labels
    assert_separated(asking @ keys.T / C**0.5, same, margin)
    _, graph = attend(asking, keys, z, alpha=alpha, return_graph=True)
    assert_block_diagonal(graph, new_labels, labels)


def test_without_the_margin_the_blocks_leak():
    """Two lines 20° apart: plain similarity (U = V = I) mixes them, B^-1 does not."""
    B = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=F64)
    B[:, 1] = torch.tensor([0.9397, 0.3420])
    Z, labels = subspace_samples(B.split(1, dim=1), GROUP, 0)
    eye = torch.eye(2, dtype=F64)
    apart = torch.linalg.inv(B).T
    for U, V, leaks in [(eye, eye, True), (6 * apart, apart, False)]:
        z, queries, keys, _ = view_with(U, V).linear(Z)
        _, graph = attend(queries, keys, z, return_graph=True)
        inter = graph.to_dense()[labels[:, None] != labels]
        assert bool((inter > 0).any()) == leaks


# (d) support sparsity


@given(seed=seeds, n=st.integers(1, 40), alpha=alphas, scale=st.floats(0.1, 10))
@checked
def test_support_is_what_lies_above_the_threshold(seed, n, alpha, scale):
    """a_j > 0 exactly if (α − 1) s_j > τ, and then a_j^(α−1) is the difference."""
    scores = scale * normal(n, seed=seed)
    weights = entmax(scores, alpha)
    above = (alpha - 1) * scores - slow_threshold(scores, alpha)
    assert torch.equal(weights > 0, above > 0)
    assert (weights > 0).tolist() == slow_support(scores, alpha)
    torch.testing.assert_close(
        weights ** (alpha - 1), above.clamp(min=0), rtol=0, atol=1e-9
    )
