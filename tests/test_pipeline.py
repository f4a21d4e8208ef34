"""Search, learned graph, heads, calibration: the default as a whole and in parts."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl import SAGL, Views, pipeline
from sagl.evaluation import clustering_accuracy
from sagl.model import build_network
from sagl.nn.inference import anchor_features
from sagl.nn.network import Network
from sagl.pipeline import (
    attention_among,
    calibrate,
    cross_fitted,
    set_heads,
    start_network,
    train,
)
from sagl.search.candidates import search
from sagl.search.evidence import left_out
from sagl.search.journal import Journal
from sagl.search.proposals import centre_labels
from sagl.search.score import score
from sagl.search.space import Space, one_hot
from sagl.search.stability import inverse_temperature
from sagl.training.feed import Feed, set_standardization
from tests.conftest import QUICK, clustered_views
from tests.nn.slow import slow_entmax
from tests.search.conftest import UNEVEN, blobs, configured, space_of

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


def said_by_heads(network, features):
    """The mean over views of what heads say, (n, C)."""
    said = [
        view.linear(h).values + view.bias
        for view, h in zip(network.view_networks, features, strict=True)
    ]
    return torch.stack(said).mean(dim=0)


def fitted_network(views, options, journal=None):
    """A network fitted by the pipeline alone, its settings, and what was found."""
    settings = options.resolved(len(views))
    network = build_network(settings, views.widths, torch.Generator().manual_seed(0))
    set_standardization(network, views, "standard")
    fitted = pipeline.fit_network(network, views, settings, CPU, journal=journal)
    return network, settings, fitted


class TestStart:
    @pytest.mark.parametrize("sharpness", [25.0, 9.0])
    def test_scores_are_cosines_along_principal_directions(self, started, sharpness):
        space, _, features, network = started
        start_network(network, configured(space, sharpness=sharpness), seed=0)
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
            expected = sharpness * z @ z.T
            torch.testing.assert_close(scores, expected, rtol=0.05, atol=0.5)
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


class TestSpace:
    def test_each_view_is_there_on_both_scales(self):
        """With columns of deviation 1, and divided by the root of their deviation."""
        views, _ = clustered_views(90)
        loud = {name: h * np.arange(1, h.shape[1] + 1) for name, h in views.items()}
        views, rows = Views(loud), np.arange(0, 90, 2)
        options = SAGL(C, search={"neighbour_share": 0.5}, random_state=0)
        network = network_for(space_of(views))
        set_standardization(network, views, "standard")
        features = Feed(views, network, CPU)(rows)
        space = pipeline.space_of(views, rows, features, options.resolved(90), CPU)
        assert (space.n_views, len(space.views)) == (2, 4)
        for power, scale in ((1.0, space.views[:2]), (0.5, space.views[2:])):
            for h, x in zip(loud.values(), scale, strict=True):
                expected = ((h - h.mean(axis=0)) / h.std(axis=0) ** power)[rows]
                expected /= np.linalg.norm(expected, axis=1, keepdims=True)
                np.testing.assert_allclose(x, expected, atol=1e-5)
        assert space.neighbours == round(0.5 * len(rows) / C)


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
        graphs = []

        labels = torch.from_numpy(truth)

        def spy(space, *args, **options):
            taught = options["learn"]([labels] * 2)
            assert (
                inside(taught.attention, labels)
                > inside(space.attention, labels) + 0.02
            )
            candidates, trained = search(space, *args, **options)
            graphs.extend([space.attention, trained.attention])
            for candidate in candidates:
                assert candidate.score == score(trained, candidate.labels, C)
            return candidates, trained

        monkeypatch.setattr(pipeline, "search", spy)
        SAGL(C, steps=60, search=QUICK, random_state=0).fit(views)
        first, learned = graphs
        assert first is not None
        assert inside(learned, labels) > inside(first, labels) + 0.005


class TestHeads:
    def test_together_they_say_what_regressions_say_of_samples_left_out(self, started):
        space, truth, features, network = started
        space = configured(space.weighted([3.0, 1.0]), vote=2.5)
        of_samples_left_out = set_heads(network, space, truth, "balanced")
        p = left_out(space, one_hot(truth, C))
        expected = (p - p.mean(dim=0)) / p.std(dim=0)
        torch.testing.assert_close(of_samples_left_out, expected)
        # Those of training samples, so a little surer of what they were fitted to.
        mean = said_by_heads(network, features)
        correlation = torch.corrcoef(torch.stack([mean.flatten(), expected.flatten()]))
        assert float(correlation[0, 1]) > 0.95
        assert float(mean.std()) == pytest.approx(1.0, abs=0.2)
        assert float(network.graph_weight) == 2.5

    def test_views_count_by_their_weights(self, started):
        """The mean of the heads is the weighted mean of the regressions."""
        space, truth, features, network = started
        space = space.weighted([3.0, 1.0])
        Y = one_hot(truth, C)
        set_heads(network, space, truth, "balanced")
        p = left_out(space, Y)
        fitted = [
            x @ fit.weights(Y - Y.mean(dim=0))
            for x, fit in zip(space.views, space.fits, strict=True)
        ]
        fitted = 0.75 * fitted[0] + 0.25 * fitted[1]
        expected = (fitted - p.mean(dim=0)) / p.std(dim=0)
        torch.testing.assert_close(
            said_by_heads(network, features), expected, atol=1e-4, rtol=1e-4
        )

    def test_who_looks_like_nobody_is_put_into_the_largest_of_unequal_clusters(self):
        """Where views know nothing, the prior decides."""
        generator = torch.Generator().manual_seed(0)
        noise = torch.randn(300, 6, generator=generator)
        space = Space([noise - noise.mean(dim=0)], 10)
        labels = torch.arange(300) % 10
        labels = (labels > 6).long() + (labels > 8).long()  # 210, 60 and 30
        network = network_for(space, 3)
        set_heads(network, space, labels, "any")
        said = said_by_heads(network, [10 * x for x in space.views]).argmax(dim=1)
        assert (said == 0).float().mean() > 0.9

    @pytest.mark.parametrize("sizes", ["balanced", "any"])
    def test_nobody_is_put_into_a_cluster_that_was_empty(self, problem, sizes):
        space, truth = problem
        network = network_for(space, C + 1)
        set_heads(network, space, truth, sizes)
        mean = said_by_heads(network, [10 * x for x in space.views])
        assert torch.isfinite(mean).all()
        assert (mean[:, C] < mean[:, :C].amax(dim=1) - 5).all()

    def test_small_clusters_are_predicted_better_as_log_odds(self):
        views, truth = blobs(UNEVEN)
        space, labels = space_of(views), torch.from_numpy(truth)
        right = {}
        for sizes in ("balanced", "any"):
            network = network_for(space, 5)
            set_heads(network, space, labels, sizes)
            features = [10 * x for x in space.views]
            said = said_by_heads(network, features).argmax(dim=1)
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


def test_calibration_is_one_temperature_for_heads_and_neighbours(started):
    space, truth, features, network = started
    p = set_heads(network, space, truth, "balanced")
    votes = attention_among(network, features).tensor() @ one_hot(truth, C)
    before = [network.graph_weight.clone()]
    before += [each.clone() for v in network.view_networks for each in (v.head, v.bias)]
    for wanted in (0.5, 0.9):
        calibrate(network, features, truth, p, wanted)
        after = [network.graph_weight]
        after += [each for v in network.view_networks for each in (v.head, v.bias)]
        factor = float(after[0] / before[0])
        for one, other in zip(before, after, strict=True):
            torch.testing.assert_close(other, factor * one)
        q = torch.softmax(factor * (p + before[0] * votes), dim=1)
        assert float(q.amax(dim=1).mean()) == pytest.approx(wanted, abs=1e-3)
        p = factor * p
        before = [each.clone() for each in after]


class TestFit:
    """What a fit hands from one part to the next."""

    def test_views_are_weighted_by_what_they_know(self):
        views, _ = clustered_views(200, spread=1.0)
        noise = np.random.default_rng(0).normal(size=(200, 8)).astype("f4")
        model = SAGL(C, steps=2, search=QUICK, random_state=0)
        model.fit({**dict(views.items()), "noise": noise})
        assert min(model.view_weights_[:2]) > 2 * model.view_weights_[2]
        network_weights = model.network_.view_weights.tolist()
        assert network_weights == pytest.approx(model.view_weights_)

    def test_samples_and_starts_are_as_many_as_configured(self, monkeypatch):
        views, _ = clustered_views(200, spread=1.0)
        starts = []

        def spy(place, n_clusters, seed):
            starts.append(len(place))
            return centre_labels(place, n_clusters, seed)

        monkeypatch.setattr("sagl.search.candidates.centre_labels", spy)
        few = {**QUICK, "starts": 3, "rows": 40, "rows_per_cluster": 20}
        options = SAGL(C, steps=2, n_restarts=2, search=few, random_state=0)
        _, _, fitted = fitted_network(views, options)
        assert starts == [80] * 6
        assert len(fitted.labels) == len(np.unique(fitted.rows)) == 80

    def test_confidence_is_set_to_stability(self):
        views, _ = clustered_views(200, spread=4.0)
        options = SAGL(C, steps=2, search=QUICK, random_state=0)
        network, settings, fitted = fitted_network(views, options)
        rows = Feed(views, network, CPU)(fitted.rows)
        space = pipeline.space_of(views, fitted.rows, rows, settings, CPU)
        space = space.weighted([*fitted.view_weights] * 2).on_first_scale()
        graph = attention_among(network, rows).tensor()
        votes = network.graph_weight * (graph @ one_hot(fitted.labels, C))
        heads = copy.deepcopy(network)
        p = set_heads(heads, space, fitted.labels, fitted.cluster_sizes)
        view, uncalibrated = network.view_networks[0], heads.view_networks[0]
        factor = float(view.head.norm() / uncalibrated.head.norm())
        q = torch.softmax(factor * p + votes, dim=1)
        stable = fitted.stability.mean()
        assert float(q.amax(dim=1).mean()) == pytest.approx(stable, abs=0.01)
        assert 0.3 < stable < 0.98

    def test_anchors_keep_their_own_clusters(self):
        views, truth = clustered_views(200)
        options = {"n_anchors": 50, "steps": 2, "search": QUICK, "random_state": 0}
        model = SAGL(C, **options).fit(views)
        features = [torch.from_numpy(h) for h in views.take(np.arange(200))]
        every = anchor_features(model.network_, features)
        anchors, every = (torch.cat(z, dim=1) for z in (model.anchors_, every))
        rows = torch.cdist(anchors, every).argmin(dim=1)
        torch.testing.assert_close(anchors, every[rows])
        assert clustering_accuracy(truth, model.labels_) == 1
        assert model.anchor_labels_.tolist() == model.labels_[rows].tolist()
        assert len(set(rows.tolist())) == 50

    def test_what_a_journal_has_kept_is_not_searched_for_again(
        self, monkeypatch, tmp_path
    ):
        views, _ = clustered_views(200, spread=1.0)
        options = SAGL(C, steps=2, search=QUICK, random_state=0)
        _, _, whole = fitted_network(views, options, Journal(tmp_path, {}, 0.0))

        def again(*args, **options):
            raise AssertionError("was found before")

        for name in ("anneal", "reanneal", "split_and_merge", "spectral_labels"):
            monkeypatch.setattr(f"sagl.search.candidates.{name}", again)
        for name in ("anneal", "reanneal", "split_and_merge"):
            monkeypatch.setattr(f"sagl.search.unequal.{name}", again)
        _, _, resumed = fitted_network(views, options, Journal(tmp_path, {}, 0.0))
        assert torch.equal(resumed.labels, whole.labels)
        assert resumed.score == whole.score


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
        model = SAGL(2, search=QUICK, random_state=0)
        model.fit({"ring": rows[:400].astype("f4")})
        labels = torch.from_numpy(truth[:400])
        model.anchor_labels_.copy_(labels)
        model._model.predictor._clusters = labels
        for view in model.network_.view_networks:  # heads that know nothing
            view.head.zero_()
        model._model.predictor.views[0].head.zero_()
        predicted = model.predict({"ring": rows[400:].astype("f4")})
        assert (predicted == truth[400:]).mean() > 0.9

    def test_equals_the_obvious_computation(self):
        views, _ = clustered_views(200, spread=3.0)
        model = SAGL(C, gate="sharpen", search=QUICK, random_state=0)
        model.fit(views[:150])
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
        options = {"steps": 5, "search": QUICK, "random_state": 0}
        model = SAGL(C, graph=graph, **options).fit(views)
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
            SAGL(C, normalize=normalize, search=QUICK, steps=5, random_state=0).fit(h)
            for h in (centred, scaled)
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

    def test_the_graph_is_sparse_and_not_symmetric(self):
        views, _ = clustered_views(300, spread=2.0)
        model = SAGL(C, search=QUICK, random_state=0).fit(views)
        together = model.attention_graph(views, together=True)
        for A in (*model.attention_graph(views), together):
            assert A.diagonal().max() == 0
            assert A.nnz < 30 * len(views)
            assert abs(A - A.T).max() > 0.05

    def test_the_width_of_z(self, views):
        widths = {"auto": [12, 6], "C": [4, 4], 3: [3, 3]}
        for width, expected in widths.items():
            options = {"steps": 2, "search": QUICK, "random_state": 0}
            model = SAGL(4, width=width, **options).fit(views)
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
        model = SAGL(2, search=QUICK, random_state=0).fit(views)
        assert np.isfinite(model.predict_proba(views)).all()
