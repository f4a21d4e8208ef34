"""Each term of the loss against loops over views, samples and clusters."""

import math
from itertools import permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl.nn import Objective, alignment, consensus, diversity, pseudo_label
from tests.nn.slow import normal

checked = settings(max_examples=25, deadline=None, derandomize=True, database=None)
F64 = torch.float64


def slow_labels(q):
    """argmax_k of the mean over views of q_ik, as Python integers."""
    tables = [view.tolist() for view in q]
    votes = [
        [sum(entry) for entry in zip(*rows, strict=True)]
        for rows in zip(*tables, strict=True)
    ]
    return [row.index(max(row)) for row in votes]


def slow_pseudo_label(q, form):
    loss, labels = 0, slow_labels(q)
    for view in q:
        for i, label in enumerate(labels):
            gain = view[i, label].log() if form == "log" else view[i, label]
            loss = loss - gain / len(labels)
    return loss


def slow_diversity(q):
    loss = 0
    for view in q:
        n, C = view.shape
        for j in range(C):
            mean = sum(view[i, j] for i in range(n)) / n
            loss = loss + mean * mean.log()
    return loss


def slow_alignment(q, form):
    """−(1/n) Σ_i Σ_{μ≠ν} Σ_j q^μ_ij log q^ν_ij; one-way keeps only μ > ν."""
    n, C = q[0].shape
    loss = torch.zeros((), dtype=F64)
    for mu in range(len(q)):
        for nu in range(len(q)):
            if mu == nu or (form == "one-way" and mu < nu):
                continue
            for i in range(n):
                for j in range(C):
                    loss = loss - q[mu][i, j] * q[nu][i, j].log() / n
    return loss


def slow_total(q, gamma, beta, label_form, align_form, count):
    times = len(q) - 1 if count == "pairs" and len(q) > 1 else 1
    return (
        slow_pseudo_label(q, label_form)
        + gamma * times * slow_diversity(q)
        + beta * slow_alignment(q, align_form)
    )


TERMS = {
    "pseudo-label log": (
        lambda log_q: pseudo_label(log_q, consensus(log_q), "log"),
        lambda q: slow_pseudo_label(q, "log"),
    ),
    "pseudo-label linear": (
        lambda log_q: pseudo_label(log_q, consensus(log_q), "linear"),
        lambda q: slow_pseudo_label(q, "linear"),
    ),
    "diversity": (diversity, slow_diversity),
    "alignment symmetric": (
        lambda log_q: alignment(log_q, "symmetric"),
        lambda q: slow_alignment(q, "symmetric"),
    ),
    "alignment one-way": (
        lambda log_q: alignment(log_q, "one-way"),
        lambda q: slow_alignment(q, "one-way"),
    ),
    "total, paper": (
        lambda log_q: Objective(5.0, 0.5)(log_q).total,
        lambda q: slow_total(q, 5.0, 0.5, "log", "symmetric", "views"),
    ),
    "total, released": (
        lambda log_q: Objective(10.0, 0.2, "linear", "one-way", "pairs")(log_q).total,
        lambda q: slow_total(q, 10.0, 0.2, "linear", "one-way", "pairs"),
    ),
}


def draw_logits(seed, L, n, C, scale=2.0):
    return [
        (scale * normal(n, C, seed=seed + view)).requires_grad_() for view in range(L)
    ]


def log_softmax(logits):
    return [torch.log_softmax(p, dim=1) for p in logits]


@pytest.mark.parametrize("term", TERMS)
@given(
    seed=st.integers(0, 2**31),
    L=st.integers(1, 3),
    n=st.integers(1, 5),
    C=st.integers(2, 4),
)
@checked
def test_equals_the_slow_twin(term, seed, L, n, C):
    """Value and gradient with respect to every view's representation p."""
    fast, slow = TERMS[term]
    logits = draw_logits(seed, L, n, C)
    loss = fast(log_softmax(logits))
    expected = slow([p.exp() / p.exp().sum(dim=1, keepdim=True) for p in logits])
    torch.testing.assert_close(loss, expected)
    if L == 1 and term.startswith("alignment"):  # nothing to align, nothing to learn
        assert float(loss.detach()) == 0
        return
    for got, correct in zip(
        torch.autograd.grad(loss, logits),
        torch.autograd.grad(expected, logits),
        strict=True,
    ):
        torch.testing.assert_close(got, correct, rtol=0, atol=1e-10)


@pytest.mark.parametrize("form", ["log", "linear"])
def test_no_gradient_flows_through_the_pseudo_label(form):
    """Only the entry of the voted label is pulled: −1/n, or −q_y/n for *linear*."""
    log_q = [
        view.detach().requires_grad_() for view in log_softmax(draw_logits(0, 2, 5, 3))
    ]
    labels = slow_labels([view.exp() for view in log_q])
    assert consensus(log_q).tolist() == labels
    loss = Objective(0.0, 0.0, pseudo_label_form=form)(log_q).total
    grads = torch.autograd.grad(loss, log_q)
    for view, grad in zip(log_q, grads, strict=True):
        expected = torch.zeros(5, 3, dtype=F64)
        for i, label in enumerate(labels):
            pull = 1.0 if form == "log" else float(view[i, label].detach().exp())
            expected[i, label] = -pull / 5
        torch.testing.assert_close(grad, expected)


def test_the_vote_decides_not_the_view():
    """A view that prefers another cluster is still scored at the common one."""
    log_q = list(torch.tensor([[[0.9, 0.1]], [[0.4, 0.6]]], dtype=F64).log())
    assert consensus(log_q).tolist() == [0]
    loss = Objective(0.0, 0.0, pseudo_label_form="linear")(log_q)
    assert float(loss.pseudo_label) == pytest.approx(-1.3)


