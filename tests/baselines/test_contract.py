"""What every method of the comparison promises, whoever wrote it."""

import inspect
import json
import math
import os
import re
import sys
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import clone

from sagl import Views
from sagl.baselines import (
    CPP,
    GMM,
    ICCE,
    MSRL,
    SCAN,
    TEMI,
    TURTLE,
    UMAPHDBSCAN,
    EVoC,
    KMeans,
    Leiden,
    LinearProbe,
    Spectral,
    Watch,
)
from sagl.baselines.base import Baseline
from sagl.evaluation import clustering_accuracy
from tests.baselines.toy import Nearest
from tests.conftest import clustered_views

C = 4
# Small settings: seconds, not minutes, and still enough for clear clusters.
METHODS = {
    "KMeans": lambda **kw: KMeans(C, **kw),
    "MSRL": lambda **kw: MSRL(C, epochs=60, learning_rate=1e-2, **kw),
    "TURTLE": lambda **kw: TURTLE(C, steps=60, **kw),
    "TEMI": lambda **kw: TEMI(
        C, epochs=60, heads=4, learning_rate=1e-2, momentum=0.9, **kw
    ),
    "TEMI of MLPs": lambda **kw: TEMI(
        C, head="mlp", epochs=20, heads=3, learning_rate=1e-3, momentum=0.9, **kw
    ),
    "SCAN": lambda **kw: SCAN(C, epochs=40, neighbours=10, **kw),
    "CPP": lambda **kw: CPP(C, steps=40, warmup=10, hidden=32, dimension=16, **kw),
    "LinearProbe": lambda **kw: LinearProbe(C, **kw),
    "ICCE": lambda **kw: ICCE(
        C, epochs=60, heads=4, learning_rate=1e-2, momentum=0.9, **kw
    ),
    "GMM": lambda **kw: GMM(C, **kw),
    "Spectral": lambda **kw: Spectral(C, **kw),
    "Leiden": lambda **kw: Leiden(C, **kw),
    "UMAPHDBSCAN": lambda **kw: UMAPHDBSCAN(C, **kw),
    "EVoC": lambda **kw: EVoC(C, **kw),
    "a toy": lambda **kw: Nearest(C, **kw),
}
# Of the extra, by package; compiling the last two takes minutes.
PACKAGE = {"Leiden": "leidenalg", "UMAPHDBSCAN": "umap", "EVoC": "evoc"}


def each(names):
    """The methods as parameters, those of a missing package skipped."""
    for name in names:
        marks = []
        if name in PACKAGE:
            missing = find_spec(PACKAGE[name]) is None
            reason = f'needs {PACKAGE[name]}: pip install "sagl[peers]"'
            marks.append(pytest.mark.skipif(missing, reason=reason))
        if name in ("UMAPHDBSCAN", "EVoC"):
            marks += [pytest.mark.slow, pytest.mark.timeout(900)]
        yield pytest.param(name, marks=marks)


ALL = list(each(METHODS))
AT_ONCE = {"KMeans", "LinearProbe", "GMM", "Spectral", *PACKAGE}
STEPWISE = sorted(METHODS.keys() - AT_ONCE)


def fitted(name, views, labels, seed=0, **fit):
    model = METHODS[name](random_state=seed)
    return model.fit(views, labels if model.supervised else None, **fit)


class FittedOnce(dict):
    """Every method fitted once on the same samples, when it is asked for."""

    def __missing__(self, name):
        return self.setdefault(name, fitted(name, *clustered_views()))


@pytest.fixture(scope="module")
def models():
    return FittedOnce()


@pytest.fixture(scope="module")
def data():
    return clustered_views()


@pytest.mark.parametrize("name", ALL)
def test_finds_clear_clusters(name, models, data):
    _, labels = data
    assert clustering_accuracy(labels, models[name].labels_) > 0.8


@pytest.mark.parametrize("name", ALL)
def test_labels_are_those_of_predict(name, models, data):
    views, _ = data
    model = models[name]
    assert model.labels_.dtype.kind == "i"
    assert model.labels_.shape == (len(views),)
    assert 0 <= model.labels_.min() <= model.labels_.max() < C
    assert np.array_equal(model.predict(views), model.labels_)


