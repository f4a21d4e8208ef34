"""Coding rates, memberships and coding lengths against slow versions."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl.baselines.rate_reduction import (
    coding_length,
    coding_rate,
    doubly_stochastic,
    group_rate,
    spectral_embedding,
    spectral_labels,
)
from sagl.evaluation import clustering_accuracy

problems = st.tuples(
    st.integers(1, 8),  # samples
    st.integers(1, 5),  # dimensions
    st.integers(1, 4),  # groups
    st.floats(0.05, 2.0),  # ε²
    st.integers(0, 2**31),
)


def random_problem(problem):
    """Features of length one and memberships whose rows sum to one, float64."""
    n, d, m, epsilon_squared, seed = problem
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(n, d, generator=generator).double()
    membership = torch.randn(n, m, generator=generator).double().softmax(dim=1)
    return z / z.norm(dim=1, keepdim=True), membership, epsilon_squared


def slow_log_det(weights, z):
    """log det(I + Σ_i w_i z_i z_iᵀ) with loops and a general determinant."""
    d = z.shape[1]
    matrix = np.eye(d)
    for weight, row in zip(weights, z.numpy(), strict=True):
        for a in range(d):
            for b in range(d):
                matrix[a, b] += weight * row[a] * row[b]
    return math.log(np.linalg.det(matrix))


def unit_vectors(n, d, seed):
    generator = torch.Generator().manual_seed(seed)
    c = torch.randn(n, d, generator=generator).double()
    return c / c.norm(dim=1, keepdim=True)


def block_memberships(sizes, seed=0):
    """Memberships of noisy orthogonal clusters, and the clusters."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    c = torch.eye(len(sizes))[labels]
    c = c + 0.05 * torch.randn(c.shape, generator=generator)
    c = c / c.norm(dim=1, keepdim=True)
    return doubly_stochastic((c @ c.T).abs(), 0.15), labels.numpy()


@given(problems)
@settings(max_examples=50, deadline=None)
def test_coding_rate(problem):
    z, _, epsilon_squared = random_problem(problem)
    n, d = z.shape
    expected = 0.5 * slow_log_det([d / (n * epsilon_squared)] * n, z)
    assert coding_rate(z, epsilon_squared).item() == pytest.approx(expected)


@given(problems)
@settings(max_examples=50, deadline=None)
def test_group_rate(problem):
    z, membership, epsilon_squared = random_problem(problem)
    n, d = z.shape
    expected = 0.0
    for column in membership.T.tolist():
        size = math.fsum(column)
        weights = [share * d / (size * epsilon_squared) for share in column]
        expected += size / (2 * n) * slow_log_det(weights, z)
    found = group_rate(z, membership, epsilon_squared).item()
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)


@given(problems)
@settings(max_examples=50, deadline=None)
def test_no_grouping_has_a_higher_rate_than_all_together(problem):
    """log det is concave: R − R_c, which training maximises, is never below zero."""
    z, membership, epsilon_squared = random_problem(problem)
    together = coding_rate(z, epsilon_squared).item()
    assert group_rate(z, membership, epsilon_squared).item() <= together + 1e-9
    one_group = torch.ones(len(z), 1).double()
    assert group_rate(z, one_group, epsilon_squared).item() == pytest.approx(together)


def test_some_groups_stand_for_all():
    """The rate is a sum over groups, so that its mean over draws is its value."""
    z, membership, _ = random_problem((20, 4, 6, 0.1, 0))
    parts = [group_rate(z, membership[:, j : j + 1], 0.1).item() for j in range(6)]
    assert group_rate(z, membership, 0.1).item() == pytest.approx(sum(parts))


def test_gradients():
    z, membership, _ = random_problem((6, 3, 4, 0.1, 1))
    z.requires_grad_()
    membership.requires_grad_()
    torch.autograd.gradcheck(lambda z: coding_rate(z, 0.1), (z,))
    torch.autograd.gradcheck(lambda z, p: group_rate(z, p, 0.1), (z, membership))

    def memberships(c):
        c = c / c.norm(dim=1, keepdim=True)
        return doubly_stochastic((c @ c.T).abs(), 0.2)

    torch.autograd.gradcheck(memberships, (z,))