@pytest.mark.parametrize("L", [1, 2, 3])
def test_consensus(L):
    """The argmax of the mean q, without a gradient, also in the loss's own report."""
    log_q = log_softmax(draw_logits(0, L, 30, 4))
    labels = consensus(log_q)
    assert labels.tolist() == slow_labels([view.exp() for view in log_q])
    assert not labels.requires_grad
    assert torch.equal(Objective(1.0, 1.0)(log_q).labels, labels)


@pytest.mark.parametrize("form", ["log", "linear"])
def test_pseudo_label_takes_any_labels(form):
    """Not only the consensus."""
    log_q = log_softmax(draw_logits(0, 2, 4, 3))
    labels = [2, 0, 1, 1]
    expected = sum(
        -(view[i, label] if form == "log" else view[i, label].exp()) / 4
        for view in log_q
        for i, label in enumerate(labels)
    )
    got = pseudo_label(log_q, torch.tensor(labels), form)
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("L", [1, 2, 3])
@pytest.mark.parametrize("C", [2, 5])
def test_diversity_is_smallest_for_balanced_clusters(L, C):
    """−L log C when the batch mean is uniform, even if each sample is certain."""
    floor = -L * math.log(C)
    uniform = [torch.full((4, C), -math.log(C), dtype=F64)] * L
    assert float(diversity(uniform)) == pytest.approx(floor)
    certain = torch.log_softmax(30 * torch.eye(C, dtype=F64), dim=1)
    assert float(diversity([certain] * L)) == pytest.approx(floor)
    for seed in range(20):
        drawn = log_softmax(draw_logits(seed, L, 4, C))
        assert floor < float(diversity(drawn).detach()) < 0


def collapsed(height):
    """Every sample in cluster 0, in float32 as in training."""
    logits = torch.zeros(6, 3)
    logits[:, 0] = height
    return logits.requires_grad_()


@pytest.mark.parametrize("height", [20.0, 80.0, 200.0])
def test_collapse_is_the_worst_and_has_a_gradient(height):
    logits = collapsed(height)
    loss = diversity([torch.log_softmax(logits, dim=1)])
    assert float(loss.detach()) == pytest.approx(0, abs=1e-6)
    (grad,) = torch.autograd.grad(loss, logits)
    assert bool(grad.isfinite().all())


@pytest.mark.parametrize("L", [2, 3])
def test_symmetric_alignment_ignores_the_order_of_views(L):
    log_q = log_softmax(draw_logits(0, L, 5, 4))
    for order in permutations(range(L)):
        shuffled = [log_q[view] for view in order]
        torch.testing.assert_close(alignment(shuffled), alignment(log_q))


def test_one_way_alignment_depends_on_the_order():
    """The two orders differ, and their sum is the symmetric form."""
    one, two = log_softmax(draw_logits(0, 2, 5, 4))
    forth, back = (
        alignment([one, two], "one-way"),
        alignment([two, one], "one-way"),
    )
    assert abs(float((forth - back).detach())) > 1e-3
    torch.testing.assert_close(forth + back, alignment([one, two], "symmetric"))


@pytest.mark.parametrize(("L", "times"), [(1, 1), (2, 1), (3, 2), (4, 3)])
def test_released_code_counts_diversity_once_per_other_view(L, times):
    log_q = log_softmax(draw_logits(0, L, 5, 4))
    counted = Objective(2.0, 0.0, diversity_count="pairs")(log_q)
    torch.testing.assert_close(counted.diversity, times * diversity(log_q))
    torch.testing.assert_close(
        counted.total, counted.pseudo_label + 2 * times * diversity(log_q)
    )


@pytest.mark.parametrize("L", [1, 2, 3])
def test_total_is_the_weighted_sum(L):
    """The terms are reported unweighted; one view alone has nothing to align."""
    log_q = log_softmax(draw_logits(0, L, 5, 4))
    loss = Objective(gamma=7.0, beta=0.3)(log_q)
    label_term = pseudo_label(log_q, consensus(log_q))
    torch.testing.assert_close(loss.pseudo_label, label_term)
    torch.testing.assert_close(loss.diversity, diversity(log_q))
    torch.testing.assert_close(loss.alignment, alignment(log_q))
    torch.testing.assert_close(
        loss.total, loss.pseudo_label + 7 * loss.diversity + 0.3 * loss.alignment
    )
    assert (float(loss.alignment.detach()) == 0) == (L == 1)
    assert loss.terms() == loss[:4]


@pytest.mark.parametrize("L", [1, 2])
def test_refuses_unknown_forms(L):
    """Even with one view, where the alignment would not be needed."""
    log_q = log_softmax(draw_logits(0, L, 3, 2))
    with pytest.raises(ValueError, match="'log', 'linear'; got 'exp'"):
        pseudo_label(log_q, consensus(log_q), "exp")
    with pytest.raises(ValueError, match="'symmetric', 'one-way'; got 'both'"):
        alignment(log_q, "both")
    with pytest.raises(ValueError, match="got 'exp'"):
        Objective(1, 1, pseudo_label_form="exp")(log_q)
    with pytest.raises(ValueError, match="got 'both'"):
        Objective(1, 1, alignment_form="both")(log_q)


def test_refuses_an_unknown_diversity_count():
    with pytest.raises(ValueError, match="diversity"):
        Objective(1, 1, diversity_count="twice")(log_softmax(draw_logits(0, 2, 3, 2)))
