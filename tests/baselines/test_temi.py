"""TEMI: its loss against loops over heads, pairs and clusters, and what it finds."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import sagl.baselines.temi as module
from sagl import Views
from sagl.baselines.temi import (
    TEMI,
    NormalisedLinear,
    _LinearHeads,
    _MLPHeads,
    agreement,
    distil,
    follow,
)
from sagl.evaluation import clustering_accuracy
from sagl.nn.inference import exact_matmul
from tests.conftest import clustered_views

checked = settings(max_examples=25, deadline=None, derandomize=True, database=None)
F64 = torch.float64
SMALL = {"heads": 4, "epochs": 150, "momentum": 0.98}
FAST = SMALL | {"epochs": 5}


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=F64)


def slow_loss(s, t, share, beta):
    """Loss of each head, and the updated shares, by the formulas of the paper."""
    rows, H, C = s.shape
    B = rows // 2
    q_s, q_t = torch.softmax(s, dim=2), torch.softmax(t, dim=2)
    new_share = torch.zeros(H, C, dtype=F64)
    for h, c in itertools.product(range(H), range(C)):
        mean = sum(q_t[i, h, c] for i in range(rows)) / rows
        new_share[h, c] = 0.9 * share[h, c] + 0.1 * mean
    losses = []
    for h in range(H):
        loss = 0
        for i in range(B):
            weight = sum(q_t[i, k] @ q_t[i + B, k] for k in range(H)) / H
            for x, other in ((i, i + B), (i + B, i)):
                mutual = sum(
                    (q_s[x, h, c] * q_t[other, h, c]) ** beta / new_share[h, c]
                    for c in range(C)
                )
                loss = loss - weight * mutual.log() / 2
        losses.append(loss / B)
    return torch.stack(losses), new_share


@checked
@given(
    B=st.integers(1, 4),
    H=st.integers(1, 3),
    C=st.integers(2, 5),
    beta=st.floats(0.2, 1.0),
    seed=st.integers(0, 999),
)
def test_loss_gradient_and_share_are_those_of_the_loops(B, H, C, beta, seed):
    s, t = normal(2 * B, H, C, seed=seed) * 2, normal(2 * B, H, C, seed=seed + 1) * 2
    share = torch.softmax(normal(H, C, seed=seed + 2), dim=1)
    s.requires_grad_()
    slow, slow_share = slow_loss(s, t, share, beta)
    slow.sum().backward()
    fast = distil(s.detach(), t, share, beta)
    torch.testing.assert_close(fast.heads, slow.detach())
    torch.testing.assert_close(fast.gradient, s.grad)
    torch.testing.assert_close(share, slow_share)


def test_the_loss_leaves_the_logits_alone():
    s, t, share = normal(4, 2, 3), normal(4, 2, 3, seed=1), torch.full((2, 3), 1 / 3)
    before = s.clone(), t.clone()
    distil(s, t, share.double(), 0.6)
    assert torch.equal(s, before[0])
    assert torch.equal(t, before[1])


def test_extreme_logits_and_empty_clusters_stay_finite():
    s, t = normal(6, 2, 4) * 1e4, normal(6, 2, 4, seed=1) * 1e4
    t[:, :, 0] = -1e6  # nobody is in the first cluster
    share = torch.zeros(2, 4, dtype=F64)
    loss = distil(s, t, share, 0.6)
    assert loss.heads.isfinite().all()
    assert loss.gradient.isfinite().all()


def test_agreement_is_one_for_equal_certain_teachers_and_chance_for_unsure_ones():
    certain = torch.eye(3, dtype=F64)[torch.tensor([0, 1, 0, 1])][:, None]
    assert agreement(certain.expand(4, 2, 3)).tolist() == [1, 1]
    unsure = torch.full((4, 2, 3), 1 / 3, dtype=F64)
    torch.testing.assert_close(agreement(unsure), torch.full((2,), 1 / 3, dtype=F64))


def test_normalised_linear_has_the_gradient_that_autograd_finds():
    x = normal(5, 4)
    v, g = normal(6, 4, seed=1).requires_grad_(), normal(6, seed=2).requires_grad_()
    out = NormalisedLinear.apply(x, v, g)
    torch.testing.assert_close(out, x @ (v * (g / v.norm(dim=1))[:, None]).T)
    assert torch.autograd.gradcheck(
        lambda v, g: NormalisedLinear.apply(x, v, g), (v, g)
    )


@pytest.mark.parametrize("form", [_LinearHeads, _MLPHeads])
def test_heads_computed_together_are_those_computed_alone(form):
    heads = form(7, 3, 4, torch.Generator().manual_seed(0)).double()
    with torch.no_grad():
        for parameter in heads.parameters():  # no zero bias, no scale of one
            parameter.add_(normal(*parameter.shape, seed=5) * 0.1)
    x = normal(5, 7, seed=1)
    together = heads(x, 0.1)
    assert together.shape == (5, 4, 3)
    for i in range(4):
        state, alone = heads.one(i), x
        if form is _MLPHeads:
            alone = alone @ state["hidden.weight"].T + state["hidden.bias"]
            alone = nn.functional.gelu(alone) @ state["bottleneck.weight"]
            alone = alone + state["bottleneck.bias"]
            alone = alone / alone.norm(dim=1, keepdim=True)
        alone = alone @ state["weight"].T / 0.1
        torch.testing.assert_close(together[:, i], alone.detach())


def test_the_teacher_follows_at_its_pace():
    teacher, student = nn.Linear(2, 3), nn.Linear(2, 3)
    before = [t.detach().clone() for t in teacher.parameters()]
    follow(teacher, student, 0.75)
    for t, b, s in zip(teacher.parameters(), before, student.parameters(), strict=True):
        torch.testing.assert_close(t, 0.75 * b + 0.25 * s)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_clusters_are_found(head, seed):
    views, labels = clustered_views(seed=seed)
    settings = SMALL
    if head == "mlp":
        settings = SMALL | {"heads": 1, "epochs": 100, "learning_rate": 1e-4}
    model = TEMI(4, head=head, random_state=seed, **settings).fit(views)
    assert clustering_accuracy(labels, model.labels_) > 0.95


def test_an_untrained_model_does_not_know_the_clusters(views, labels):
    """So the test above shows learning and not an easy problem."""
    model = TEMI(4, heads=1, epochs=1, learning_rate=0.0, random_state=0).fit(views)
    assert clustering_accuracy(labels, model.labels_) < 0.9


def scores(views, seed=0, **settings):
    settings = FAST | settings
    return TEMI(4, random_state=seed, **settings).fit(views).decision_function(views)


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_scores_are_those_of_the_head_to_the_last_bit(views, head):
    model = TEMI(4, head=head, random_state=0, **FAST).fit(views)
    for name in {"hidden.bias", "bottleneck.bias"} & set(model.state_):
        model.state_[name] += normal(len(model.state_[name]), seed=1).float()
    state = {name: tensor.double() for name, tensor in model.state_.items()}
    parts = []
    for i, (_, h) in enumerate(views.items()):
        h = (torch.from_numpy(h).double() - state[f"shift.{i}"]) * state[f"scale.{i}"]
        parts.append(h / h.norm(dim=1, keepdim=True))
    x = torch.cat(parts, dim=1)
    if head == "mlp":
        x = exact_matmul(x, state["hidden.weight"].T) + state["hidden.bias"]
        x = exact_matmul(nn.functional.gelu(x), state["bottleneck.weight"])
        x = x + state["bottleneck.bias"]
        x = x / x.norm(dim=1, keepdim=True)
    expected = exact_matmul(x, state["weight"].T)
    np.testing.assert_array_equal(model.decision_function(views), expected)


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_a_model_keeps_one_head_alone(views, head):
    model = TEMI(4, head=head, random_state=0, **FAST).fit(views)
    for tensor in model.state_.values():
        assert tensor.untyped_storage().nbytes() == tensor.nbytes


@pytest.mark.parametrize("normalize", ["center", "none"])
def test_the_normalisation_is_remembered(views, normalize):
    """Scaling a view changes nothing; moving it does nothing when it is centred."""
    first = scores(views, normalize=normalize)
    scaled = Views({name: h * 8 for name, h in views.items()})  # exact in floats
    np.testing.assert_allclose(scores(scaled, normalize=normalize), first, atol=1e-4)
    moved = Views({name: h + 3 for name, h in views.items()})
    equal = np.allclose(scores(moved, normalize=normalize), first, atol=1e-2)
    assert equal == (normalize == "center")


def test_the_head_of_smallest_recent_loss_labels(views, monkeypatch):
    """Losses are made up: head 2 is best in the last epoch, head 0 before it."""
    calls = itertools.count()
    real = module.distil

    def biased(*args):
        loss = real(*args)
        last = next(calls) >= 4 * 4  # the last of five epochs of four batches
        made_up = torch.tensor([1.0, 2.0, 0.0, 3.0] if last else [-9.0, 2.0, 3.0, 3.0])
        return loss._replace(heads=made_up)

    chosen = []
    one = _LinearHeads.one
    monkeypatch.setattr(module, "distil", biased)
    monkeypatch.setattr(
        _LinearHeads, "one", lambda self, i: chosen.append(i) or one(self, i)
    )
    TEMI(4, random_state=0, **FAST).fit(views)
    assert next(calls) == 20
    assert chosen == [2]


def test_the_teacher_labels_and_not_the_student(views):
    """A teacher that hardly moves stays where the same seed starts it."""
    still = {"momentum": 1 - 1e-12, "heads": 1}
    long, short = (scores(views, **still, epochs=epochs) for epochs in (20, 1))
    np.testing.assert_allclose(long, short, atol=1e-6)
    assert not np.allclose(scores(views, heads=1, epochs=20), short, atol=1e-2)


@pytest.mark.parametrize(
    ("n", "settings", "expected"),
    [
        (3680, {}, 147),
        (1428, {}, 64),
        (50_000, {}, 512),
        (40, {}, 40),
        (3680, {"epochs": 1}, 64),
        (3680, {"batch_size": 512}, 512),
        (100, {"batch_size": 512}, 100),
    ],
)
def test_small_sets_get_small_batches(n, settings, expected):
    assert TEMI(4, **settings)._batch_size(n) == expected
