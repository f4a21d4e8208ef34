"""SAGL as scikit-learn and its users see it."""

import inspect
import pickle
import warnings
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score, make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_estimator,
    estimator_checks_generator,
)

from sagl import SAGL, CollapseWarning, UncertainCountWarning, Views
from sagl import model as fitting
from sagl.evaluation import clustering_accuracy
from sagl.search.stability import DoubtCurve
from sagl.selection import label_free_score
from sagl.training.sampler import step_seed
from tests.conftest import QUICK, clustered_views
from tests.search.conftest import UNEVEN, blobs

ONE_CLUSTER = (
    "the check fits with n_clusters=1, which is refused; the next test runs the same "
    "check with two clusters"
)
ONE_CLUSTER_CHECKS = (
    "check_dont_overwrite_parameters",
    "check_fit2d_1feature",
    "check_fit2d_predict1d",
    "check_methods_subset_invariance",
)


class AtLeastTwo(SAGL):
    """SAGL for checks that insist on one cluster: they get two."""

    __init__ = SAGL.__init__

    @property
    def n_clusters(self):
        return self.__dict__["n_clusters"]

    @n_clusters.setter
    def n_clusters(self, value):
        self.__dict__["n_clusters"] = max(2, value)


@pytest.fixture(scope="module")
def fitted(views):
    return SAGL(4, steps=20, search=QUICK, random_state=0).fit(views)


def test_scikit_learn_estimator_checks():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapseWarning)
        results = check_estimator(
            SAGL(2, steps=2, search=QUICK, random_state=0),
            expected_failed_checks=dict.fromkeys(ONE_CLUSTER_CHECKS, ONE_CLUSTER),
            on_fail=None,
        )
    failed = {
        r["check_name"]: r["exception"] for r in results if r["status"] == "failed"
    }
    assert not failed


def test_checks_that_ask_for_one_cluster_pass_with_two():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        passed = set()
        model = AtLeastTwo(2, steps=2, search=QUICK, random_state=0)
        for estimator, check in estimator_checks_generator(model):
            name = check.func.__name__
            if name in ONE_CLUSTER_CHECKS:
                check(estimator)
                passed.add(name)
    assert passed == set(ONE_CLUSTER_CHECKS)


def test_init_only_stores_its_arguments():
    model = SAGL(5, graph="dense", gamma=3.0)
    assert set(vars(model)) == set(inspect.signature(SAGL).parameters)
    assert model.get_params()["graph"] == "dense"
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(graph="identity").get_params()["graph"] == "identity"


def test_finds_clusters_that_are_there(views, labels):
    model = SAGL(4, random_state=0).fit(views[:160])
    assert adjusted_rand_score(labels[:160], model.labels_) > 0.95
    assert adjusted_rand_score(labels[160:], model.predict(views[160:])) > 0.95


def test_labels_are_the_prediction_for_the_training_samples(fitted, views):
    np.testing.assert_array_equal(fitted.labels_, fitted.predict(views))
    np.testing.assert_array_equal(fitted.labels_, clone(fitted).fit_predict(views))


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"gate": "sharpen"},
        {"recipe": "released"},
        {"graph": "dense"},
        {"graph": "identity"},
        {"alpha": 1.3, "n_anchors": 50, "self_loops": True},
    ],
    ids=str,
)
def test_prediction_does_not_depend_on_company(params):
    """Alone, in any subset and in any order: the same bits, with many clusters."""
    views, _ = clustered_views(n_samples=700, n_clusters=12, spread=1.5)
    model = SAGL(12, steps=5, search=QUICK, random_state=0, **params)
    model.fit(views[:400])
    new = views[400:]
    together = model.predict_proba(new)
    transformed = model.transform(new)
    assert len(np.unique(together.argmax(axis=1))) > 4
    for i in (0, 1, 17, 255, 256, 257, 299):
        alone = model.predict_proba(new[i : i + 1])
        np.testing.assert_array_equal(alone, together[i : i + 1])
        np.testing.assert_array_equal(
            model.transform(new[i : i + 1]), transformed[i : i + 1]
        )
    order = np.random.default_rng(0).permutation(len(new))
    np.testing.assert_array_equal(model.predict_proba(new[order]), together[order])
    np.testing.assert_array_equal(model.predict_proba(new[3:90]), together[3:90])


