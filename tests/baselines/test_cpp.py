"""CPP: its network and read-out against slow versions, and what it finds."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from sagl import Views
from sagl.baselines.base import Watch
from sagl.baselines.cpp import (
    CPP,
    _new_weights,
    embed,
    embed_batch,
    folded,
)
from sagl.baselines.rate_reduction import doubly_stochastic, group_rate
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
    for found, wanted in zip(embed_batch(weights, x), expected, strict=True):
        torch.testing.assert_close(found, wanted)


def test_folded_layers_do_the_same_without_company():
    weights, x = weights_and_batch()
    layers = folded(weights, x)
    assert "gain" not in layers
    for together, found in zip(embed_batch(weights, x), embed(x, layers), strict=True):
        torch.testing.assert_close(found, together)
    alone = torch.cat([embed(row[None], layers)[1] for row in x])
    torch.testing.assert_close(alone, embed(x, layers)[1])


def test_compression_of_all_groups_is_exact():
    generator = torch.Generator().manual_seed(0)
    z, c = unit_vectors(12, generator), unit_vectors(12, generator)
    model = CPP(3, groups=50, temperature=0.3, penalty=0.7, epsilon_squared=0.2)
    Pi = doubly_stochastic((c @ c.T).abs(), 0.3)
    expected = group_rate(z, Pi, 0.2) + 0.35 * sum(p**2 for p in Pi.flatten().tolist())
    found = model._compression(z, c, generator)
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)


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


def test_equal_seeds_equal_bits(views, fitted):
    again = CPP(4, **SMALL, random_state=0).fit(views)
    assert all(again.state_[k].equal(t) for k, t in fitted.state_.items())
    other = CPP(4, **SMALL, random_state=1).fit(views)
    assert not any(other.state_[k].equal(t) for k, t in fitted.state_.items())


def test_prediction_does_not_depend_on_company(views, fitted):
    together = fitted.decision_function(views)
    backwards = fitted.decision_function(views[np.arange(len(views))[::-1]])
    assert np.array_equal(backwards[::-1], together)
    alone = [fitted.decision_function(views[i : i + 1])[0] for i in range(20)]
    assert np.array_equal(alone, together[:20])


def test_save_and_load(views, fitted, tmp_path):
    fitted.save(tmp_path / "model")
    again = CPP.load(tmp_path / "model")
    assert np.array_equal(
        again.decision_function(views), fitted.decision_function(views)
    )
    candidates = [2, 4]
    assert again.estimate_n_clusters(views, candidates) == fitted.estimate_n_clusters(
        views, candidates
    )


@pytest.mark.parametrize("count", [1, 3])
def test_any_number_of_views(count):
    views, labels = clustered_views()
    arrays = {**dict(views.items()), "third": views["wide"][:, :5] * 1000}
    some = Views(dict(list(arrays.items())[:count]))
    model = CPP(4, **SMALL, random_state=0).fit(some)
    assert clustering_accuracy(labels, model.labels_) > 0.8


def test_few_samples_are_enough_for_a_read_out(views, labels):
    model = CPP(4, **SMALL, readout_samples=60, random_state=0).fit(views)
    assert clustering_accuracy(labels, model.labels_) > 0.9


def test_as_many_clusters_as_samples(views):
    model = CPP(3, **SMALL, random_state=0).fit(views[:3])
    assert model.labels_.shape == (3,)


def test_batches_of_one_sample_do_no_harm(views):
    model = CPP(2, **SMALL, batch_size=2, random_state=0).fit(views[:5])
    assert all(tensor.isfinite().all() for tensor in model.state_.values())


def test_a_watch_looks_and_changes_nothing(views, fitted):
    watch = Watch(views[:50], looks=4)
    model = CPP(4, **SMALL, random_state=0).fit(views, watch=watch)
    assert len(watch.curve) == 3
    assert all(found.shape == (50,) for _, found in watch.curve)
    assert np.array_equal(model.labels_, fitted.labels_)


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
    with pytest.raises(ValueError, match="at least one number of clusters"):
        fitted.estimate_n_clusters(views, [])
    with pytest.raises(ValueError, match="fitted on the views"):
        fitted.estimate_n_clusters(views["wide"], [2, 3])


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("steps", 0, "steps must be a whole number of at least 1; got 0"),
        ("warmup", -1, "warmup must be a whole number of at least 0; got -1"),
        ("batch_size", 1, "batch_size must be a whole number of at least 2; got 1"),
        ("groups", 1.5, "groups must be a whole number of at least 1; got 1.5"),
        ("hidden", 0, "hidden must be a whole number of at least 1; got 0"),
        ("dimension", 0, "dimension must be a whole number of at least 1; got 0"),
        ("readout_samples", 3, "readout_samples must be a whole number of at least 4"),
        ("epsilon_squared", 0, "epsilon_squared must be above 0 and finite; got 0"),
        ("learning_rate", math.inf, "learning_rate must be above 0 and finite"),
        ("temperature", 0.0, "temperature must be above 0 and finite; got 0.0"),
        ("temperature", "cold", "temperature must be a number; got 'cold'"),
        ("penalty", -0.1, "penalty must be at least 0 and finite; got -0.1"),
    ],
)
def test_refuses_bad_parameters(views, name, value, message):
    with pytest.raises(ValueError, match=message) as error:
        CPP(4, **{name: value}).fit(views)
    assert "\n" not in str(error.value)


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
