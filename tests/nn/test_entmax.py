"""entmax against its slow twin, and against what the mathematics says of it."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sagl.nn import entmax
from sagl.nn.entmax import entmax_of_largest, entmax_rows
from tests.nn.slow import normal, slow_entmax, slow_support, support_distance

ALPHAS = [1, 1.2, 1.5, 1.8, 2, 2.5, 3]
SPARSE_ALPHAS = ALPHAS[1:]
F64 = torch.float64

checked = settings(max_examples=30, deadline=None, derandomize=True, database=None)
seeds = st.integers(0, 2**31)
# Quarters: sums are exact and ties are common.
rows = st.lists(st.integers(-24, 24), min_size=1, max_size=10).map(
    lambda quarters: torch.tensor(quarters, dtype=F64) / 4
)


def value_and_grad(project, scores, alpha, cotangent):
    scores = scores.clone().requires_grad_()
    weights = project(scores, alpha)
    (grad,) = torch.autograd.grad((weights * cotangent).sum(), scores)
    return weights.detach(), grad


@pytest.mark.parametrize("alpha", ALPHAS)
@given(
    seed=seeds,
    lead=st.sampled_from([(), (1,), (4,), (2, 3)]),
    n=st.integers(1, 12),
    scale=st.sampled_from([0.1, 1.0, 3.0]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
@checked
def test_equals_the_slow_twin(alpha, seed, lead, n, scale, dtype):
    """Value and gradient, against sorting (α 1.5, 2) or bisection in float64."""
    scores = scale * normal(*lead, n, seed=seed, dtype=dtype)
    if alpha >= 2:  # there the gradient jumps where the support changes
        assume(support_distance(scores, alpha) > 1e-2)
    cotangent = normal(*lead, n, seed=seed + 1, dtype=dtype)
    fast = value_and_grad(entmax, scores, alpha, cotangent)
    slow = value_and_grad(slow_entmax, scores.double(), alpha, cotangent.double())
    tolerance = 1e-9 if dtype == F64 else 2e-4
    for got, expected in zip(fast, slow, strict=True):
        assert got.dtype == dtype
        torch.testing.assert_close(got.double(), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    ("alpha", "scores", "weights"),
    [
        (1.5, [0.4, 0.0], [0.64, 0.36]),  # sqrt(w) differ by half of 0.4
        (1.5, [2.0, 0.0], [1.0, 0.0]),
        (2, [0.3, 0.1, -1.0], [0.6, 0.4, 0.0]),  # w differ as the scores
        (3, [0.25, 0.0], [0.75, 0.25]),  # w² differ by twice 0.25
    ],
)
def test_values_computed_by_hand(alpha, scores, weights):
    """Numbers that can be checked on paper, so that both twins cannot err together."""
    expected = torch.tensor(weights, dtype=F64)
    scores = torch.tensor(scores, dtype=F64)
    for project in (entmax, slow_entmax):
        torch.testing.assert_close(project(scores, alpha), expected)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2])
def test_any_dim(alpha, dim):
    """Entries compete along ``dim`` alone, sum to one there, and zeros are exact."""
    scores = 3 * normal(5, 6, 7, seed=0)
    weights = entmax(scores, alpha, dim=dim)
    assert weights.shape == scores.shape
    torch.testing.assert_close(
        weights.sum(dim), torch.ones_like(weights.sum(dim)), rtol=0, atol=1e-12
    )
    expected = slow_entmax(scores.movedim(dim, -1), alpha).movedim(-1, dim)
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-9)
    assert bool((weights >= 0).all())
    assert bool((weights == 0).any()) == (alpha > 1)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_rows_sum_to_one_in_float32(alpha):
    weights = entmax(3 * normal(200, 100, seed=0, dtype=torch.float32), alpha)
    torch.testing.assert_close(weights.sum(-1), torch.ones(200), rtol=0, atol=1e-4)


@pytest.mark.parametrize("alpha", [5, 10])
def test_rows_sum_to_one_for_a_very_large_alpha(alpha):
    weights = entmax(3 * normal(200, 100, seed=0, dtype=torch.float32), alpha)
    torch.testing.assert_close(weights.sum(-1), torch.ones(200), rtol=0, atol=1e-4)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_gradcheck(alpha):
    """The analytic Jacobian is the numerical one, away from changes of support."""
    scores = normal(30, 6, seed=0)
    if alpha > 1:  # by a thousand of gradcheck's steps
        far = [row for row in scores if support_distance(row, alpha) > 1e-3]
        scores = torch.stack(far)
    scores = scores[:4].requires_grad_()
    assert scores.shape == (4, 6)
    assert torch.autograd.gradcheck(lambda s: entmax(s, alpha), (scores,))


@given(scores=rows, alpha=st.floats(1.1, 3.0), seed=seeds)
@checked
def test_solves_the_variational_problem(scores, alpha, seed):
    """KKT conditions (proof of thm. lzbridge), and no other point does better.

    Stationarity: s_j + (1 − α a_j^(α−1)) / (α (α − 1)) − ρ + μ_j = 0, with μ_j = 0
    on the support and μ_j ≥ 0 off it.
    """
    a = entmax(scores, alpha)
    assert bool((a >= 0).all())
    assert abs(float(a.sum()) - 1) < 1e-9
    slope = scores + (1 - alpha * a ** (alpha - 1)) / (alpha * (alpha - 1))
    support = a > 0
    rho = slope[support].mean()
    torch.testing.assert_close(
        slope[support], rho.expand(int(support.sum())), rtol=0, atol=1e-8
    )
    mu = rho - slope[~support]
    assert bool((mu >= -1e-8).all())

    def objective(point):
        entropy = (point - point**alpha).sum() / (alpha * (alpha - 1))
        return float(point @ scores + entropy)

    others = torch.softmax(4 * normal(20, len(scores), seed=seed), dim=-1)
    others = torch.cat([others, torch.eye(len(scores), dtype=F64)])
    assert objective(a) >= max(objective(point) for point in others) - 1e-9


@pytest.mark.parametrize("alpha", ALPHAS)
@given(scores=rows, shift=st.integers(-40, 40))
@checked
def test_shift_changes_nothing(alpha, scores, shift):
    torch.testing.assert_close(
        entmax(scores + shift, alpha), entmax(scores, alpha), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("alpha", ALPHAS)
@given(scores=rows, data=st.data())
@checked
def test_permutation_of_scores_permutes_weights(alpha, scores, data):
    order = torch.tensor(data.draw(st.permutations(range(len(scores)))))
    torch.testing.assert_close(
        entmax(scores[order], alpha), entmax(scores, alpha)[order], rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("alpha", ALPHAS)
@given(seed=seeds, hidden=st.lists(st.booleans(), min_size=2, max_size=9))
@checked
def test_minus_infinity_hides_an_entry(alpha, seed, hidden):
    """Weight and gradient 0 there; the others are as if it had never existed."""
    assume(not all(hidden))
    hidden = torch.tensor(hidden)
    scores = normal(len(hidden), seed=seed)
    cotangent = normal(len(hidden), seed=seed + 1)
    masked = scores.masked_fill(hidden, -torch.inf)
    weights, grad = value_and_grad(entmax, masked, alpha, cotangent)
    assert bool((weights[hidden] == 0).all())
    assert bool((grad[hidden] == 0).all())
    rest = value_and_grad(slow_entmax, scores[~hidden], alpha, cotangent[~hidden])
    torch.testing.assert_close(weights[~hidden], rest[0], rtol=0, atol=1e-9)
    torch.testing.assert_close(grad[~hidden], rest[1], rtol=0, atol=1e-9)


@pytest.mark.parametrize("alpha", [1, 1.5, 2, 2.5])
@pytest.mark.parametrize(
    ("bad", "value"),
    [
        ([-torch.inf, -torch.inf], "-inf"),
        ([0.0, torch.nan], "nan"),
        ([torch.inf, 0.0], "inf"),
    ],
)
def test_refuses_a_row_without_answer(alpha, bad, value):
    """The message names the row and its value."""
    scores = torch.tensor([[0.0, 1.0], bad])
    with pytest.raises(ValueError, match=rf"row \(1,\).* largest score is {value};"):
        entmax(scores, alpha)


@pytest.mark.parametrize("alpha", [0.99, 0, -1, float("nan"), float("inf")])
def test_refuses_alpha(alpha):
    with pytest.raises(ValueError, match="alpha must be a finite number of at least 1"):
        entmax(torch.zeros(3), alpha)


def test_refuses_what_has_no_entries():
    with pytest.raises(ValueError, match="got a scalar"):
        entmax(torch.tensor(1.0))
    with pytest.raises(ValueError, match="dimension 1 of length 0"):
        entmax(torch.empty(3, 0, 2), dim=1)
    assert entmax(torch.empty(0, 3)).shape == (0, 3)  # no rows is no problem


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_large_scores(alpha, dtype):
    """At 1e4 nothing overflows, and two leaders far above the rest share the row."""
    scores = torch.tensor([[1e4, -1e4, 0.0, 1e4], [-1e4, -2e4, -3e4, -4e4]])
    scores = scores.to(dtype).requires_grad_()
    weights = entmax(scores, alpha)
    expected = torch.tensor([[0.5, 0, 0, 0.5], [1, 0, 0, 0]], dtype=dtype)
    torch.testing.assert_close(weights, expected)
    weights[:, 0].sum().backward()
    assert bool(scores.grad.isfinite().all())


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_ties_share(alpha, n):
    """Equal scores have equal weights: 1/n if all are, equal halves if two lead."""
    expected = torch.full((n,), 1 / n, dtype=F64)
    weights = entmax(torch.full((n,), -3.7, dtype=F64), alpha)
    torch.testing.assert_close(weights, expected, rtol=1e-9, atol=0)
    leaders = entmax(torch.cat([torch.ones(2), torch.zeros(n)]).double(), alpha)
    assert leaders[0] == leaders[1]
    assert bool((leaders[2:] == leaders[2]).all())


def test_alpha_towards_one_approaches_softmax():
    """The distance to softmax falls in proportion to α − 1."""
    scores = 2 * normal(20, 30, seed=0)
    softmax = torch.softmax(scores, dim=-1)
    errors = [
        float((entmax(scores, 1 + step) - softmax).abs().max())
        for step in (1e-1, 1e-2, 1e-3)
    ]
    assert errors[0] < 0.2
    assert errors[1] < 0.2 * errors[0]
    assert errors[2] < 0.2 * errors[1]


@given(
    seed=seeds,
    n=st.integers(2, 40),
    scale=st.floats(0.05, 10),
    alphas=st.lists(st.floats(1.1, 4), min_size=2, max_size=2, unique=True).map(sorted),
)
@checked
def test_larger_alpha_never_has_a_larger_support(seed, n, scale, alphas):
    """On the same scores the supports are nested.

    With b = α − 1, entry j is out of the support when g(b) = sum_i (b d_i)^(1/b) ≥ 1,
    d_i = [s_i − s_j]_+. Where g = 1 every b d_i ≤ 1 < e, so g grows there: once it
    has reached 1 it never falls below again.
    """
    scores = scale * normal(n, seed=seed)
    small, large = (entmax(scores, alpha) > 0 for alpha in alphas)
    assert bool((small | ~large).all())


@given(seed=seeds, n=st.integers(1, 30), alpha=st.floats(1.2, 3))
@checked
def test_support(seed, n, alpha):
    """Exact zeros exactly where the entries above already weigh one."""
    scores = 2 * normal(n, seed=seed)
    assert (entmax(scores, alpha) > 0).tolist() == slow_support(scores, alpha)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_leaves_its_input_alone(alpha):
    """The in-place steps inside work on copies."""
    scores = normal(4, 5, seed=0)
    before = scores.clone()
    entmax(scores, alpha)
    assert torch.equal(scores, before)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("many", [40, 1500])
def test_of_the_largest_equals_all(alpha, many):
    """Rows of few and of many neighbours, and one in which all scores are equal."""
    scales = torch.tensor([8.0, 2.0, 0.1, 0.0, 30.0], dtype=F64)
    scores = scales[:, None] * normal(5, many, seed=3, dtype=F64)
    expected = slow_entmax(scores, alpha)
    got = entmax_of_largest(scores, alpha)
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-9)
    if alpha > 1:
        assert torch.equal(got > 0, entmax_rows(scores, alpha) > 0)


def test_of_the_largest_a_row_does_not_depend_on_the_others():
    """Whether others have many neighbours or few."""
    sharp, flat = 8 * normal(3, 1500, seed=1, dtype=F64), normal(3, 1500, seed=2) / 20
    alone = entmax_of_largest(sharp, 1.5)
    assert (alone[0] > 0).sum() < 64 < (entmax_rows(flat, 1.5) > 0).sum(dim=1).min()
    mixed = torch.stack([sharp[0], flat[0].double(), sharp[2]])
    assert torch.equal(entmax_of_largest(mixed, 1.5)[::2], alone[::2])
    wide = entmax_of_largest(flat.double(), 1.5)
    assert torch.equal(entmax_of_largest(mixed, 1.5)[1], wide[0])