def test_prediction_does_not_depend_on_threads(fitted, views):
    expected = fitted.predict_proba(views)
    torch.set_num_threads(2)
    try:
        np.testing.assert_array_equal(fitted.predict_proba(views), expected)
    finally:
        torch.set_num_threads(1)


def test_same_seed_same_bits(views):
    first, second, other = (
        SAGL(4, steps=5, search=QUICK, random_state=seed).fit(views)
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first.labels_, second.labels_)
    np.testing.assert_array_equal(first.transform(views), second.transform(views))
    assert first.history_ == second.history_
    assert not np.array_equal(first.transform(views), other.transform(views))


def test_global_random_state_is_untouched(views):
    numpy_state, torch_state = np.random.get_state()[1].copy(), torch.get_rng_state()
    for seed in (None, 0, np.random.RandomState(0)):
        model = SAGL(4, steps=5, search=QUICK, random_state=seed).fit(views)
        model.predict(views)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state)
    assert torch.equal(torch.get_rng_state(), torch_state)


def test_labels_do_not_matter(views, labels):
    with_labels = SAGL(4, steps=5, search=QUICK, random_state=0).fit(views, labels)
    without = SAGL(4, steps=5, search=QUICK, random_state=0).fit(views)
    np.testing.assert_array_equal(with_labels.labels_, without.labels_)


