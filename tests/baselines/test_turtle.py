"""TURTLE: its parts against slow versions, and what it finds."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.utils.parametrizations import weight_norm

from sagl import Views
from sagl.baselines.turtle import TURTLE, Heads, label_loss, soft_labels
from sagl.evaluation import clustering_accuracy
from sagl.nn.encoder import LinearEncoder
from tests.conftest import clustered_views

CPU = torch.device("cpu")
FEW = {"steps": 40, "learning_rate": 1e-2, "inner_learning_rate": 1e-2}

problems = st.tuples(
    st.lists(st.integers(1, 5), min_size=1, max_size=3),  # widths of the views
    st.integers(2, 4),  # clusters
    st.integers(1, 6),  # samples
    st.integers(0, 2**31),
)


def random_problem(problem):
    """Features of each view and labels (C, n) whose columns sum to one, float64."""
    widths, C, n, seed = problem
    generator = torch.Generator().manual_seed(seed)
    features = [torch.randn(n, width, generator=generator).double() for width in widths]
    labels = torch.randn(C, n, generator=generator).double().softmax(dim=0)
    return features, labels, generator


def new_heads(features, C, generator):
    """In float64: Adam's first steps would blow rounding errors of zeros up."""
    heads = Heads([h.shape[1] for h in features], C, 1e-2, CPU)
    heads.restart(generator)
    for name in ("vector", "gradient", "first", "second"):
        setattr(heads, name, getattr(heads, name).double())
    return heads


def torch_heads(heads):
    """The same classifiers as torch modules."""
    modules = []
    for W, b in heads.split(heads.vector):
        linear = torch.nn.Linear(W.shape[1], W.shape[0], dtype=torch.float64)
        with torch.no_grad():
            linear.weight.copy_(W)
            linear.bias.copy_(b)
        modules.append(linear)
    return modules


@given(problems)
@settings(max_examples=40, deadline=None)
def test_logits_against_loops(problem):
    features, labels, generator = random_problem(problem)
    C, n = labels.shape
    heads = new_heads(features, C, generator)
    logits = heads.logits(features)
    for view, ((W, b), h) in enumerate(
        zip(heads.split(heads.vector), features, strict=True)
    ):
        for c in range(C):
            for i in range(n):
                terms = [W[c, k].item() * h[i, k].item() for k in range(h.shape[1])]
                expected = b[c].item() + math.fsum(terms)
                assert logits[view, c, i].item() == pytest.approx(expected)


