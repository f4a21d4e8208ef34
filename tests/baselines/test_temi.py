"""TEMI's and SCAN's losses against loops and autograd."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl.baselines import SCAN, TEMI
from sagl.baselines.scan import neighbour_loss
from sagl.baselines.temi import agreement, information_loss
from sagl.evaluation import clustering_accuracy
from tests.conftest import clustered_views
from tests.nn.slow import normal

checked = settings(max_examples=25, deadline=None, derandomize=True, database=None)


def slow_information(q_s, q_t, shares, weights, beta):
    """−(1/n) Σ_i w_i log Σ_c (q_s q_t)^β / share_c, of one head."""
    loss = 0
    n, C = q_s.shape
    for i in range(n):
        inside = sum((q_s[i, c] * q_t[i, c]) ** beta / shares[c] for c in range(C))
        loss = loss - weights[i] * inside.log() / n
    return loss


@given(
    seed=st.integers(0, 2**31),
    H=st.integers(1, 3),
    n=st.integers(1, 4),
    C=st.integers(2, 5),
    beta=st.sampled_from([0.6, 1.0]),
)
@checked
def test_information_loss_and_its_gradient(seed, H, n, C, beta):
    logits = normal(H, 2 * n, C, seed=seed).requires_grad_()
    log_t = normal(H, 2 * n, C, seed=seed + 1).log_softmax(dim=2)
    shares = normal(H, 1, C, seed=seed + 2).softmax(dim=2)
    weights = normal(2 * n, seed=seed + 3).sigmoid()
    with torch.no_grad():
        losses, slope = information_loss(
            logits.log_softmax(dim=2), log_t, shares, weights, beta
        )
    expected = torch.stack(
        [
            slow_information(
                logits[h].softmax(dim=1), log_t[h].exp(), shares[h, 0], weights, beta
            )
            for h in range(H)
        ]
    )
    torch.testing.assert_close(losses, expected.detach())
    (gradient,) = torch.autograd.grad(expected.sum(), logits)
    torch.testing.assert_close(slope, gradient)


def test_agreement_is_the_mean_over_heads_of_a_dot_product():
    q = normal(2, 6, 3, seed=0).softmax(dim=2)
    weights = agreement(q)
    for i in range(3):
        expected = sum(float(q[h, i] @ q[h, i + 3]) for h in range(2)) / 2
        assert float(weights[i]) == pytest.approx(expected)
        assert float(weights[i + 3]) == pytest.approx(expected)


def test_neighbour_loss():
    log_p = normal(2, 2, 4, 3, seed=0).log_softmax(dim=3)
    p = log_p.exp()
    losses = neighbour_loss(log_p, 5.0)
    for h in range(2):
        agree = sum(math.log(float(p[0, h, i] @ p[1, h, i])) for i in range(4)) / 4
        mean = p[0, h].mean(dim=0)
        entropy = -sum(float(m) * math.log(float(m)) for m in mean)
        assert float(losses[h]) == pytest.approx(-agree - 5 * entropy)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    "model",
    [TEMI(5, epochs=60, heads=8, learning_rate=1e-2, momentum=0.9), SCAN(5, epochs=60)],
    ids=["TEMI", "SCAN"],
)
def test_finds_clusters_in_noise(model, seed):
    views, labels = clustered_views(400, 5, seed=3, spread=1.0)
    found = model.set_params(random_state=seed).fit_predict(views)
    assert clustering_accuracy(labels, found) > 0.85


def test_the_head_of_the_smallest_loss_is_kept():
    """With one head there is no choice; with many the result is one of theirs."""
    views, _ = clustered_views()
    model = TEMI(4, heads=3, epochs=2, random_state=0).fit(views)
    assert model.state_["W"].shape == (4, 18)