@pytest.mark.parametrize("name", ALL)
def test_prediction_does_not_depend_on_company(name, models, data):
    """Alone, in part, reversed: the same bits."""
    views, _ = data
    model = models[name]
    together = model.decision_function(views)
    assert together.shape == (len(views), C)
    backwards = views[np.arange(len(views))[::-1]]
    assert np.array_equal(model.decision_function(backwards)[::-1], together)
    for i in (0, 7, len(views) - 1):
        assert np.array_equal(model.decision_function(views[i : i + 1])[0], together[i])
    part = np.arange(3, len(views), 7)
    assert np.array_equal(model.decision_function(views[part]), together[part])


@pytest.mark.parametrize("name", ALL)
def test_save_and_load(name, models, data, tmp_path):
    views, _ = data
    model = models[name]
    model.save(tmp_path / "model")
    again = type(model).load(tmp_path / "model")
    expected = model.decision_function(views)
    assert np.array_equal(again.decision_function(views), expected)
    assert np.array_equal(again.labels_, model.labels_)
    assert again.get_params() == {**model.get_params(), "random_state": 0}
    with pytest.raises(ValueError, match="is there already"):
        model.save(tmp_path / "model")


@pytest.mark.parametrize("name", ALL)
def test_the_seed_decides_alone(name, models, data):
    """No part is played by global generators, by labels, or by how views are given."""
    views, labels = data
    state = models[name].state_
    matrix = np.hstack([array for _, array in views.items()])
    again = METHODS[name](random_state=0, view_sizes=views.widths)
    np.random.seed(1)
    torch.manual_seed(1)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    again.fit(matrix, labels if again.supervised else np.zeros(len(views)))
    assert again.state_.keys() == state.keys()
    assert all(tensor.equal(again.state_[key]) for key, tensor in state.items())
    assert np.array_equal(again.labels_, models[name].labels_)
    assert np.array_equal(again.predict(matrix[:5]), again.labels_[:5])
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])


@pytest.mark.parametrize("name", sorted(METHODS.keys() - AT_ONCE | {"KMeans", "GMM"}))
def test_another_seed_is_another_fit(name, models, data):
    other = fitted(name, *data, seed=1).state_
    state = models[name].state_
    assert any(not tensor.equal(other[key]) for key, tensor in state.items())


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("count", [1, 3])
def test_takes_any_number_of_views(name, count):
    views, labels = clustered_views()
    arrays = {**dict(views.items()), "third": views["wide"][:, :5]}
    few = Views(dict(list(arrays.items())[:count]))
    model = fitted(name, few, labels)
    assert clustering_accuracy(labels, model.labels_) > 0.5


@pytest.mark.parametrize("name", STEPWISE)
def test_a_watch_looks_and_changes_nothing(name, models, data):
    views, labels = data
    watch = Watch(views[:50], looks=4)
    model = fitted(name, views, labels, watch=watch)
    assert 1 <= len(watch.curve) <= 3  # the end of the fit needs no look
    times = [at for at, _ in watch.curve]
    assert times == sorted(times)
    assert all(labelled.shape == (50,) for _, labelled in watch.curve)
    assert watch.paused > 0
    assert np.array_equal(model.labels_, models[name].labels_)


@pytest.mark.parametrize("name", ALL)
def test_is_a_scikit_learn_estimator(name):
    model = METHODS[name](random_state=3)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.random_state == 3
    assert json.dumps({k: str(v) for k, v in model.get_params().items()})


@pytest.mark.parametrize("name", ALL)
def test_refuses_bad_input(name, models, data):
    views, labels = data
    model = models[name]
    with pytest.raises(ValueError, match=r"fitted on the views wide \(12 columns\)"):
        model.predict(views["narrow"])
    bad = {key: array.copy() for key, array in views.items()}
    bad["wide"][5, 2] = np.nan
    with pytest.raises(ValueError, match="view 'wide' holds NaN at row 5, column 2"):
        model.predict(bad)
    with pytest.raises(ValueError, match="view 'wide' holds NaN"):
        fitted(name, Views(bad), labels)
    with pytest.raises(ValueError, match="n_samples=3 is fewer than n_clusters=4"):
        fitted(name, views[:3], labels[:3])
    with pytest.raises(ValueError, match="n_clusters must be a whole number"):
        clone(model).set_params(n_clusters=1).fit(views, labels)


