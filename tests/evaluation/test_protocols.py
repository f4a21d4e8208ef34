"""The three protocols: what each predicts, and what its scores say."""

import warnings

import numpy as np
import pytest
import torch

from sagl import SAGL
from sagl.evaluation import (
    clustering_scores,
    evaluate,
    predict_in_batches,
    predict_transductive,
)
from sagl.nn.inference import transductive_probabilities
from sagl.training.feed import Feed
from tests.conftest import clustered_views
from tests.nn.slow import slow_entmax

PROTOCOLS = ("inductive", "transductive", "batch")
VARIANTS = {
    "gated": {"gate": "sharpen"},
    "released": {"recipe": "released"},
    "dense": {"graph": "dense", "gate": "none"},
    "identity": {"graph": "identity"},
    "no loops": {"gate": "none", "self_loops": False},
}


def fit(views, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a short training may leave clusters empty
        params = {"steps": 40, "random_state": 0, "refine": False} | params
        params = {"n_clusters": 4} | params
        return SAGL(**params).fit(views)


@pytest.fixture(scope="module")
def samples():
    """Clusters that overlap, so that company can change an answer."""
    return clustered_views(360, spread=3.0)


@pytest.fixture(scope="module")
def model(samples):
    return fit(samples[0][:240], gate="sharpen")


@pytest.fixture(scope="module")
def held_out(samples):
    return samples[0][240:]


@pytest.fixture(scope="module")
def truth(samples):
    return samples[1][240:]


@torch.no_grad()
def dense_probabilities(model, views):
    """One graph over all samples, the whole n × n matrix at once, in float64."""
    votes = []
    for view, (_, array) in zip(model.network_.views, views.items(), strict=True):
        p = {name: tensor.double() for name, tensor in view.state_dict().items()}
        h = torch.from_numpy(array).double() - p["encoder.shift"]
        h = h * p["encoder.scale"]
        if p["encoder.row_length"] > 0:
            h = h / h.norm(dim=1, keepdim=True) * p["encoder.row_length"]
        v = p["encoder.v"]
        W = v / v.norm(dim=1, keepdim=True) * p["encoder.g"][:, None]
        z = h @ W.T + p["encoder.b"]
        if model.settings_.graph == "identity":
            A = torch.eye(len(z)).double()
        else:
            S = (z @ p["U"]) @ (z @ p["V"]).T / z.shape[1] ** 0.5
            if "gate.W1" in p:
                x = z if model.settings_.gate_input == "z" else h
                hidden = (x @ p["gate.W1"].T + p["gate.b1"]).relu()
                omega = (hidden @ p["gate.W2"].T + p["gate.b2"]).sigmoid()
                shrink = model.settings_.gate == "shrink"
                S = S * (1 - omega if shrink else 1 / (1 - omega + 1e-6))
            A = graph_of(S, model.settings_)
        votes.append((A @ z + z + p["bias"]).softmax(dim=1))
    return sum(votes) / len(votes)


def graph_of(S, settings):
    if settings.self_loops:
        return slow_entmax(S, 1 if settings.graph == "dense" else settings.alpha)
    A = torch.zeros_like(S)
    for i, row in enumerate(S):
        others = torch.arange(len(row)) != i
        A[i, others] = slow_entmax(row[others], settings.alpha)
    return A


def clear(q):
    """Samples whose two best clusters are further apart than rounding."""
    best = q.topk(2, dim=1).values
    rows = (best[:, 0] - best[:, 1] > 1e-3).numpy()
    assert rows.mean() > 0.9
    return rows


class TestInductive:
    def test_it_scores_the_model_s_own_predictions(self, model, held_out, truth):
        scores = clustering_scores(truth, model.predict(held_out))
        expected = {"protocol": "inductive", **scores}
        assert evaluate(model, held_out, truth) == expected
        assert evaluate(model, held_out, truth, "inductive") == expected

    def test_it_does_not_depend_on_the_order(self, model, held_out, truth):
        order = np.random.default_rng(0).permutation(120)
        assert evaluate(model, held_out[order], truth[order]) == evaluate(
            model, held_out, truth
        )


class TestTransductive:
    @pytest.mark.parametrize("variant", VARIANTS)
    def test_it_is_the_dense_obvious_computation(self, samples, held_out, variant):
        model = fit(samples[0][:240], steps=15, **VARIANTS[variant])
        expected = dense_probabilities(model, held_out)
        feed = Feed(held_out, model.network_, torch.device("cpu"))
        q = transductive_probabilities(model.network_, feed.in_order())
        torch.testing.assert_close(q.double(), expected, rtol=1e-3, atol=1e-4)
        rows = clear(expected)
        predicted = predict_transductive(model, held_out)
        np.testing.assert_array_equal(predicted[rows], expected.argmax(1).numpy()[rows])

    def test_it_does_not_depend_on_the_order(self, model, held_out):
        rows = clear(dense_probabilities(model, held_out))
        predicted = predict_transductive(model, held_out)
        for seed in range(3):
            order = np.random.default_rng(seed).permutation(120)
            again = np.empty_like(predicted)
            again[order] = predict_transductive(model, held_out[order])
            np.testing.assert_array_equal(again[rows], predicted[rows])

    def test_blocks_of_samples_change_nothing(self, model, held_out, monkeypatch):
        rows = clear(dense_probabilities(model, held_out))
        predicted = predict_transductive(model, held_out)
        monkeypatch.setattr("sagl.training.feed._BLOCK_ROWS", 7)
        again = predict_transductive(model, held_out)
        np.testing.assert_array_equal(again[rows], predicted[rows])

    def test_it_depends_on_the_company(self, model, held_out):
        """Unlike an inductive prediction; else the two could not be told apart."""
        predicted = predict_transductive(model, held_out)
        half = predict_transductive(model, held_out[:20])
        assert (half != predicted[:20]).any()

    def test_its_scores(self, model, held_out, truth):
        predicted = predict_transductive(model, held_out)
        assert evaluate(model, held_out, truth, "transductive") == {
            "protocol": "transductive",
            **clustering_scores(truth, predicted),
        }


@torch.no_grad()
def slow_batches(model, views, batch_size, order):
    """The network on one batch after the other, as the released test loop does it."""
    answers = {}
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        features = [
            view.encoder.standardize(torch.from_numpy(array[rows]))
            for view, (_, array) in zip(
                model.network_.views, views.items(), strict=True
            )
        ]
        q = [log_q.exp() for log_q in model.network_(features)]
        winners = (sum(q) / len(q)).argmax(dim=1)
        answers.update(zip(rows.tolist(), winners.tolist(), strict=True))
    return np.array([answers[i] for i in range(len(order))])


class TestBatch:
    @pytest.mark.parametrize("batch_size", [1, 20, 50, 120, 500])
    def test_it_is_the_network_on_consecutive_batches(
        self, model, held_out, batch_size
    ):
        expected = slow_batches(model, held_out, batch_size, np.arange(120))
        predicted = predict_in_batches(model, held_out, batch_size)
        np.testing.assert_array_equal(predicted, expected)

    def test_another_order_still_answers_sample_by_sample(self, model, held_out):
        order = np.random.default_rng(0).permutation(120)
        np.testing.assert_array_equal(
            predict_in_batches(model, held_out, 20, order),
            slow_batches(model, held_out, 20, order),
        )

    def test_it_depends_on_the_order(self, model, held_out, truth):
        by_class = np.argsort(truth, kind="stable")
        shuffled = np.random.default_rng(0).permutation(120)
        one = predict_in_batches(model, held_out, 20, by_class)
        other = predict_in_batches(model, held_out, 20, shuffled)
        assert (one != other).any()

    def test_all_in_one_batch_is_transductive(self, model, held_out):
        rows = clear(dense_probabilities(model, held_out))
        np.testing.assert_array_equal(
            predict_in_batches(model, held_out, 120)[rows],
            predict_transductive(model, held_out)[rows],
        )

    @pytest.mark.parametrize("random_state", [0, 7])
    def test_both_orders_are_scored(self, model, held_out, truth, random_state):
        result = evaluate(
            *(model, held_out, truth, "batch"),
            batch_size=20,
            random_state=random_state,
        )
        by_class = [i for k in range(4) for i in np.flatnonzero(truth == k)]
        shuffled = np.random.default_rng(random_state).permutation(120)
        in_order, in_disorder = (
            clustering_scores(truth, slow_batches(model, held_out, 20, np.array(order)))
            for order in (by_class, shuffled)
        )
        assert result.pop("note").endswith("depend on the order of the samples")
        assert result == {
            "protocol": "batch",
            **in_disorder,
            "sorted": in_order,
            "gap": in_order["acc"] - in_disorder["acc"],
            "batch_size": 20,
        }
        assert result["gap"] != 0

    def test_the_batch_size_is_that_of_the_training(self, samples, truth):
        model = fit(samples[0][:240], batch_size=30, graph="identity")
        result = evaluate(model, samples[0][240:], truth, "batch")
        assert result["batch_size"] == 30

    @pytest.mark.parametrize("batch_size", [-5, 0])
    def test_a_batch_size_below_one_is_refused(
        self, model, held_out, truth, batch_size
    ):
        with pytest.raises(ValueError, match="batch_size"):
            evaluate(model, held_out, truth, "batch", batch_size=batch_size)


class TestAll:
    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_names_may_be_strings(self, model, held_out, truth, protocol):
        names = np.array(["ant", "bee", "cat", "dog"])[truth].tolist()
        assert evaluate(model, held_out, names, protocol) == evaluate(
            model, held_out, truth, protocol
        )

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    @pytest.mark.parametrize("shape", [(119,), (121,), (120, 1), (1, 120), (0,), ()])
    def test_labels_of_another_length_are_refused(
        self, model, held_out, protocol, shape
    ):
        with pytest.raises(ValueError, match="120 samples need 120 labels, got shape"):
            evaluate(model, held_out, np.zeros(shape, dtype=int), protocol)

    @pytest.mark.parametrize("protocol", ["", "Batch", "honest", None])
    def test_an_unknown_protocol_is_refused(self, model, held_out, truth, protocol):
        message = f"'inductive', 'transductive', 'batch'; got {protocol!r}"
        with pytest.raises(ValueError, match=message):
            evaluate(model, held_out, truth, protocol)

    def test_nothing_is_left_where_all_was_corrected(
        self, model, held_out, truth, monkeypatch
    ):
        everyone = np.ones(len(held_out), dtype=bool)
        monkeypatch.setattr(type(model), "was_corrected", lambda self, X: everyone)
        with pytest.raises(ValueError, match="all samples were corrected"):
            evaluate(model, held_out, truth)

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_other_views_are_refused(self, model, held_out, truth, protocol):
        with pytest.raises(ValueError, match="fitted on the views wide"):
            evaluate(model, {"wide": held_out["wide"]}, truth, protocol)

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_no_gradient_and_nothing_left_behind(
        self, model, held_out, truth, protocol
    ):
        before = {k: v.clone() for k, v in model.network_.state_dict().items()}
        grads = [p.grad for p in model.network_.parameters()]
        needs_gradient = []
        hooks = [
            view.encoder.register_forward_hook(
                lambda module, inputs, z: needs_gradient.append(z.requires_grad)
            )
            for view in model.network_.views
        ]
        evaluate(model, held_out, truth, protocol)
        for hook in hooks:
            hook.remove()
        assert not any(needs_gradient)
        assert bool(needs_gradient) == (protocol != "inductive")
        assert not any(module.training for module in model.network_.modules())
        assert all(p.requires_grad for p in model.network_.parameters())
        after = [p.grad for p in model.network_.parameters()]
        assert all(a is b for a, b in zip(after, grads, strict=True))
        for name, tensor in model.network_.state_dict().items():
            assert torch.equal(tensor, before[name])

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_labels_only_score(self, model, held_out, truth, protocol):
        """Renaming the classes, in the same order, changes no score."""
        assert evaluate(model, held_out, 10 * truth + 3, protocol) == evaluate(
            model, held_out, truth, protocol
        )

    def test_a_missing_label_is_refused(self, model, held_out):
        labels = ["ant", "bee"] * 59 + ["ant", float("nan")]
        with pytest.raises(ValueError, match="119"):
            evaluate(model, held_out, labels)
