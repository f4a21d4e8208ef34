"""Search, learned graph, heads, calibration: the default as a whole and in parts."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl import SAGL, Views
from sagl.evaluation import clustering_accuracy
from sagl.nn.network import Network
from sagl.pipeline import (
    attention_among,
    cross_fitted,
    inverse_temperature,
    set_heads,
    start_network,
    train,
)
from sagl.search.evidence import left_out
from sagl.search.space import one_hot
from tests.conftest import clustered_views
from tests.nn.slow import slow_entmax
from tests.search.conftest import UNEVEN, blobs, space_of

checked = settings(max_examples=40, deadline=None, derandomize=True, database=None)
CPU = torch.device("cpu")
C = 4


def network_for(space, n_clusters=C, **options):
    widths = [x.shape[1] for x in space.views]
    params = {"z_width": 8, "self_loops": False, "vote": "product"} | options
    network = Network(widths, n_clusters, **params)
    start_network(network, space, seed=0)
    return network.eval()


@pytest.fixture
def started(problem):
    """Samples that overlap, their features as the network gets them, a new network."""
    space, truth = problem
    return space, truth, [10 * x for x in space.views], network_for(space)


@pytest.fixture(scope="module")
def problem():
    views, labels = clustered_views(160, spread=3.5)
    return space_of(views), torch.from_numpy(labels)


def inside(graph, labels):
    """Weight inside the clusters, mean over rows."""
    same = (labels[graph.rows()] == labels[graph.cols]).float()
    return float((graph.entries * same).sum() / len(labels))


class TestStart:
    def test_scores_are_cosines_along_principal_directions(self, started):
        space, _, features, network = started
        for view, x, h in zip(
            network.view_networks, space.views, features, strict=True
        ):
            linear = view.linear(h)
            D = linear.queries.shape[1]
            assert min(8, x.shape[1]) == D
            _, _, directions = torch.linalg.svd(x, full_matrices=False)
            z = x @ directions[:D].T
            z = z / z.norm(dim=1).mean()
            scores = linear.queries @ linear.keys.T / D**0.5
            torch.testing.assert_close(scores, 25 * z @ z.T, rtol=0.05, atol=0.5)
            assert not torch.equal(view.U, view.V)

    def test_views_attend_together_by_their_weights(self, started):
        _, _, features, network = started
        network.view_weights.copy_(torch.tensor([0.75, 0.25]))
        linear = [
            view.linear(h)
            for view, h in zip(network.view_networks, features, strict=True)
        ]
        scores = sum(
            weight * one.queries @ one.keys.T / one.queries.shape[1] ** 0.5
            for weight, one in zip((0.75, 0.25), linear, strict=True)
        )
        scores.fill_diagonal_(-torch.inf)
        graph = attention_among(network, features)
        expected = slow_entmax(scores.double(), 1.5).float()
        torch.testing.assert_close(
            graph.tensor().to_dense(), expected, atol=1e-4, rtol=0
        )


class TestLearning:
    def test_the_graph_learns_to_join_clusters(self, started):
        space, truth, features, network = started
        before = inside(attention_among(network, features), truth)
        options = SAGL(C, steps=60, learning_rate=0.01, random_state=0)
        options = options.resolved(len(space))
        trainer = train(network, features, [truth], options, CPU)
        after = inside(attention_among(network, features), truth)
        assert after > before + 0.03
        assert trainer.step == 60
        for view in network.view_networks:
            assert not torch.allclose(view.U, view.V, atol=0.01)

    def test_a_sample_attends_by_what_was_learned_of_others(self, started):
        """Labels at random can be learned by heart, and are not found again."""
        space, _, features, network = started
        generator = torch.Generator().manual_seed(0)
        noise = torch.randint(C, (len(space),), generator=generator)
        options = SAGL(C, steps=300, learning_rate=0.02, random_state=0)
        options = options.resolved(len(space))
        graph = cross_fitted(network, features, [noise], options, CPU)
        assert graph.shape == (len(space), len(space))
        sums = torch.zeros(len(space)).index_add(0, graph.rows(), graph.entries)
        torch.testing.assert_close(sums, torch.ones(len(space)))
        assert not (graph.rows() == graph.cols).any()
        train(network, features, [noise], options, CPU)
        by_heart = inside(attention_among(network, features), noise)
        assert inside(graph, noise) < 0.35 < 0.4 < by_heart

    def test_the_search_uses_the_graph_that_was_learned(self, monkeypatch):
        views, truth = clustered_views(200, spread=2.0)
        seen = []

        def spy(space, n_clusters, seed, *, learn, **options):
            trained = learn([torch.from_numpy(truth)] * 2)
            seen.extend([space.attention, trained.attention])
            return original(space, n_clusters, seed, learn=learn, **options)

        from sagl.search.candidates import search as original

        monkeypatch.setattr("sagl.pipeline.search", spy)
        SAGL(C, steps=60, random_state=0).fit(views)
        first, learned = seen
        labels = torch.from_numpy(truth)
        assert inside(learned, labels) > inside(first, labels) + 0.02


class TestHeads:
    def test_together_they_say_what_regressions_say_of_samples_left_out(self, started):
        space, truth, features, network = started
        space = space.weighted([3.0, 1.0])
        of_samples_left_out = set_heads(network, space, truth, "balanced")
        said = [
            view.linear(h).values + view.bias
            for view, h in zip(network.view_networks, features, strict=True)
        ]
        p = left_out(space, one_hot(truth, C))
        expected = (p - p.mean(dim=0)) / p.std(dim=0)
        torch.testing.assert_close(of_samples_left_out, expected)
        # Those of training samples, so a little surer of what they were fitted to.
        mean = torch.stack(said).mean(dim=0)
        correlation = torch.corrcoef(torch.stack([mean.flatten(), expected.flatten()]))
        assert float(correlation[0, 1]) > 0.95
        assert float(mean.std()) == pytest.approx(1.0, abs=0.2)
        assert float(network.graph_weight) == space.config.vote

    @pytest.mark.parametrize("sizes", ["balanced", "any"])
    def test_nobody_is_put_into_a_cluster_that_was_empty(self, problem, sizes):
        space, truth = problem
        network = network_for(space, C + 1)
        set_heads(network, space, truth, sizes)
        values = [
            view.linear(10 * x).values + view.bias
            for view, x in zip(network.view_networks, space.views, strict=True)
        ]
        mean = torch.stack(values).mean(dim=0)
        assert torch.isfinite(mean).all()
        assert (mean[:, C] < mean[:, :C].amax(dim=1) - 5).all()

    def test_small_clusters_are_predicted_better_as_log_odds(self):
        views, truth = blobs(UNEVEN)
        space, labels = space_of(views), torch.from_numpy(truth)
        right = {}
        for sizes in ("balanced", "any"):
            network = network_for(space, 5)
            set_heads(network, space, labels, sizes)
            values = [
                view.linear(10 * x).values + view.bias
                for view, x in zip(network.view_networks, space.views, strict=True)
            ]
            said = torch.stack(values).mean(dim=0).argmax(dim=1)
            right[sizes] = float((said == labels).float().mean())
        assert right["any"] >= right["balanced"]
        assert right["any"] > 0.95


@checked
@given(st.floats(0.3, 0.99), st.integers(0, 99))
def test_mean_confidence_is_what_was_asked_for(wanted, seed):
    p = 8 * torch.randn(200, C, generator=torch.Generator().manual_seed(seed))
    factor = inverse_temperature(p, wanted)
    q = torch.softmax(factor * p, dim=-1)
    assert float(q.amax(dim=-1).mean()) == pytest.approx(wanted, abs=1e-3)
    assert inverse_temperature(p, 1.0) > 19  # nobody is ever that sure


class TestModel:
    def test_it_predicts_what_was_found(self):
        views, truth = clustered_views(300, spread=1.5)
        model = SAGL(C, random_state=0).fit(views[:200])
        assert clustering_accuracy(truth[:200], model.labels_) > 0.95
        assert clustering_accuracy(truth[200:], model.predict(views[200:])) > 0.95
        assert model.score_.total > 0
        assert sum(model.view_weights_) == pytest.approx(1)
        assert len(model.anchor_labels_) == 200

    def test_neighbours_decide_where_linear_maps_cannot(self):
        """Rings in each other: no plane parts them."""
        rng = np.random.default_rng(0)
        n = 600
        truth = np.arange(n) % 2
        angle = rng.uniform(0, 2 * np.pi, n)
        x = (1 + 2 * truth) * np.stack([np.cos(angle), np.sin(angle)])
        cosines = np.stack([np.cos(k * angle) for k in (1, 2, 3)])
        rows = np.concatenate([x, x**2, cosines]).T + 0.05 * rng.normal(size=(n, 7))
        model = SAGL(2, random_state=0).fit({"ring": rows[:400].astype("f4")})
        labels = torch.from_numpy(truth[:400])
        model.anchor_labels_.copy_(labels)
        model._model.predictor._clusters = one_hot(labels, 2).double()
        for view in model.network_.view_networks:  # heads that know nothing
            view.head.zero_()
        model._model.predictor.views[0].head.zero_()
        predicted = model.predict({"ring": rows[400:].astype("f4")})
        assert (predicted == truth[400:]).mean() > 0.9

    def test_equals_the_obvious_computation(self):
        views, _ = clustered_views(200, spread=3.0)
        model = SAGL(C, gate="sharpen", random_state=0).fit(views[:150])
        network, new = model.network_.double(), views[150:]
        labels = one_hot(model.anchor_labels_, C).double()
        scores, p = 0.0, []
        for i, view in enumerate(network.view_networks):
            raw = torch.from_numpy(new.take(np.arange(50))[i]).double()
            h = view.encoder.standardize(raw)
            z = h @ view.encoder.weight().T + view.encoder.b
            keys = model.anchors_[i].double() @ view.V
            gate = 1 / (1 - view.gate(z) + 1e-6)
            score = gate[:, None] * (z @ view.U @ keys.T) / z.shape[1] ** 0.5
            scores = scores + network.view_weights[i] * score
            p.append(h @ view.head.T + view.bias)
        votes = network.graph_weight * slow_entmax(scores, 1.5) @ labels
        q = torch.softmax(torch.stack(p).mean(dim=0) + votes, dim=1)
        np.testing.assert_allclose(model.predict_proba(new), q.detach(), atol=1e-4)

    def test_confidence_is_the_share_that_is_right(self):
        """On clusters that overlap, mean confidence is near the true accuracy."""
        views, truth = clustered_views(800, spread=3.0)
        model = SAGL(C, random_state=0).fit(views[:400])
        q = model.predict_proba(views[400:])
        accuracy = clustering_accuracy(truth[400:], q.argmax(axis=1))
        assert abs(q.max(axis=1).mean() - accuracy) < 0.12

    @pytest.mark.parametrize("graph", ["sparse", "dense", "identity"])
    def test_every_form_of_the_graph(self, graph):
        views, truth = clustered_views(200, spread=1.0)
        model = SAGL(C, steps=5, graph=graph, random_state=0).fit(views)
        assert clustering_accuracy(truth, model.labels_) > 0.95
        one = model.attention_graph(views, together=True)
        np.testing.assert_allclose(one.sum(axis=1), 1, atol=1e-5)

    @pytest.mark.parametrize("normalize", ["none", "center"])
    @pytest.mark.parametrize("scale", [0.01, 100.0])
    def test_features_of_any_scale_give_the_same_answers(self, normalize, scale):
        views, _ = clustered_views(200, spread=2.0)
        centred = {name: h - h.mean(axis=0) for name, h in views.items()}
        scaled = {name: scale * h for name, h in centred.items()}
        one, other = (
            SAGL(C, normalize=normalize, steps=5, random_state=0).fit(given)
            for given in (centred, scaled)
        )
        assert clustering_accuracy(one.labels_, other.labels_) > 0.98
        assert other.confidence_.mean() == pytest.approx(
            one.confidence_.mean(), abs=0.02
        )
        degrees = [
            model.attention_graph(given, together=True).nnz
            for model, given in ((one, centred), (other, scaled))
        ]
        assert degrees[1] == pytest.approx(degrees[0], rel=0.2)

    def test_a_prediction_does_not_depend_on_company(self):
        views, _ = clustered_views(200, spread=3.0)
        model = SAGL(C, steps=5, random_state=0).fit(views)
        together = model.predict_proba(views)
        assert len(np.unique(together.argmax(axis=1))) == C
        for i in (0, 57, 199):
            np.testing.assert_array_equal(
                model.predict_proba(views[i : i + 1]), together[i : i + 1]
            )

    def test_the_graph_is_sparse_and_not_symmetric(self):
        views, _ = clustered_views(300, spread=2.0)
        model = SAGL(C, random_state=0).fit(views)
        together = model.attention_graph(views, together=True)
        for A in (*model.attention_graph(views), together):
            assert A.diagonal().max() == 0
            assert A.nnz < 30 * len(views)
            assert abs(A - A.T).max() > 0.05

    @pytest.mark.parametrize(
        ("wanted", "found"), [("auto", "any"), ("balanced", "balanced"), ("any", "any")]
    )
    def test_sizes_are_let_go_where_that_is_clear_or_wanted(self, wanted, found):
        views, truth = blobs(UNEVEN)
        model = SAGL(5, cluster_sizes=wanted, steps=5, random_state=0).fit(views)
        assert model.cluster_sizes_ == found
        accuracy = clustering_accuracy(truth, model.labels_)
        assert accuracy > 0.95 if found == "any" else accuracy < 0.8

    def test_the_width_of_z(self, views):
        widths = {"auto": [12, 6], "C": [4, 4], 3: [3, 3]}
        for width, expected in widths.items():
            model = SAGL(4, width=width, steps=2, random_state=0).fit(views)
            assert [z.shape[1] for z in model.anchors_] == expected
        with pytest.raises(ValueError, match=r"width=8 needs refine=True"):
            SAGL(4, width=8, refine=False).fit(views)

    def test_samples_that_are_all_alike_in_a_view(self):
        rng = np.random.default_rng(0)
        views = Views(
            {
                "a": rng.normal(size=(60, 5)),
                "b": np.repeat(rng.normal(size=(2, 3)), 30, 0),
            }
        )
        model = SAGL(2, random_state=0).fit(views)
        assert np.isfinite(model.predict_proba(views)).all()
