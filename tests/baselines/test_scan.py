"""SCAN's clustering step: its loss against loops, and what it finds."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import sagl.baselines.scan as module
from sagl.baselines.scan import SCAN, head_losses
from sagl.evaluation import clustering_accuracy
from sagl.nn.inference import exact_matmul
from tests.conftest import clustered_views

checked = settings(max_examples=25, deadline=None, derandomize=True, database=None)
F64 = torch.float64
SMALL = {"heads": 4, "epochs": 60, "learning_rate": 1e-3}
FAST = SMALL | {"epochs": 4, "batch_size": 60}


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=F64)


def slow_losses(logits, entropy_weight):
    rows, H, C = logits.shape
    B = rows // 2
    losses = []
    for h in range(H):
        p = [torch.softmax(logits[i, h], dim=0) for i in range(rows)]
        loss = -sum((p[i] @ p[i + B]).log() for i in range(B)) / B
        for c in range(C):
            mean = sum(p[i][c] for i in range(B)) / B  # of samples, not of neighbours
            loss = loss + entropy_weight * mean * mean.log()
        losses.append(loss)
    return torch.stack(losses)


@checked
@given(
    B=st.integers(1, 4),
    H=st.integers(1, 3),
    C=st.integers(2, 5),
    weight=st.floats(0, 10),
    seed=st.integers(0, 999),
)
def test_loss_and_gradient_are_those_of_the_loops(B, H, C, weight, seed):
    fast_logits = (normal(2 * B, H, C, seed=seed) * 2).requires_grad_()
    slow_logits = fast_logits.detach().clone().requires_grad_()
    fast = head_losses(fast_logits, weight)
    slow = slow_losses(slow_logits, weight)
    torch.testing.assert_close(fast, slow)
    fast.sum().backward()
    slow.sum().backward()
    torch.testing.assert_close(fast_logits.grad, slow_logits.grad)


def test_extreme_logits_and_empty_clusters_stay_finite():
    logits = (normal(6, 2, 4) * 1e4).requires_grad_()
    loss = head_losses(logits, 5.0)
    loss.sum().backward()
    assert loss.isfinite().all()
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("seed", range(3))
def test_clusters_are_found(seed):
    views, labels = clustered_views(seed=seed)
    model = SCAN(4, random_state=seed, **SMALL).fit(views)
    assert clustering_accuracy(labels, model.labels_) > 0.95


def test_an_untrained_model_does_not_know_the_clusters(views, labels):
    """So the test above shows learning and not an easy problem."""
    model = SCAN(4, heads=1, epochs=1, learning_rate=0.0, random_state=0).fit(views)
    assert clustering_accuracy(labels, model.labels_) < 0.9


def test_without_the_entropy_clusters_merge(views):
    """The term that keeps them apart is at work, and its weight is heeded."""
    used = [
        len(set(SCAN(4, random_state=0, entropy_weight=w, **SMALL).fit(views).labels_))
        for w in (0.0, 5.0)
    ]
    assert used[0] < used[1] == 4


def test_scores_are_those_of_the_head_to_the_last_bit(views):
    model = SCAN(4, random_state=0, **FAST).fit(views)
    state = {name: tensor.double() for name, tensor in model.state_.items()}
    x = torch.cat(
        [
            (torch.from_numpy(h).double() - state[f"shift.{i}"]) * state[f"scale.{i}"]
            for i, (_, h) in enumerate(views.items())
        ],
        dim=1,
    )
    expected = exact_matmul(x, state["weight"].T) + state["bias"]
    np.testing.assert_array_equal(model.decision_function(views), expected)


def test_a_model_keeps_one_head_alone(views):
    model = SCAN(4, random_state=0, **FAST).fit(views)
    for tensor in model.state_.values():
        assert tensor.untyped_storage().nbytes() == tensor.nbytes


def test_the_head_of_smallest_recent_loss_labels(views, monkeypatch):
    """The third head seems best in the last epoch, the first one before it.

    Only the third is trained, so that it is the one that differs from a start.
    """
    calls = itertools.count()

    def made_up(logits, entropy_weight):
        last = next(calls) % 16 >= 12  # the last of four epochs of four batches
        offsets = [1.0, 2.0, 0.0, 3.0] if last else [-9.0, 2.0, 3.0, 3.0]
        trained = torch.tensor([0.0, 0.0, 1e-3, 0.0])
        return trained * logits.square().mean(dim=(0, 2)) + torch.tensor(offsets)

    monkeypatch.setattr(module, "head_losses", made_up)
    kept = {"weight_decay": 0.0, **FAST}
    moved, still = (
        SCAN(4, random_state=0, **(kept | {"learning_rate": rate})).fit(views).state_
        for rate in (1e-3, 0.0)
    )
    assert next(calls) == 32
    assert not torch.equal(moved["weight"], still["weight"])
