"""Samples that miss a view: nothing is NaN, company and order do not matter."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl import SAGL, Views
from sagl.baselines import KMeans
from sagl.evaluation import clustering_accuracy
from sagl.evaluation.protocols import evaluate
from sagl.selection import choose_views, estimate_n_clusters, label_free_score
from tests.conftest import clustered_views

LITTLE = {"search": {"proposals": 16, "starts": 3, "steps": 30}, "steps": 8}


def without(views, missing):
    """These views with NaN where ``missing``, (n, L), says so."""
    arrays = {}
    for (name, array), gone in zip(views.items(), missing.T, strict=True):
        arrays[name] = np.array(array, dtype=np.float32)
        arrays[name][gone] = np.nan
    return Views(arrays)


def random_gaps(n, n_views, share, seed=0):
    """Which views are missing, at random, never all of one sample."""
    rng = np.random.default_rng(seed)
    missing = rng.random((n, n_views)) < share
    lost = np.flatnonzero(missing.all(axis=1))
    missing[lost, rng.integers(n_views, size=len(lost))] = False
    return missing


def three_views(n_samples=150, seed=0):
    """The two views of all tests, and one like the narrower."""
    views, labels = clustered_views(n_samples, seed=seed)
    noise = np.random.default_rng(seed).normal(size=views["narrow"].shape)
    return Views({**dict(views.items()), "third": views["narrow"] - noise}), labels


@pytest.fixture(scope="module")
def problem():
    """Three views, what of them is there, and classes."""
    views, labels = three_views()
    return views, without(views, random_gaps(150, 3, 0.4)), labels


@pytest.fixture(scope="module")
def model(problem):
    return SAGL(4, random_state=0, **LITTLE).fit(problem[1])


@pytest.fixture(scope="module")
def complete_model(problem):
    return SAGL(4, random_state=0, **LITTLE).fit(problem[0])


def answers_of(model, views):
    """All that is said of single samples."""
    scores = model.outliers(views), model.disagreement(views)
    probabilities, features = model.predict_proba(views), model.transform(views)
    finest = model.predict(views, layer=model.layers_[-1].n_clusters)
    return np.column_stack([probabilities, features, *scores, finest])


def test_clusters_are_found_all_the_same(model, problem):
    _, part, labels = problem
    assert clustering_accuracy(labels, model.labels_) > 0.95
    assert model.missing_ == tuple(150 - count for count in part.counts)
    np.testing.assert_array_equal(model.predict(part), model.labels_)


def test_nothing_said_of_training_samples_is_nan(model, problem):
    _, part, _ = problem
    assert np.isfinite(answers_of(model, part)).all()
    facts = model.facts_
    for values in (facts.outlier, facts.disagreement, facts.between):
        assert np.isfinite(values).all()
    assert np.isfinite(model.confidence_).all()
    assert ((facts.disagreement >= 0) & (facts.disagreement <= 1)).all()
    one_view = part.present.sum(axis=1) == 1
    assert (facts.disagreement[one_view] == 0).all()
    assert len(model.clusters()) == 4
    assert np.isfinite([layer.stability for layer in model.layers_]).all()


@settings(max_examples=12, deadline=None, derandomize=True, database=None)
@given(seed=st.integers(0, 2**16), share=st.floats(0, 0.95))
@pytest.mark.parametrize("which", ["model", "complete_model"])
def test_answers_are_finite_and_do_not_depend_on_company(which, seed, share, request):
    """Of models that were fitted with gaps and without."""
    model = request.getfixturevalue(which)
    new, _ = three_views(40, seed=3)
    new = without(new, random_gaps(40, 3, share, seed))
    answers = answers_of(model, new)
    assert np.isfinite(answers).all()
    order = np.random.default_rng(seed).permutation(40)
    np.testing.assert_array_equal(answers_of(model, new[order]), answers[order])
    some = order[:3]
    for row in some:
        alone = answers_of(model, new[row : row + 1])
        np.testing.assert_array_equal(alone, answers[row : row + 1])


@pytest.mark.parametrize("which", ["model", "complete_model"])
def test_complete_samples_have_the_same_bits_beside_others(which, request):
    model = request.getfixturevalue(which)
    new, _ = three_views(60, seed=4)
    missing = random_gaps(60, 3, 0.6, seed=5)
    whole = ~missing.any(axis=1)
    assert whole.any()
    mixed = answers_of(model, without(new, missing))
    np.testing.assert_array_equal(mixed[whole], answers_of(model, new)[whole])


def test_what_is_missing_is_filled_with_what_the_others_say(model):
    new, _ = three_views(8, seed=6)
    missing = np.zeros((8, 3), dtype=bool)
    missing[:4, 0] = True
    said = model.transform(without(new, missing)).reshape(8, 3, 4)
    np.testing.assert_allclose(said[:4, 0], said[:4, 1:].mean(axis=1), rtol=1e-12)
    voted = torch.softmax(torch.from_numpy(said[:4, 1:].mean(axis=1)), dim=1)
    np.testing.assert_allclose(model.predict_proba(without(new, missing))[:4], voted)


def test_graphs_join_those_that_share_a_view(model, problem):
    _, part, _ = problem
    for graph, there in zip(model.attention_graph(part), part.present.T, strict=True):
        assert np.isfinite(graph.data).all()
        sums = np.asarray(graph.sum(axis=1)).ravel()
        np.testing.assert_allclose(sums, there, atol=1e-5)
        assert there[graph.tocoo().col].all()
    together = model.attention_graph(part, together=True).tocoo()
    assert (part.present[together.row] & part.present[together.col]).any(axis=1).all()
    sums = np.asarray(together.sum(axis=1)).ravel()
    np.testing.assert_allclose(sums, 1, atol=1e-5)


def test_nobody_attends_to_those_with_whom_nothing_is_shared(model, problem):
    """Not even where there is nobody else."""
    new, _ = three_views(3, seed=7)
    missing = np.array([[0, 1, 1], [1, 0, 0], [1, 1, 0]], dtype=bool)
    graph = model.attention_graph(without(new, missing), together=True).toarray()
    np.testing.assert_allclose(graph, [[0, 0, 0], [0, 0, 1], [0, 1, 0]], atol=1e-6)
    for graph in model.attention_graph(without(new, missing)):
        assert np.isfinite(graph.toarray()).all()


def test_the_order_of_views_does_not_matter(problem):
    _, part, _ = problem
    turned = Views({name: part[name] for name in ("third", "wide", "narrow")})
    first, other = (SAGL(4, random_state=0, **LITTLE).fit(v) for v in (part, turned))
    assert clustering_accuracy(first.labels_, other.labels_) > 0.97
    np.testing.assert_array_equal(first.predict(turned), first.labels_)


def test_a_saved_model_answers_alike(model, problem, tmp_path):
    _, part, _ = problem
    model.save(tmp_path / "run")
    again = SAGL.load(tmp_path / "run")
    assert again.missing_ == model.missing_
    np.testing.assert_array_equal(answers_of(again, part), answers_of(model, part))
    np.testing.assert_array_equal(again.labels_, model.labels_)


def test_clusters_are_merged_and_split(model, problem):
    _, part, _ = problem
    assert model.merge(part, 0, 1).n_clusters_ == 3
    more = model.split(part, 2)
    assert more.n_clusters_ == 5
    assert np.isfinite(more.confidence_).all()


def test_copies_are_found_in_the_views_that_are_there(model):
    views, _ = three_views(80, seed=8)
    twice = Views({name: np.concatenate([h, h[:5]]) for name, h in views.items()})
    missing = np.zeros((85, 3), dtype=bool)
    missing[80:82, 0] = True  # of the copies
    missing[2, 1] = missing[82, 1] = True  # of both
    found = {tuple(group) for group in model.duplicates(without(twice, missing))}
    assert {(i, 80 + i) for i in range(5)} <= found


@pytest.mark.parametrize("protocol", ["inductive", "transductive", "batch"])
def test_every_protocol_scores_them(model, problem, protocol):
    _, part, labels = problem
    assert evaluate(model, part, labels, protocol)["acc"] > 0.9


@pytest.mark.parametrize(
    "params",
    [
        {"cluster_sizes": "any"},
        {"normalize": "center"},
        {"graph": "identity"},
        {"gamma": 1.0, "beta": 0.5},
        {"self_loops": True, "gate": "sharpen"},
    ],
    ids=str,
)
def test_other_settings_take_them_too(problem, params):
    _, part, labels = problem
    model = SAGL(4, random_state=0, **LITTLE, **params).fit(part)
    assert clustering_accuracy(labels, model.labels_) > 0.9
    assert np.isfinite(answers_of(model, part)).all()


def test_clusters_are_counted(problem):
    _, part, labels = problem
    assert estimate_n_clusters(part, range(2, 8)).best == 4
    good = label_free_score(part, labels).total
    assert good > 3 * label_free_score(part, np.roll(labels, 1)).total > 0


def test_half_a_row_is_an_error(problem):
    views, part, _ = problem
    arrays = {name: np.array(array) for name, array in part.items()}
    arrays["narrow"][7] = views["narrow"][7]
    arrays["narrow"][7, 2] = np.nan
    message = "view 'narrow' holds NaN at row 7, column 2; .* misses a view is a whole"
    with pytest.raises(ValueError, match=message):
        SAGL(4).fit(arrays)


def test_a_sample_without_any_view_is_refused(problem, model):
    missing = np.zeros((150, 3), dtype=bool)
    missing[11] = True
    lost = without(problem[0], missing)
    message = "all hold NaN at row 11, in every column: nothing is known"
    with pytest.raises(ValueError, match=message):
        SAGL(4).fit(lost)
    with pytest.raises(ValueError, match=message):
        model.predict(lost)
    with pytest.raises(ValueError, match="'view0' holds NaN at row 1, in every column"):
        SAGL(2).fit([np.array([[1.0, 2], [np.nan] * 2, [3, 4]])])


def test_what_needs_every_view_says_so(problem, complete_model):
    _, part, _ = problem
    row = int(np.argmax(~part.present.all(axis=1)))
    message = rf"NaN at row {row}, in every column: the sample misses this view"
    for refused in (
        lambda: KMeans(4).fit(part),
        lambda: KMeans(4, random_state=0).fit(problem[0]).predict(part),
        lambda: choose_views(part, 4),
        lambda: SAGL(4, refine=False).fit(part),
        lambda: SAGL(4, recipe="paper").fit(part),
        lambda: SAGL(4, recipe="released").fit(part),
        lambda: SAGL(4, refine=False, steps=5).fit(problem[0]).predict(part),
        lambda: complete_model.refit(part, {"merge": [[0, 1]]}),
        lambda: complete_model.update(part),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            refused()
        assert "\n" not in str(caught.value)


def test_views_that_nothing_joins_are_refused():
    views, _ = three_views(30)
    missing = np.zeros((30, 3), dtype=bool)
    missing[:10, 2] = missing[10:, :2] = True
    with pytest.raises(ValueError, match="both view 'wide' and view 'third', nor"):
        SAGL(3).fit(without(views, missing))
    missing[10:12, 0] = False  # two samples join them
    without(views, missing).check_joined()
    missing[10:, 2] = True
    missing[10:, 1] = False
    with pytest.raises(ValueError, match="view 'third' holds NaN at row 0 and in all"):
        SAGL(3).fit(without(views, missing))


def test_a_view_that_few_have_is_refused():
    views, _ = three_views(30)
    missing = np.zeros((30, 3), dtype=bool)
    missing[3:, 1] = True
    message = "only 3 of the 30 samples .* have view 'narrow', fewer than the 5"
    with pytest.raises(ValueError, match=message):
        SAGL(5).fit(without(views, missing))


class TestViews:
    def test_what_is_there(self, problem):
        views, part, _ = problem
        assert views.present is None
        assert views.counts == (150, 150, 150)
        expected = np.column_stack([~np.isnan(h[:, 0]) for _, h in part.items()])
        np.testing.assert_array_equal(part.present, expected)
        assert part.counts == tuple(expected.sum(axis=0))

    def test_parts_know_theirs(self, problem):
        part = problem[1]
        whole = np.flatnonzero(part.present.all(axis=1))
        assert part[whole].present is None
        np.testing.assert_array_equal(part[5:20].present, part.present[5:20])
        turned = part.as_fitted(("third", "narrow", "wide"), (6, 6, 12))
        np.testing.assert_array_equal(turned.present, part.present[:, ::-1])

    def test_values_that_changed_are_looked_at_again(self):
        views = Views([np.ones((4, 2)), np.ones((4, 3))])
        views.check_values()
        assert views.present is None
        views["view0"][1] = np.nan
        with pytest.raises(ValueError, match="misses this view"):
            views.check_values()
        views.check_values(missing=True)
        assert views.counts == (3, 4)

    def test_other_gaps_are_other_data(self, problem):
        views, part, _ = problem
        missing = ~part.present
        missing[1] = ~missing[1]  # not a row that is looked at
        prints = {v.fingerprint() for v in (views, part, without(views, missing))}
        assert len(prints) == 3

    def test_whole_numbers_miss_nothing(self):
        assert Views([np.arange(6).reshape(3, 2)]).present is None


def test_a_model_of_samples_that_miss_views_is_not_updated(model, problem):
    with pytest.raises(ValueError, match="was fitted on samples that miss views"):
        model.update(problem[0])