@pytest.mark.parametrize("name", ALL)
def test_every_parameter_has_limits(name, data):
    views, labels = data
    model = METHODS[name]()
    checked = [f.name for f in fields(model) if "check" in f.metadata]
    for parameter in checked:
        for bad in (-1, "x"):
            asked = clone(model).set_params(**{parameter: bad})
            with pytest.raises(ValueError, match=f"^{parameter} must be ") as refusal:
                asked.fit(views, labels)
            assert str(refusal.value).endswith(f"; got {bad!r}")
            assert "\n" not in str(refusal.value)


# Just outside of what they may be.
OUTSIDE = [
    *((TURTLE, "inner_steps", 1.5), (TURTLE, "gamma", math.nan)),
    *((TURTLE, "learning_rate", 0.0), (TURTLE, "inner_learning_rate", math.inf)),
    *((TURTLE, "steps", 0), (TURTLE, "normalize", "unit"), (TEMI, "normalize", "l2")),
    *((TEMI, "heads", 0), (TEMI, "beta", 0.0), (TEMI, "temperature", math.nan)),
    *((TEMI, "momentum", 1.0), (TEMI, "head", "conv"), (SCAN, "normalize", "l2")),
    *((SCAN, "neighbours", 0), (ICCE, "rounds", 0), (ICCE, "kept", 0.0)),
    *((CPP, "batch_size", 1), (CPP, "readout_samples", C - 1), (CPP, "groups", 1.5)),
    *((CPP, "epsilon_squared", 0), (CPP, "temperature", 0.0), (CPP, "penalty", -0.1)),
    *((GMM, "covariance", "round"), (GMM, "dimension", 0), (Spectral, "neighbours", 1)),
]


@pytest.mark.parametrize(("method", "parameter", "value"), OUTSIDE)
def test_limits(method, parameter, value, data):
    message = rf"^{parameter} must be .*; got {re.escape(repr(value))}$"
    with pytest.raises(ValueError, match=message):
        method(C, **{parameter: value}).fit(data[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "least"),
    [
        (SCAN(10, random_state=0), 0.9),
        (TEMI(10, heads=4, random_state=0), 0.85),
        (TURTLE(10, steps=2000, random_state=0), 0.85),
    ],
    ids=lambda value: type(value).__name__,
)
def test_real_digits(model, least):
    """Six hand-made views of handwritten digits; k-means reaches about 0.8."""
    directory = os.environ.get("SAGL_DATA")
    if directory is None or not (Path(directory) / "handwritten").is_dir():
        pytest.skip("SAGL_DATA does not name a directory with the set handwritten")
    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    from data import load

    split = load(Path(directory), "handwritten")
    predicted = model.fit(split.train).predict(split.test)
    assert clustering_accuracy(split.test_labels, predicted) > least


def test_an_unfitted_model_says_so(data):
    with pytest.raises(ValueError, match="not fitted yet"):
        KMeans(C).predict(data[0])


class TestDamage:
    @pytest.fixture
    def saved(self, models, tmp_path):
        models["KMeans"].save(tmp_path)
        return tmp_path

    def test_another_class(self, saved):
        with pytest.raises(ValueError, match="holds a KMeans, not a MSRL"):
            MSRL.load(saved)

    def test_missing(self, tmp_path):
        with pytest.raises(ValueError, match="holds no model"):
            KMeans.load(tmp_path / "nowhere")

    def test_altered(self, saved):
        with (saved / "model.safetensors").open("ab") as file:
            file.write(b"x")
        with pytest.raises(ValueError, match="missing or damaged"):
            KMeans.load(saved)

    def test_not_json(self, saved):
        (saved / "method.json").write_text("{")
        with pytest.raises(ValueError, match="damaged: not a model's configuration"):
            KMeans.load(saved)

    def test_parameters_of_another_method(self, saved):
        config = json.loads((saved / "method.json").read_text())
        config["params"]["momentum"] = 0.5
        (saved / "method.json").write_text(json.dumps(config))
        with pytest.raises(ValueError, match=r"method\.json is damaged: .*momentum"):
            KMeans.load(saved)

    def test_from_the_future(self, saved):
        config = json.loads((saved / "method.json").read_text())
        (saved / "method.json").write_text(json.dumps({**config, "format": 99}))
        with pytest.raises(ValueError, match="format 99"):
            KMeans.load(saved)


