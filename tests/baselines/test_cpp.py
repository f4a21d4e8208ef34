"""CPP: its network and read-out against slow versions, and what it finds."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from sagl import Views
from sagl.baselines.cpp import (
    CPP,
    _new_weights,
    coding_length,
    coding_rate,
    doubly_stochastic,
    embed,
    embed_batch,
    folded,
    group_rate,
    spectral_embedding,
)
from sagl.evaluation import clustering_accuracy, clustering_scores
from tests.conftest import clustered_views

SMALL = {"steps": 60, "warmup": 15, "hidden": 64, "dimension": 16, "groups": 64}


@pytest.fixture(scope="module")
def fitted(views):
    return CPP(4, **SMALL, random_state=0).fit(views)


def weights_and_batch(seed=0, n=20):
    generator = torch.Generator().manual_seed(seed)
    weights = _new_weights(7, 9, 5, generator)
    weights["gain"] = torch.rand(9, generator=generator) + 0.5
    weights["shift"] = torch.randn(9, generator=generator)
    weights = {name: w.double() for name, w in weights.items()}
    return weights, torch.randn(n, 7, generator=generator).double() + 3


def unit_vectors(n, generator):
    return nn.functional.normalize(torch.randn(n, 4, generator=generator), dim=1)


def test_network_is_that_of_the_paper():
    weights, x = weights_and_batch()
    body = nn.Sequential(
        nn.Linear(7, 9, bias=False),  # the normalisation takes a bias away again
        nn.BatchNorm1d(9),
        nn.ReLU(),
        nn.Linear(9, 9),
        nn.ReLU(),
    ).double()
    heads = {name: nn.Linear(9, 5).double() for name in "zc"}
    with torch.no_grad():
        body[0].weight.copy_(weights["W1"])
        body[1].weight.copy_(weights["gain"])
        body[1].bias.copy_(weights["shift"])
        body[3].weight.copy_(weights["W2"])
        body[3].bias.copy_(weights["b2"])
        for name, head in heads.items():
            head.weight.copy_(weights[f"W{name}"])
            head.bias.copy_(weights[f"b{name}"])
        h = body(x)
        expected = [nn.functional.normalize(head(h), dim=1) for head in heads.values()]
    for embedded, wanted in zip(embed_batch(weights, x), expected, strict=True):
        torch.testing.assert_close(embedded, wanted)


def test_folded_layers_do_the_same_without_company():
    weights, x = weights_and_batch()
    layers = folded(weights, x)
    assert "gain" not in layers
    for together, embedded in zip(
        embed_batch(weights, x), embed(x, layers), strict=True
    ):
        torch.testing.assert_close(embedded, together)
    alone = torch.cat([embed(row[None], layers)[1] for row in x])
    torch.testing.assert_close(alone, embed(x, layers)[1])


def test_compression_of_all_groups_is_exact():
    generator = torch.Generator().manual_seed(0)
    z, c = unit_vectors(12, generator), unit_vectors(12, generator)
    model = CPP(3, groups=50, temperature=0.3, penalty=0.7, epsilon_squared=0.2)
    Pi = doubly_stochastic((c @ c.T).abs(), 0.3)
    expected = group_rate(z, Pi, 0.2) + 0.35 * sum(p**2 for p in Pi.flatten().tolist())
    compression = model._compression(z, c, generator)
    assert compression.item() == pytest.approx(expected.item(), rel=1e-5)


def test_compression_of_some_groups_is_right_on_average():
    generator = torch.Generator().manual_seed(0)
    z, c = unit_vectors(12, generator), unit_vectors(12, generator)
    exact = CPP(3, groups=12, temperature=0.3)._compression(z, c, generator).item()
    few = CPP(3, groups=3, temperature=0.3)
    draws = [few._compression(z, c, generator).item() for _ in range(400)]
    assert np.std(draws) > 0
    assert np.mean(draws) == pytest.approx(exact, abs=4 * np.std(draws) / 20)


def test_automatic_temperature_follows_the_number_of_clusters():
    c = unit_vectors(10, torch.Generator().manual_seed(0))
    given = CPP(20, temperature=1 / math.log(70 * 20))._memberships(c)
    assert CPP(20)._memberships(c).equal(given)
    assert not CPP(5)._memberships(c).equal(given)


def test_cluster_head_starts_as_a_copy_of_the_feature_head(views):
    still = {**SMALL, "learning_rate": 1e-12, "random_state": 0}
    before = CPP(4, **{**still, "steps": 2, "warmup": 2}).fit(views).state_
    after = CPP(4, **{**still, "steps": 3, "warmup": 2}).fit(views).state_
    assert not torch.allclose(before["Wc"], before["Wz"])
    torch.testing.assert_close(after["Wc"], after["Wz"])
    torch.testing.assert_close(after["bc"], after["bz"])


@pytest.mark.parametrize("seed", range(3))
def test_finds_clusters(seed):
    views, labels = clustered_views(n_samples=400, n_clusters=5, seed=seed)
    train, test = views[:240], views[240:]
    model = CPP(5, **SMALL, random_state=seed).fit(train)
    assert clustering_accuracy(labels[:240], model.labels_) > 0.9
    assert clustering_accuracy(labels[240:], model.predict(test)) > 0.9


def test_training_reduces_the_rate_of_groups(views):
    """Groups become flat while all together stay spread out."""
    rates = []
    for steps in (15, 60):  # the warm-up alone, and all
        model = CPP(4, **{**SMALL, "steps": steps}, random_state=0).fit(views)
        x = torch.cat(
            [nn.functional.normalize(torch.from_numpy(h)) for _, h in views.items()],
            dim=1,
        )
        z, c = embed(x, model.state_)
        rates.append(group_rate(z, model._memberships(c), 0.1).item())
    assert rates[1] < 0.8 * rates[0]


def test_a_loaded_model_estimates_the_same(views, fitted, tmp_path):
    fitted.save(tmp_path / "model")
    again = CPP.load(tmp_path / "model")
    expected = fitted.estimate_n_clusters(views, [2, 4])
    assert again.estimate_n_clusters(views, [2, 4]) == expected


def test_few_samples_are_enough_for_a_read_out(views, labels):
    model = CPP(4, **SMALL, readout_samples=60, random_state=0).fit(views)
    assert clustering_accuracy(labels, model.labels_) > 0.9


def test_as_many_clusters_as_samples(views):
    model = CPP(3, **SMALL, random_state=0).fit(views[:3])
    assert model.labels_.shape == (3,)


def test_batches_of_one_sample_do_no_harm(views):
    model = CPP(2, **SMALL, batch_size=2, random_state=0).fit(views[:5])
    assert all(tensor.isfinite().all() for tensor in model.state_.values())


def test_estimates_the_number_of_clusters():
    views, _ = clustered_views(n_samples=300, n_clusters=6, seed=1, spread=0.3)
    model = CPP(2, **SMALL, temperature=0.15, random_state=0).fit(views)
    best, curve = model.estimate_n_clusters(views, range(2, 12))
    assert list(curve) == list(range(2, 12))
    assert best == min(curve, key=curve.get)
    assert best == 6


@pytest.mark.parametrize("candidates", [[1, 2], [3, 241], [2.5], ["2"]])
def test_refuses_bad_candidates(views, fitted, candidates):
    with pytest.raises(ValueError, match="candidates must be whole numbers from 2 to"):
        fitted.estimate_n_clusters(views, candidates)


def test_refuses_to_estimate_from_nothing_or_other_views(views, fitted):
    with pytest.raises(ValueError, match=r"at least one; got \[\]"):
        fitted.estimate_n_clusters(views, [])
    with pytest.raises(ValueError, match="fitted on the views"):
        fitted.estimate_n_clusters(views["wide"], [2, 3])


@pytest.mark.slow
def test_real_features():
    """Six hand-made views of digits: CPP should come out near k-means or above it."""
    root = Path(os.environ.get("SAGL_DATA", "")) / "handwritten"
    if "SAGL_DATA" not in os.environ or not root.is_dir():
        pytest.skip("set SAGL_DATA to the directory of the features")
    names = ("fac", "fou", "kar", "mor", "pix", "zer")
    train, test = (
        Views({name: np.load(root / part / f"{name}.npy") for name in names})
        for part in ("train", "test")
    )
    labels = np.load(root / "test" / "labels.npy")
    model = CPP(10, random_state=0).fit(train)
    assert clustering_scores(labels, model.predict(test))["nmi"] > 0.75


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


def directions(n, d, seed):
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
    rate = group_rate(z, membership, epsilon_squared).item()
    assert rate == pytest.approx(expected, rel=1e-6, abs=1e-9)


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
    c = directions(n, 3, seed)
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
    memberships = doubly_stochastic(similarity, temperature)
    for i in range(n):
        for j in range(n):
            expected = math.exp(log_kernel[i][j] + u[i] + v[j])
            assert memberships[i, j].item() == pytest.approx(
                expected, rel=1e-6, abs=1e-12
            )


@given(st.integers(1, 30), st.floats(0.05, 1.0), st.integers(0, 2**31))
@settings(max_examples=30, deadline=None)
def test_lines_of_memberships_sum_to_one(n, temperature, seed):
    c = directions(n, 4, seed)
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
    c = directions(40, 4, 0).float()
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
