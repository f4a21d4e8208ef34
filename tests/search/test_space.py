"""Ridge regressions that leave one out, and the graph, against slow versions."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl.nn.neighbours import unit_rows
from sagl.nn.sparse import multiply
from sagl.search.config import SearchConfig
from sagl.search.ridge import Ridge, Spectrum
from sagl.search.score import score
from sagl.search.space import (
    Space,
    affinity,
    from_edges,
    mean_of,
    one_hot,
    row_stochastic,
)

checked = settings(max_examples=25, deadline=None, derandomize=True, database=None)


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def dense(matrix):
    return matrix.tensor().to_dense()


def loud(x, penalty):
    """x in its principal directions that the penalty does not silence, and λ."""
    weight = penalty * x.square().sum() / len(x)
    values, vectors = torch.linalg.eigh(x.T @ x)
    return x @ vectors[:, values > 0.1 * min(weight, values[-1])], weight


@checked
@given(
    n=st.integers(3, 12),
    d=st.integers(1, 15),
    penalty=st.sampled_from([0.1, 1.0, 30.0]),
    seed=st.integers(0, 99),
)
def test_left_out_is_a_fit_without_the_sample(n, d, penalty, seed):
    x, targets = normal(n, d, seed=seed), normal(n, 3, seed=seed + 1)
    ridge = Ridge(Spectrum(x), penalty)
    kept, weight = loud(x, penalty)  # neither changes without the sample
    identity = torch.eye(kept.shape[1], dtype=x.dtype)
    for i in range(n):
        others = [j for j in range(n) if j != i]
        gram = kept[others].T @ kept[others] + weight * identity
        W = torch.linalg.solve(gram, kept[others].T @ targets[others])
        torch.testing.assert_close(ridge.left_out(targets)[i], kept[i] @ W)


@pytest.mark.parametrize("shape", [(20, 4), (6, 9)])
def test_weights_solve_the_normal_equations(shape):
    x, targets = normal(*shape), normal(shape[0], 2, seed=1)
    kept, weight = loud(x, 0.1)
    assert kept.shape[1] == min(shape)
    W = Ridge(Spectrum(x), 0.1).weights(targets)
    torch.testing.assert_close(x.T @ (x @ W - targets), -weight * W)


def test_directions_that_the_penalty_silences_have_no_weight():
    x = normal(50, 3)
    x[:, 2] *= 0.01
    W = Ridge(Spectrum(x), 1.0).weights(normal(50, 2, seed=1))
    assert W[:2].abs().min() > 1e-3
    assert W[2].abs().max() < 1e-2 * W[:2].abs().min()


def slow_affinity(x, neighbours):
    n = len(x)
    A = torch.zeros(n, n, dtype=x.dtype)
    x = x / x.norm(dim=1, keepdim=True)
    distance = torch.cdist(x, x)
    near = []
    for i in range(n):
        order = [j for j in distance[i].argsort().tolist() if j != i]
        near.append(order[:neighbours])
    for i in range(n):
        for j in near[i]:
            widths = distance[i, near[i][-1]] * distance[j, near[j][-1]]
            weight = (-(distance[i, j] ** 2) / widths).exp() / 2
            A[i, j] += weight
            A[j, i] += weight
    return A


@pytest.mark.parametrize("neighbours", [1, 3, 7])
def test_affinity_pair_by_pair(neighbours):
    x = normal(8, 5)
    A = dense(affinity(x, neighbours))
    torch.testing.assert_close(A, slow_affinity(x, neighbours))
    torch.testing.assert_close(A, A.T)


def test_few_samples_have_fewer_neighbours():
    assert affinity(normal(4, 3), 10).entries.numel() == 4 * 3


def test_edges_of_one_place_are_summed():
    rows, cols = torch.tensor([1, 0, 1]), torch.tensor([2, 0, 2])
    A = dense(from_edges(rows, cols, torch.tensor([1.0, 5.0, 2.0]), 3))
    assert A.tolist() == [[5, 0, 0], [0, 0, 3], [0, 0, 0]]


def test_rows_sum_to_one_and_means_are_means():
    A = affinity(normal(9, 3), 3)
    B = affinity(normal(9, 3, seed=1), 2)
    torch.testing.assert_close(
        dense(row_stochastic(A)).sum(dim=1), torch.ones(9).double()
    )
    torch.testing.assert_close(dense(mean_of(A, B)), (dense(A) + dense(B)) / 2)


def test_a_view_alone_is_made_once_however_views_count(problem):
    space, _ = problem
    alone = space.only(1)
    weighted = space.weighted([0.9, 0.1])
    assert weighted.only(1) is alone
    assert weighted.only(0) is space.only(0)
    assert alone.weights == [1.0]
    assert alone.views[0] is space.views[1]


def test_judges_are_as_stiff_as_a_cluster_is_large_and_made_once(problem):
    space, truth = problem
    judges = space.scoring_fits(4)
    assert space.scoring_fits(4) is judges
    assert space.weighted([1.0, 2.0]).scoring_fits(4) is judges
    Y = one_hot(truth, 4) - 0.25
    for judge, x in zip(judges, space.views, strict=True):
        expected = Ridge(Spectrum(x), len(truth) / 4).left_out(Y)
        torch.testing.assert_close(judge.left_out(Y), expected)


@pytest.mark.parametrize("penalty", [0.5, 40.0])
def test_regressions_that_draw_clusters_have_the_penalty_asked_for(penalty):
    x, Y = normal(40, 6), one_hot(torch.arange(40) % 4, 4) - 0.25
    (fit,) = Space([x], 10, SearchConfig(penalty=penalty)).fits
    expected = Ridge(Spectrum(unit_rows(x.float())), penalty).left_out(Y)
    torch.testing.assert_close(fit.left_out(Y), expected)


def test_judges_say_the_same_of_twice_as_many_samples():
    x, labels = normal(40, 6), torch.arange(40) % 4
    Y = one_hot(labels, 4) - 0.25
    once = Space([x], 10).scoring_fits(4)[0].weights(Y)
    twice = Space([torch.cat([x, x])], 10).scoring_fits(4)[0].weights(torch.cat([Y, Y]))
    torch.testing.assert_close(once, twice)


def test_only_directions_count():
    a, b = normal(30, 4), normal(30, 6, seed=1)
    lengths = normal(30, 1, seed=2).abs() + 0.1
    one, other = Space([a, b], 10), Space([a * lengths, b * 7], 10)
    Y = one_hot(torch.arange(30) % 3, 3)
    torch.testing.assert_close(one.fits[0].left_out(Y), other.fits[0].left_out(Y))
    torch.testing.assert_close(multiply(one.graph, Y), multiply(other.graph, Y))


def test_a_view_alone_is_the_space_of_that_view():
    views = [normal(30, 5), normal(30, 3, seed=1)]
    alone, expected = Space(views, 10).only(1), Space(views[1:], 10)
    assert torch.equal(alone.views[0], expected.views[0])
    Y = one_hot(torch.arange(30) % 3, 3)
    torch.testing.assert_close(alone.fits[0].left_out(Y), expected.fits[0].left_out(Y))
    torch.testing.assert_close(dense(alone.graph), dense(expected.graph))


def test_views_count_by_their_weights():
    views = [normal(30, 5), normal(30, 3, seed=1)]
    space = Space(views, neighbours=4).weighted([3.0, 1.0])
    assert space.weights == [0.75, 0.25]
    assert space.neighbours == 4
    rows = space.side_by_side(space.views)
    expected = 0.75 * space.views[0] @ space.views[0].T
    expected += 0.25 * space.views[1] @ space.views[1].T
    torch.testing.assert_close(rows @ rows.T, expected)
    torch.testing.assert_close(dense(space.affinity), slow_affinity(rows, 4))
    a, b = normal(2, 3), normal(2, 3, seed=1)
    torch.testing.assert_close(space.mean([a, b]), 0.75 * a + 0.25 * b)


def test_a_view_without_weight_is_as_if_not_there():
    views = [normal(30, 5), normal(30, 3, seed=1)]
    ignored, expected = Space(views, 10).weighted([0.0, 1.0]), Space(views[1:], 10)
    labels = torch.arange(30) % 3
    assert score(ignored, labels, 3) == pytest.approx(score(expected, labels, 3))


class TestScales:
    def test_weights_of_a_view_are_those_of_all_its_scales(self):
        views = [normal(30, 4, seed=i) for i in range(4)]
        space = Space(views, 5, scales=2).weighted([4.0, 2.0, 3.0, 1.0])
        assert space.n_views == 2
        assert space.view_weights == pytest.approx([0.7, 0.3])

    def test_each_view_and_scale_alone(self):
        views = [normal(30, 4 + i, seed=i) for i in range(4)]
        space = Space(views, 5, scales=2)
        assert [x.shape[1] for x in space.only(1).views] == [5, 7]
        assert [x.shape[1] for x in space.only(1, 1).views] == [7]
        assert [place.views[0].shape[1] for place in space.alone()] == [4, 5, 6, 7]
        assert space.only(1) is space.only(1)

    def test_a_view_on_one_scale_is_the_view(self):
        views = [normal(30, 4, seed=i) for i in range(4)]
        one = Space(views, 5, scales=2).weighted([1.0, 3.0, 1.0, 3.0]).on_first_scale()
        other = Space(views[:2], 5).weighted([1.0, 3.0])
        labels = torch.arange(30) % 3
        assert one.weights == pytest.approx(other.weights)
        assert score(one, labels, 3) == pytest.approx(score(other, labels, 3))