def test_a_base_class_is_not_a_method():
    with pytest.raises(NotImplementedError):
        Baseline(2)._fit(None, None)
    with pytest.raises(NotImplementedError):
        Baseline(2)._scores([])


class TestKMeans:
    def test_is_scikit_learn_s_on_rows_of_length_one(self, data):
        from sklearn.cluster import KMeans as Theirs
        from sklearn.preprocessing import normalize

        views, _ = data
        joined = np.hstack([normalize(array) for _, array in views.items()])
        theirs = Theirs(C, n_init=10, random_state=0).fit(joined)
        ours = KMeans(C, random_state=0).fit(views)
        assert clustering_accuracy(theirs.labels_, ours.labels_) == 1
        distances = ((joined[:, None] - ours.state_["centres"].numpy()) ** 2).sum(2)
        assert np.array_equal(distances.argmin(axis=1), ours.labels_)

    def test_on_one_view(self, data):
        views, _ = data
        model = KMeans(C, view="narrow", random_state=0).fit(views)
        assert model.state_["centres"].shape == (C, 6)
        with pytest.raises(ValueError, match="no view 'x'; there are wide, narrow"):
            KMeans(C, view="x").fit(views)


class TestLinearProbe:
    def test_is_scikit_learn_s_on_standardised_features(self, data):
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        views, labels = data
        names = np.array(["ant", "bee", "cat", "dog"])[labels]
        x = np.hstack([array for _, array in views.items()]).astype(np.float64)
        theirs = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        theirs.fit(x, names)
        ours = LinearProbe(C).fit(views, names)
        assert ours.classes_[ours.labels_].tolist() == theirs.predict(x).tolist()
        np.testing.assert_allclose(
            ours.decision_function(views), theirs.decision_function(x), atol=1e-4
        )

    def test_two_classes(self):
        views, labels = clustered_views(n_clusters=2)
        model = LinearProbe(2).fit(views, labels)
        assert (model.labels_ == labels).mean() == 1

    def test_needs_labels(self, data):
        with pytest.raises(ValueError, match="needs the true labels"):
            LinearProbe(C).fit(data[0])
        with pytest.raises(ValueError, match="240 samples need as many labels, got 3"):
            LinearProbe(C).fit(data[0], [0, 1, 2])


class TestMSRL:
    def test_attention_is_additive_and_dense(self):
        """log q of a batch, sample by sample."""
        from sagl.baselines.msrl import _View

        view = _View(5, 3, torch.Generator().manual_seed(0)).double()
        h = torch.randn(7, 5, generator=torch.Generator().manual_seed(1)).double()
        with torch.no_grad():
            z = view.encoder(h)
            expected = torch.empty(7, 3, dtype=torch.float64)
            for i in range(7):
                e = torch.stack(
                    [(view.a @ z[i] + view.c @ z[j]).clamp(min=0) for j in range(7)]
                )
                weights = e.exp() / e.exp().sum()
                expected[i] = torch.log_softmax(weights @ z + z[i], dim=0)
            torch.testing.assert_close(view(h), expected)


def test_models_written_by_0_1_open():
    saved = Path(__file__).parents[1] / "data" / "kmeans-0.1"
    model = KMeans.load(saved)
    assert model.labels_.tolist() == [0, 0, 1, 0, 1, 1, 1, 1, 2, 2, 2, 2]
    points = {"a": 5 * np.eye(3, dtype=np.float32)}
    assert model.predict(points).tolist() == [1, 1, 0]
    assert model.get_params()["n_clusters"] == 3


@pytest.mark.parametrize("name", ALL)
def test_parameters_are_by_keyword_but_for_the_number_of_clusters(name):
    signature = inspect.signature(type(METHODS[name]()))
    first, *others = signature.parameters.values()
    assert first.name == "n_clusters"
    assert first.kind is first.POSITIONAL_OR_KEYWORD
    assert all(p.kind is p.KEYWORD_ONLY for p in others)


def test_the_example_for_contributors(data):
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    namespace = {}
    exec(compile(code, "CONTRIBUTING.md", "exec"), namespace)
    model = namespace["RandomProjection"](C, random_state=0)
    assert clone(model).fit_predict(data[0]).max() < C
