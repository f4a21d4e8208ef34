"""An ensemble of heads: their consensus, and what a classifier learns from it."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from sagl.baselines import ICCE, TEMI, Watch
from sagl.baselines.icce import consensus, learn, surest
from sagl.evaluation import clustering_accuracy
from tests.conftest import clustered_views

SMALL = {"heads": 6, "epochs": 40, "learning_rate": 1e-2, "momentum": 0.9}


def noisy_heads(n=90, C=3, H=7, wrong=0.3, seed=0):
    """Labels (n, H) of heads that number the clusters in their own ways."""
    random = np.random.default_rng(seed)
    labels = np.arange(n) % C
    heads = []
    for _ in range(H):
        said = np.where(random.random(n) < wrong, random.integers(0, C, n), labels)
        heads.append(random.permutation(C)[said])
    return np.stack(heads, axis=1), labels


def test_the_consensus_is_better_than_any_head():
    heads, labels = noisy_heads()
    fit = consensus(heads, 3, seed=0)
    together = clustering_accuracy(labels, fit.argmax(dim=1).numpy())
    assert together > max(clustering_accuracy(labels, said) for said in heads.T)
    # Samples on which heads agree fit their cluster better than others.
    of_class = heads[labels == 0]
    usual = np.array([np.bincount(said).argmax() for said in of_class.T])
    agreeing = (of_class == usual).sum(axis=1)
    sure = fit.max(dim=1).values.numpy()[labels == 0]
    assert np.corrcoef(agreeing, sure)[0, 1] > 0.8


def test_the_consensus_of_equal_heads_is_what_they_say():
    heads, _ = noisy_heads(H=1)
    turned = np.hstack([heads, (heads + 1) % 3, (2 * heads) % 3])
    said = consensus(turned, 3, seed=0).argmax(dim=1)
    assert clustering_accuracy(heads[:, 0], said.numpy()) == 1


def test_the_consensus_is_k_means_on_the_labels_one_hot():
    heads, _ = noisy_heads(n=40, C=3, H=4)
    fit = consensus(heads, 3, seed=0)
    dense = np.hstack([np.eye(3)[said] for said in heads.T])
    labels = fit.argmax(dim=1).numpy()
    centres = np.stack([dense[labels == c].mean(axis=0) for c in range(3)])
    distances = ((dense[:, None] - centres) ** 2).sum(axis=2)
    np.testing.assert_allclose(fit, 4 - distances, atol=1e-6)  # rows have length² 4


def test_the_surest_of_each_cluster():
    q = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.3, 0.7], [0.7, 0.3]])
    assert surest(q, 0.5).tolist() == [0, 2, 3]
    assert surest(q, 1.0).tolist() == [0, 2, 4, 1, 3]
    assert surest(q, 0.01).tolist() == [0, 3]  # never none of a cluster


@pytest.mark.parametrize("C", [2, 3, 5])
def test_the_classifier_is_scikit_learn_s(C):
    views, labels = clustered_views(n_clusters=C, spread=2.0)
    x = views["wide"].astype(np.float32)
    weight, bias = learn(torch.from_numpy(x), torch.from_numpy(labels), C)
    ours = torch.softmax(torch.from_numpy(x) @ weight.T + bias, dim=1).numpy()
    theirs = LogisticRegression(max_iter=2000, tol=1e-8)
    if C == 2:  # theirs has one row of weights then, and so half of our penalty
        assert (ours.argmax(axis=1) == theirs.fit(x, labels).predict(x)).mean() > 0.98
    else:
        expected = theirs.fit(x, labels).predict_proba(x)
        np.testing.assert_allclose(ours, expected, atol=5e-3)


def test_a_cluster_without_samples_gets_none():
    x = torch.randn(40, 5, generator=torch.Generator().manual_seed(0))
    labels = (x[:, 0] > 0).long() * 2
    weight, bias = learn(x, labels, 3)
    said = (x @ weight.T + bias).argmax(dim=1)
    assert 1 not in said
    assert (said == labels).all()


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_clusters_are_found(head):
    views, labels = clustered_views(300, n_clusters=5, spread=0.8)
    rate = 1e-2 if head == "linear" else 1e-3
    model = ICCE(5, **{**SMALL, "learning_rate": rate}, head=head, random_state=0)
    model.fit(views[:200])
    assert clustering_accuracy(labels[:200], model.labels_) > 0.9
    assert clustering_accuracy(labels[200:], model.predict(views[200:])) > 0.9
    assert model.state_["weight"].shape == (5, 18)


def test_looks_on_the_way_are_those_of_temi(views):
    ours, theirs = Watch(views, looks=4), Watch(views, looks=4)
    ICCE(4, **SMALL, random_state=0).fit(views, watch=ours)
    TEMI(4, **SMALL, random_state=0).fit(views, watch=theirs)
    assert len(ours.curve) == len(theirs.curve) >= 2
    for (_, labels), (_, expected) in zip(ours.curve, theirs.curve, strict=True):
        assert np.array_equal(labels, expected)
