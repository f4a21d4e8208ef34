"""Numbers at their limits: finite results and valid labels, or a clear refusal."""

import warnings
from collections import Counter

import numpy as np
import pytest

from sagl import SAGL
from sagl.search.config import SearchConfig

QUICK = SearchConfig(starts=1, proposals=2, steps=10)
RECIPES = ["default", "paper", "released", "network"]


def blobs(n=60, n_clusters=4, widths=(6, 5), seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % n_clusters
    return {
        f"{i}": rng.normal(size=(n_clusters, d))[labels] * 3 + rng.normal(size=(n, d))
        for i, d in enumerate(widths)
    }


def scaled(*factors):
    views = blobs()
    return {name: x * s for (name, x), s in zip(views.items(), factors, strict=True)}


def fitted(views, n_clusters=4, **params):
    """A quick fit whose results are looked at."""
    model = SAGL(n_clusters, steps=3, search=QUICK, random_state=0, **params)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(views)
        q = model.predict_proba(views)
        p = model.transform(views)
        graphs = model.attention_graph(views)
    repeated = [
        text for text, n in Counter(str(w.message) for w in caught).items() if n > 1
    ]
    assert not repeated
    assert not [w for w in caught if issubclass(w.category, RuntimeWarning)]
    n = len(next(iter(views.values())))
    assert q.shape == (n, n_clusters)
    assert np.isfinite(q).all()
    assert np.isfinite(p).all()
    assert all(np.isfinite(graph.data).all() for graph in graphs)
    np.testing.assert_allclose(q.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(model.labels_, q.argmax(axis=1))
    assert model.labels_.min() >= 0
    assert np.isfinite(model.confidence_).all()
    assert all(np.isfinite(record["loss"]) for record in model.history_)
    return model


def one_hot(n=60, width=12):
    return np.eye(width, dtype=np.float32)[np.arange(n) % width]


def float16_at_its_end():
    x = blobs()["0"]
    return {"0": (x / np.abs(x).max() * 65_504).astype(np.float16), "1": blobs()["1"]}


def with_constant_columns():
    x = blobs()["0"].copy()
    x[:, 2], x[:, 4] = 7.0, 0.0
    return {"0": x, "1": blobs()["1"]}


CASES = {
    "two rows of which there are many": lambda: {
        name: x[np.arange(60) % 2] for name, x in blobs().items()
    },
    "all rows but one": lambda: {
        name: x[np.minimum(np.arange(60), 1)] for name, x in blobs().items()
    },
    "1e-30": lambda: scaled(1e-30, 1e-30),
    "1e-20": lambda: scaled(1e-20, 1e-20),
    "1e20": lambda: scaled(1e20, 1e20),
    "1e30": lambda: scaled(1e30, 1e30),
    "1e-30 beside 1e30": lambda: scaled(1e-30, 1e30),
    "far from zero": lambda: {name: x + 1e6 for name, x in blobs().items()},
    "float16 at its end": float16_at_its_end,
    "one-hot": lambda: {"0": one_hot(), "1": one_hot(width=5)},
    "one column": lambda: blobs(widths=(1,)),
    "one column each": lambda: blobs(widths=(1, 1)),
    "constant columns": with_constant_columns,
    "booleans": lambda: {"0": one_hot() > 0, "1": blobs()["1"]},
}


@pytest.mark.parametrize("recipe", ["default", "network"])
@pytest.mark.parametrize("case", CASES)
def test_views(case, recipe):
    fitted(CASES[case](), recipe=recipe)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize(
    ("n", "n_clusters"), [(60, 2), (20, 20), (5, 5), (2, 2), (7, 3)]
)
def test_few_samples_and_many_clusters(n, n_clusters, recipe):
    fitted(blobs(n, min(n_clusters, 4)), n_clusters, recipe=recipe)


@pytest.mark.parametrize("recipe", ["paper", "released"])
@pytest.mark.parametrize("case", ["1e-30", "1e30", "1e-30 beside 1e30"])
def test_recipes_that_take_features_as_they_are(case, recipe):
    """On such scales the paper's network may diverge, which it says."""
    said = "try a smaller learning_rate"
    try:
        fitted(CASES[case](), recipe=recipe)
    except FloatingPointError as error:
        said = str(error)
    assert "try a smaller learning_rate" in said


def test_many_columns():
    fitted(blobs(widths=(20_000, 3)))


def test_many_clusters():
    fitted(blobs(1_000, 500), 500)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e39])
def test_what_no_float32_holds_is_refused(value):
    views = blobs()
    views["1"][3, 2] = value
    with pytest.raises(ValueError, match=r"view '1' holds .* row 3, column 2"):
        SAGL(4).fit(views)


def test_views_without_any_difference_are_refused():
    with pytest.raises(ValueError, match="constant"):
        SAGL(4).fit({"0": np.full((60, 3), 1e30), "1": blobs()["1"]})