def test_all_forms_of_views_give_the_same_model(views, tmp_path):
    arrays, mapped = [array for _, array in views.items()], {}
    for name, array in views.items():
        np.save(tmp_path / f"{name}.npy", array)
        mapped[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    model = SAGL(4, refine=False, steps=20, random_state=0)
    expected = clone(model).fit(views)
    for form in (dict(views.items()), arrays, tuple(arrays), mapped):
        other = clone(model).fit(form)
        np.testing.assert_array_equal(other.labels_, expected.labels_)
        np.testing.assert_array_equal(other.transform(form), expected.transform(views))
    one = clone(model).set_params(view_sizes=views.widths).fit(np.hstack(arrays))
    np.testing.assert_array_equal(one.labels_, expected.labels_)


def test_one_view_is_enough(labels, views):
    model = SAGL(4, steps=20, search=QUICK, random_state=0).fit(views["wide"])
    assert adjusted_rand_score(labels, model.labels_) > 0.8
    assert len(model.attention_graph(views["wide"])) == 1


def test_shapes_and_names(fitted, views):
    n = len(views)
    probabilities = fitted.predict_proba(views)
    assert probabilities.shape == (n, 4)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert fitted.transform(views).shape == (n, 8)
    apart = fitted.representations(views)
    assert list(apart) == list(views.names)
    together = np.hstack(list(apart.values()))
    np.testing.assert_array_equal(together, fitted.transform(views))
    names = fitted.get_feature_names_out()
    assert list(names[:2]) == ["sagl_wide_0", "sagl_wide_1"]
    assert len(names) == 8


def test_graph_is_a_sparse_matrix_per_view(fitted, views):
    graphs = fitted.attention_graph(views)
    assert len(graphs) == 2
    for graph in graphs:
        assert issparse(graph)
        assert graph.format == "csr"
        assert graph.shape == (len(views), len(views))
        np.testing.assert_allclose(graph.sum(axis=1), 1, atol=1e-5)
        assert graph.nnz < 0.5 * len(views) ** 2
    params = {"steps": 5, "search": QUICK, "random_state": 0}
    identity = SAGL(4, graph="identity", **params).fit(views)
    assert (identity.attention_graph(views)[0] != np.eye(len(views))).sum() == 0


def test_graph_in_blocks_is_the_graph(fitted, views, monkeypatch):
    whole = fitted.attention_graph(views)
    monkeypatch.setattr("sagl.prediction._GRAPH_ROWS", 70)
    for one, other in zip(whole, fitted.attention_graph(views), strict=True):
        assert other.shape == (len(views), len(views))
        assert other.indices.dtype == np.int32
        np.testing.assert_allclose(one.toarray(), other.toarray(), atol=1e-6)


def test_pickle_keeps_everything(fitted, views):
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(
        copy.predict_proba(views), fitted.predict_proba(views)
    )


def test_pipeline_and_grid_search(views, labels):
    X = np.hstack([array for _, array in views.items()])
    params = {"steps": 20, "refine": False, "random_state": 0}
    model = SAGL(4, view_sizes=views.widths, **params)
    pipeline = make_pipeline(StandardScaler(), model).fit(X)
    assert pipeline.predict(X).shape == (len(views),)
    for data in (X, views):
        estimator = model if data is X else clone(model).set_params(view_sizes=None)
        search = GridSearchCV(
            estimator,
            {"graph": ["sparse", "identity"]},
            scoring=make_scorer(adjusted_rand_score),
            cv=2,
            error_score="raise",
        )
        search.fit(data, labels)
        assert set(search.best_params_) == {"graph"}


def test_training_stops_when_nothing_moves(views):
    params = {"recipe": "network", "steps": 5000, "random_state": 0}
    model = SAGL(4, tolerance=0.05, patience=3, **params).fit(views)
    assert model.n_steps_ < 5000
    assert all(record["changed"] <= 0.05 for record in model.history_[-3:])


def test_collapse_is_announced_with_what_to_try(views):
    with pytest.warns(CollapseWarning, match=r"only \d+ of 40 clusters.*gamma"):
        SAGL(40, steps=3, gamma=0.0, refine=False, random_state=0).fit(views)
    cause = r"taken as they are.*normalize=\"standard\" first"
    with pytest.warns(CollapseWarning, match=cause):
        SAGL(40, steps=3, recipe="paper", random_state=0).fit(views)


def test_auto_estimates_the_number_of_clusters(views, labels):
    model = SAGL("auto", steps=60, random_state=0).fit(views)
    assert model.n_clusters_ == model.cluster_count_.best == 4
    assert model.cluster_count_.sure
    assert clustering_accuracy(labels, model.labels_) > 0.95
    fixed = SAGL(4, steps=60, random_state=0).fit(views)
    np.testing.assert_array_equal(model.labels_, fixed.labels_)


def test_doubtful_samples_may_be_left_out():
    """Those that keep their cluster under other starts are right more often."""
    hard, truth = clustered_views(480, 12, spread=2.5)
    model = SAGL(12, steps=20, random_state=0).fit(hard)
    every, sure = model.predict(hard), model.predict(hard, agreement=0.95)
    kept = sure != -1
    np.testing.assert_array_equal(sure[kept], every[kept])
    assert 0.1 < kept.mean() < 1
    assert (model.confidence_[kept] >= model.threshold(0.95)).all()
    assert clustering_accuracy(truth[kept], sure[kept]) > 0.05 + clustering_accuracy(
        truth[~kept], every[~kept]
    )


def test_new_samples_are_left_out_as_often_as_training_samples_would_be():
    """Thresholds are of samples that the model does not know."""
    hard, _ = clustered_views(960, 8, spread=2.2)
    model = SAGL(8, steps=20, random_state=0).fit(hard[np.arange(0, 960, 2)])
    curve = model.doubt_
    i = len(curve.kept) // 2
    new = model.predict_with_confidence(hard[np.arange(1, 960, 2)])[1]
    assert (new >= curve.confidence[i]).mean() == pytest.approx(curve.kept[i], abs=0.1)
    assert (model.confidence_ >= curve.confidence[i]).mean() > curve.kept[i]


def test_an_agreement_that_nobody_reaches_is_told(views):
    model = SAGL(4, steps=5, random_state=0).fit(views)
    model.doubt_ = DoubtCurve((0.0, 0.5), (1.0, 0.6), (0.7, 0.85))
    with pytest.warns(UserWarning, match=r"agreement=0.9 .* \(the most is 0.85\)"):
        assert (model.predict(views, agreement=0.9) == -1).all()
    assert (model.predict(views, agreement=0.7) != -1).all()


def test_a_view_of_noise_counts_less(views, labels):
    noise = np.random.default_rng(0).normal(size=(len(views), 8)).astype(np.float32)
    given = {**dict(views.items()), "noise": noise}
    model = SAGL(4, steps=20, search=QUICK, random_state=0).fit(given)
    assert sum(model.view_weights_) == pytest.approx(1)
    assert model.view_weights_[2] < 0.5 * min(model.view_weights_[:2])
    assert clustering_accuracy(labels, model.labels_) > 0.95


class TestClusterSizes:
    def test_auto_lets_go_where_that_is_clear(self):
        uneven, truth = blobs(UNEVEN)
        model = SAGL(5, steps=5, random_state=0).fit(uneven)
        assert model.cluster_sizes_ == "any"
        assert clustering_accuracy(truth, model.labels_) > 0.95

    def test_auto_does_not_let_go_of_what_is_even(self, views, labels):
        model = SAGL(4, steps=5, random_state=0).fit(views)
        assert model.cluster_sizes_ == "balanced"
        assert clustering_accuracy(labels, model.labels_) > 0.95

    def test_even_never_lets_go(self):
        uneven, truth = blobs(UNEVEN)
        model = SAGL(5, cluster_sizes="balanced", steps=5, random_state=0).fit(uneven)
        assert model.cluster_sizes_ == "balanced"
        assert clustering_accuracy(truth, model.labels_) < 0.8

    def test_free_always_lets_go(self, views, labels):
        model = SAGL(4, cluster_sizes="any", steps=5, random_state=0).fit(views)
        assert model.cluster_sizes_ == "any"
        assert clustering_accuracy(labels, model.labels_) > 0.95

    def test_new_samples_of_small_clusters_are_known(self):
        uneven, truth = blobs([2 * size for size in UNEVEN])
        model = SAGL(5, steps=5, random_state=0).fit(uneven[::2])
        assert clustering_accuracy(truth[1::2], model.predict(uneven[1::2])) > 0.95

    def test_without_a_search_there_is_nothing_to_tell(self, views):
        params = {"refine": False, "cluster_sizes": "any", "random_state": 0}
        model = SAGL(4, steps=5, **params).fit(views)
        assert not hasattr(model, "cluster_sizes_")

    def test_another_value_is_refused(self, views):
        message = "^cluster_sizes must be one of 'auto', 'balanced', 'any'; got 'even'$"
        with pytest.raises(ValueError, match=message):
            SAGL(4, cluster_sizes="even").fit(views)


def test_doubt_takes_more_than_one_partition(views):
    with pytest.raises(ValueError, match="fit with refine=True, or with n_restarts"):
        SAGL(4, steps=5, refine=False, random_state=0).fit(views).threshold(0.9)
    twice = SAGL(4, steps=5, refine=False, n_restarts=2, random_state=0).fit(views)
    assert 0 <= twice.threshold(1e-9) <= twice.confidence_.min() + 1e-12
    assert twice.score_ == pytest.approx(label_free_score(views, twice.labels_))
    assert not hasattr(twice, "view_weights_")
    assert not hasattr(twice, "cluster_sizes_")


def test_a_second_fit_keeps_nothing_of_the_first(views):
    model = SAGL("auto", steps=5, random_state=0).fit(views)
    assert model.cluster_count_.best == 4
    model.set_params(n_clusters=3, refine=False).fit(views)
    for name in (
        *("cluster_count_", "score_", "doubt_", "view_weights_", "cluster_sizes_"),
    ):
        assert not hasattr(model, name)
    with pytest.raises(ValueError, match="nothing is known about the stability"):
        model.predict(views, agreement=0.9)


def test_auto_says_when_it_cannot_tell():
    noise = np.random.default_rng(0).normal(size=(80, 12))
    with pytest.warns(UncertainCountWarning, match="do not tell clearly"):
        SAGL("auto", steps=5, view_sizes=(6, 6), random_state=0).fit(noise)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda v: {"wide": v["wide"]},
            "fitted on the views wide .*narrow' is missing",
        ),
        (lambda v: {"wide": v["wide"][:, :5], "narrow": v["narrow"]}, "5 columns"),
        (
            lambda v: {"wide": v["wide"], "other": v["narrow"]},
            "'narrow' is missing, 'other' is not known",
        ),
        (lambda v: {**dict(v.items()), "more": v["wide"]}, "'more' is not known"),
        (lambda v: [v["narrow"], v["wide"]], "'wide' has 6 columns here"),
        (lambda v: [v["wide"]], "'narrow' is missing"),
        (lambda v: {"wide": v["wide"][:9], "narrow": v["narrow"]}, "rows"),
        (lambda v: {n: h * np.nan for n, h in v.items()}, "NaN at row 0"),
    ],
)
def test_other_views_than_those_of_the_fit_are_refused(fitted, views, change, message):
    for method in (fitted.predict, fitted.transform, fitted.graph):
        with pytest.raises(ValueError, match=message):
            method(change(views))