@given(problems, st.integers(1, 4))
@settings(max_examples=20, deadline=None)
def test_inner_training_is_adam_on_the_cross_entropy(problem, steps):
    features, labels, generator = random_problem(problem)
    heads = new_heads(features, len(labels), generator)
    modules = torch_heads(heads)
    parameters = [p for module in modules for p in module.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        for module, h in zip(modules, features, strict=True):
            torch.nn.functional.cross_entropy(module(h), labels.T).backward()
        optimizer.step()
    heads.train(features, labels, steps)
    tensors = [tensor for pair in heads.split(heads.vector) for tensor in pair]
    for ours, theirs in zip(tensors, parameters, strict=True):
        torch.testing.assert_close(ours, theirs.detach(), atol=1e-7, rtol=1e-7)


def test_training_again_continues_and_restarting_forgets():
    features, labels, generator = random_problem(([3, 2], 3, 8, 0))
    once = new_heads(features, 3, generator)
    parts = new_heads(features, 3, generator)
    parts.vector.copy_(once.vector)
    once.train(features, labels, 6)
    parts.train(features, labels, 4)
    parts.train(features, labels, 2)
    assert torch.equal(once.vector, parts.vector)

    once.restart(torch.Generator().manual_seed(5))
    fresh = new_heads(features, 3, torch.Generator().manual_seed(5))
    once.train(features, labels, 3)
    fresh.train(features, labels, 3)
    assert torch.equal(once.vector, fresh.vector)
    assert not torch.equal(once.vector, parts.vector)


def test_heads_start_as_torch_starts_linear_layers():
    heads = Heads([400, 25], 30, 1e-3, CPU)
    heads.restart(torch.Generator().manual_seed(0))
    for (W, b), width in zip(heads.split(heads.vector), (400, 25), strict=True):
        assert W.shape == (30, width)
        assert b.shape == (30,)
        bound = width**-0.5
        assert 0.97 * bound < W.abs().max().item() <= bound
        assert 0.7 * bound < b.abs().max().item() <= bound


@given(problems)
@settings(max_examples=40, deadline=None)
def test_soft_labels_are_those_of_weight_normalised_maps(problem):
    features, labels, generator = random_problem(problem)
    C = len(labels)
    encoders = [LinearEncoder(h.shape[1], C, generator).double() for h in features]
    for encoder in encoders:
        with torch.no_grad():
            encoder.g.mul_(2)  # so that the length is not the one it started with
    soft = soft_labels(encoders, features)
    for q, encoder, h in zip(soft, encoders, features, strict=True):
        linear = torch.nn.Linear(h.shape[1], C, dtype=torch.float64)
        with torch.no_grad():
            linear.weight.copy_(encoder.v)
            linear.bias.copy_(encoder.b)
        linear = weight_norm(linear)
        with torch.no_grad():
            linear.parametrizations.weight.original0.mul_(2)
        expected = torch.softmax(linear(h), dim=1).T
        torch.testing.assert_close(q, expected)


@given(problems, st.floats(0, 20))
@settings(max_examples=40, deadline=None)
def test_loss_against_loops(problem, gamma):
    features, labels, generator = random_problem(problem)
    L, (C, n) = len(features), labels.shape
    q = torch.randn(L, C, n, generator=generator).double().softmax(dim=1)
    log_p = torch.randn(L, C, n, generator=generator).double().log_softmax(dim=1)
    expected = 0.0
    for view in range(L):
        for i in range(n):
            for c in range(C):
                label = math.fsum(q[k, c, i].item() for k in range(L)) / L
                expected -= label * log_p[view, c, i].item() / n
        for c in range(C):
            mean = math.fsum(q[view, c, i].item() for i in range(n)) / n
            expected += gamma * mean * math.log(mean)
    loss = label_loss(q, log_p, gamma).item()
    assert loss == pytest.approx(expected)


def slow_fit(features, C, steps, warm_start, generator):
    """The method with torch's modules, optimisers and autograd, the same draws."""

    def linear(width):
        module = torch.nn.Linear(width, C)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.uniform_(-(width**-0.5), width**-0.5, generator=generator)
        return module

    def new_heads():
        modules = torch.nn.ModuleList(linear(h.shape[1]) for h in features)
        return modules, torch.optim.Adam(modules.parameters(), lr=1e-3)

    tasks = torch.nn.ModuleList(weight_norm(linear(h.shape[1])) for h in features)
    outer = torch.optim.Adam(tasks.parameters(), lr=1e-3)
    for step in range(steps):
        if step == 0 or not warm_start:
            heads, inner = new_heads()
        q = [task(h).softmax(dim=1) for task, h in zip(tasks, features, strict=True)]
        labels = sum(q) / len(q)
        for _ in range(10):
            inner.zero_grad()
            for head, h in zip(heads, features, strict=True):
                torch.nn.functional.cross_entropy(head(h), labels.detach()).backward()
            inner.step()
        outer.zero_grad()
        loss = -10 * sum(torch.special.entr(view.mean(dim=0)).sum() for view in q)
        for head, h in zip(heads, features, strict=True):
            loss = loss + torch.nn.functional.cross_entropy(head(h).detach(), labels)
        loss.backward()
        outer.step()
    return tasks


@pytest.mark.parametrize("warm_start", [False, True])
def test_whole_fit_against_the_direct_way(views, warm_start):
    model = TURTLE(
        4, steps=5, warm_start=warm_start, normalize="none", random_state=7
    ).fit(views)
    features = [torch.from_numpy(h) for _, h in views.items()]
    generator = torch.Generator().manual_seed(7)
    tasks = slow_fit(features, 4, 5, warm_start, generator)
    for i, task in enumerate(tasks):
        torch.testing.assert_close(
            model.state_[f"W.{i}"], task.weight.detach(), atol=2e-5, rtol=0
        )
        torch.testing.assert_close(
            model.state_[f"b.{i}"], task.bias.detach(), atol=2e-5, rtol=0
        )


def test_a_dead_cluster_leaves_gradients_finite():
    z = torch.tensor([[[0.0, 0.5], [1.0, 0.0], [-1e4, -1e4]]], requires_grad=True)
    q = torch.softmax(z, dim=1)
    assert q[0, 2].eq(0).all()
    label_loss(q, torch.log_softmax(z.detach(), dim=1), 10.0).backward()
    assert z.grad.isfinite().all()
    assert z.grad[0, :2].abs().max() > 0


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_finds_clusters(seed):
    views, labels = clustered_views(seed=seed)
    model = TURTLE(4, random_state=seed, **FEW).fit(views)
    assert clustering_accuracy(labels, model.labels_) > 0.9


@pytest.mark.parametrize(
    "settings", [{"warm_start": True}, {"batch_size": 100}], ids=["warm", "batches"]
)
def test_finds_clusters_in_other_ways(views, labels, settings):
    usual = TURTLE(4, random_state=0, **FEW).fit(views)
    model = TURTLE(4, random_state=0, **FEW, **settings).fit(views)
    assert clustering_accuracy(labels, model.labels_) > 0.9
    assert not np.array_equal(
        usual.decision_function(views), model.decision_function(views)
    )


def test_scale_of_the_features_has_no_effect(views):
    times_64 = Views({name: array * 64 for name, array in views.items()})
    labels = TURTLE(4, random_state=0, **FEW).fit(views).labels_
    assert np.array_equal(
        TURTLE(4, random_state=0, **FEW).fit(times_64).labels_, labels
    )
    raw = TURTLE(4, random_state=0, normalize="none", **FEW)
    assert not np.array_equal(
        raw.fit(views).decision_function(views),
        raw.fit(times_64).decision_function(times_64),
    )


def test_entropy_keeps_all_clusters_in_use(views):
    kept = TURTLE(8, random_state=0, **FEW).fit(views)  # twice as many as there are
    free = TURTLE(8, random_state=0, gamma=0.0, **FEW).fit(views)
    assert len(np.unique(kept.labels_)) == 8
    assert len(np.unique(free.labels_)) < 8


def test_prediction_does_not_depend_on_company():
    # Wide enough for ordinary products to add up in an order that depends on the row.
    arrays = np.random.default_rng(0).normal(size=(2, 300, 517)).astype(np.float32)
    views = Views(list(arrays))
    model = TURTLE(7, random_state=0, steps=2).fit(views)
    together = model.decision_function(views)
    assert np.array_equal(model.decision_function(views[::-1]), together[::-1])
    for row in range(5):
        alone = model.decision_function(views[row : row + 1])
        assert np.array_equal(alone[0], together[row])
    assert np.array_equal(model.predict(views), together.argmax(axis=1))
    assert together.sum(axis=1) == pytest.approx(1)


def test_scores_are_the_mean_of_the_views(views):
    model = TURTLE(4, random_state=0, normalize="none", steps=5).fit(views)
    q = 0
    for i, (_, h) in enumerate(views.items()):
        z = h.astype(np.float64) @ model.state_[f"W.{i}"].double().numpy().T
        e = np.exp(z + model.state_[f"b.{i}"].double().numpy())
        q = q + e / e.sum(axis=1, keepdims=True) / 2
    assert model.decision_function(views) == pytest.approx(q, abs=1e-6)