@given(st.integers(1, 12), st.floats(0.02, 1.0), st.integers(0, 2**31))
@settings(max_examples=50, deadline=None)
def test_memberships_against_loops(n, temperature, seed):
    """Logarithms and loops: what scales rows, and columns, in turn."""
    c = unit_vectors(n, 3, seed)
    similarity = (c @ c.T).abs()
    log_kernel = (similarity / temperature).tolist()
    u, v = [0.0] * n, [0.0] * n
    for half_step in range(5):
        for i in range(n):
            if half_step % 2 == 0:
                terms = [math.exp(log_kernel[i][j] + v[j]) for j in range(n)]
                u[i] = -math.log(math.fsum(terms))
            else:
                terms = [math.exp(log_kernel[j][i] + u[j]) for j in range(n)]
                v[i] = -math.log(math.fsum(terms))
    found = doubly_stochastic(similarity, temperature)
    for i in range(n):
        for j in range(n):
            expected = math.exp(log_kernel[i][j] + u[i] + v[j])
            assert found[i, j].item() == pytest.approx(expected, rel=1e-6, abs=1e-12)


@given(st.integers(1, 30), st.floats(0.05, 1.0), st.integers(0, 2**31))
@settings(max_examples=30, deadline=None)
def test_lines_of_memberships_sum_to_one(n, temperature, seed):
    c = unit_vectors(n, 4, seed)
    similarity = (c @ c.T).abs()
    one = torch.ones(n).double()
    early = doubly_stochastic(similarity, temperature)
    torch.testing.assert_close(early.sum(dim=1), one)
    late = doubly_stochastic(similarity, temperature, half_steps=2001)
    assert late.min() >= 0
    torch.testing.assert_close(late.sum(dim=1), one)
    torch.testing.assert_close(late.sum(dim=0), one, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(late, late.T, rtol=1e-2, atol=1e-3)


def test_temperature_decides_how_many_share_a_group():
    c = unit_vectors(40, 4, 0).float()
    similarity = (c @ c.T).abs()
    cold, hot = (doubly_stochastic(similarity, t) for t in (1e-3, 1e3))
    assert cold.isfinite().all()  # though most of the kernel underflows
    assert cold.diagonal().min() > 0.5
    torch.testing.assert_close(hot, torch.full((40, 40), 1 / 40), rtol=0.01, atol=0)


def test_embedding_holds_the_leading_eigenvectors():
    membership, _ = block_memberships([20, 15, 10])
    affinity = (membership + membership.T).double().numpy()
    degrees = affinity.sum(axis=1)
    normalised = affinity / np.sqrt(degrees[:, None] * degrees)
    values, _ = np.linalg.eigh(normalised)
    vectors = spectral_embedding(membership, 5)
    assert vectors.shape == (45, 5)
    for column, value in zip(vectors.T, values[::-1], strict=False):
        np.testing.assert_allclose(normalised @ column, value * column, atol=1e-6)


def test_spectral_labels_find_blocks():
    membership, labels = block_memberships([30, 12, 20, 8])
    embedding = spectral_embedding(membership, 6)
    found = spectral_labels(embedding, 4)
    assert clustering_accuracy(labels, found) == 1.0
    assert len(np.unique(spectral_labels(embedding, 6))) == 6


def test_coding_length_against_loops():
    z, _, _ = random_problem((9, 3, 1, 0.1, 2))
    labels = torch.tensor([0, 5, 5, 0, 2, 5, 2, 0, 5])
    expected = 0.0
    for k in (0, 2, 5):
        members = z[labels == k]
        n_k = len(members)
        log_det = slow_log_det([3 / (n_k * 0.1)] * n_k, members)
        expected += (n_k + 3) / 2 * log_det - n_k * math.log(n_k / 9)
    assert coding_length(z, labels, 0.1) == pytest.approx(expected)


def test_the_true_clusters_have_the_shortest_code():
    """Three orthogonal planes: joining two or cutting one makes the code longer."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(240) % 3
    z = torch.zeros(240, 6).double()
    for i, k in enumerate(labels.tolist()):
        z[i, 2 * k : 2 * k + 2] = torch.randn(2, generator=generator).double()
    z /= z.norm(dim=1, keepdim=True)
    joined = labels.clamp(min=1)
    cut = torch.where((labels == 2) & (torch.arange(240) < 120), 3, labels)
    shortest = coding_length(z, labels, 0.1)
    assert coding_length(z, joined, 0.1) > shortest
    assert coding_length(z, cut, 0.1) > shortest