@pytest.mark.parametrize(
    "turned",
    [
        lambda v: {"narrow": v["narrow"], "wide": v["wide"]},
        lambda v: Views({"narrow": v["narrow"], "wide": v["wide"]}),
        lambda v: Views({"narrow": v["narrow"], "wide": v["wide"]})[:],
        lambda v: [v["wide"], v["narrow"]],
        lambda v: Views([v["wide"], v["narrow"]])[:],
    ],
)
def test_views_are_joined_by_name_and_a_list_is_taken_in_order(fitted, views, turned):
    given = turned(views)
    np.testing.assert_array_equal(fitted.predict(given), fitted.predict(views))
    np.testing.assert_array_equal(fitted.transform(given), fitted.transform(views))
    for ours, theirs in zip(*map(fitted.attention_graph, (given, views)), strict=True):
        assert (ours != theirs).nnz == 0


def test_data_frames_are_joined_by_their_index(fitted, views):
    rows = [f"sample {i}" for i in range(len(views))]
    frames = {name: pd.DataFrame(h, index=rows) for name, h in views.items()}
    mixed = frames | {"narrow": frames["narrow"].sample(frac=1, random_state=0)}
    assert list(mixed["narrow"].index) != rows
    np.testing.assert_array_equal(fitted.predict(mixed), fitted.predict(views))
    model = SAGL(4, refine=False, steps=20, random_state=0)
    found = clone(model).fit(mixed)
    np.testing.assert_array_equal(found.labels_, model.fit(views).labels_)


@pytest.mark.parametrize("agreement", [0, -0.5, 1.0001, 2, float("nan"), "most", True])
def test_an_agreement_that_cannot_be_is_refused(fitted, views, agreement):
    with pytest.raises(ValueError, match="agreement must be") as caught:
        fitted.predict(views, agreement=agreement)
    assert str(agreement) in str(caught.value)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_clusters": 1}, "n_clusters"),
        ({"n_clusters": "many"}, "n_clusters must be a whole number"),
        ({"n_clusters": 1000}, "fewer than n_clusters=1000"),
        ({"device": "nonsense"}, "nonsense"),
        ({"random_state": -1}, "random_state"),
        ({"recipe": "secret"}, "recipe"),
    ],
)
def test_bad_parameters_are_refused(views, params, message):
    with pytest.raises(ValueError, match=message):
        SAGL(**{"n_clusters": 4, "steps": 5, **params}).fit(views)


def test_constant_view_is_refused(views):
    with pytest.raises(ValueError, match="'flat' is constant"):
        SAGL(2).fit(Views({"wide": views["wide"], "flat": np.ones((len(views), 3))}))


def test_public_signatures_are_frozen():
    """Parameters may be added with thought, never renamed or reordered in silence."""
    assert list(inspect.signature(SAGL).parameters)[:8] == [
        "n_clusters",
        "recipe",
        "gamma",
        "beta",
        "learning_rate",
        "batch_size",
        "epochs",
        "steps",
    ]
    for method in ("fit", "fit_predict"):
        assert list(inspect.signature(getattr(SAGL, method)).parameters) == [
            "self",
            "X",
            "y",
        ]
    for method in ("predict_proba", "transform"):
        assert list(inspect.signature(getattr(SAGL, method)).parameters) == [
            "self",
            "X",
        ]
    predict = list(inspect.signature(SAGL.predict).parameters)
    assert predict == ["self", "X", "agreement", "layer"]


def test_restarts_share_what_is_read(views):
    """One standardisation and one feed, and still each as if it were alone."""
    params = {"steps": 8, "refine": False, "batch_size": 50}
    with (
        patch("sagl.model.Feed", wraps=fitting.Feed) as feed,
        patch(
            "sagl.model.set_standardization", wraps=fitting.set_standardization
        ) as measured,
    ):
        several = SAGL(4, n_restarts=3, random_state=1, **params).fit(views)
    assert feed.call_count == measured.call_count == 1
    seeds = (1, step_seed(1, 1), step_seed(1, 2))
    alone = [SAGL(4, random_state=seed, **params).fit(views) for seed in seeds]
    answer = several.predict_proba(views)
    assert any(np.array_equal(answer, one.predict_proba(views)) for one in alone)


def test_a_second_view_is_not_taken_for_labels(views):
    """``fit(a, b)``: what people try who have two arrays."""
    first, second = (views[name] for name in views.names)
    for ask in (SAGL(4).fit, SAGL(4).fit_predict):
        with pytest.raises(ValueError, match=r"one argument, fit\(\[a, b\]\)"):
            ask(first, second)


def test_wrong_parameters_are_said_to_be_of_sagl():
    with pytest.raises(TypeError, match=r"^SAGL\.__init__\(\) got an unexpected"):
        SAGL(4, n_cluster=4)
