"""Zero-shot transfer: the class whose prompts are nearest."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from sagl import Views
from sagl.baselines.base import Watch
from sagl.baselines.features import unit_rows
from sagl.baselines.prompts import fill
from sagl.baselines.zero_shot import ZeroShot
from sagl.nn.inference import exact_matmul
from tests.baselines.shared_space import save_clip, shared_space

NAMES = ["house_cat", "dog", "tree frog", "owl"]


def spelled(texts):
    """A text encoder of sorts: how often each letter occurs."""
    return np.array(
        [[text.count(c) + 1 for c in "abcdefghijklmnoprstuw"] for text in texts]
    )


def some_features(n=40, width=21, seed=0):
    return np.random.default_rng(seed).normal(size=(n, width)).astype(np.float32)


@settings(max_examples=25)
@given(st.integers(2, 6), st.integers(1, 3), st.integers(2, 40), st.integers(0, 99))
def test_scores_are_cosines_with_the_mean_of_the_prompts(C, m, width, seed):
    random = np.random.default_rng(seed)
    T, X = random.normal(size=(C, m, width)), random.normal(size=(C + 5, width))
    model = ZeroShot(C, text_encoder=T, temperature=0.5).fit(X)
    scores = model.decision_function(X)
    for i, x in enumerate(X):
        for c in range(C):
            mean = sum(t / np.linalg.norm(t) for t in T[c]) / m
            cosine = x @ mean / np.linalg.norm(x) / np.linalg.norm(mean)
            assert abs(scores[i, c] - cosine / 0.5) < 1e-4
    assert np.array_equal(model.labels_, scores.argmax(axis=1))


@pytest.mark.parametrize("seed", range(4))
def test_finds_the_classes_of_a_shared_space(seed):
    """Numbers are those of the classes: nothing has to be matched."""
    T, X, labels = shared_space(seed)
    found = ZeroShot(len(T), text_encoder=T).fit(X).labels_
    assert (found == labels).mean() > 0.9
    swapped = ZeroShot(len(T), text_encoder=T[::-1]).fit(X).labels_
    assert np.array_equal(swapped, len(T) - 1 - found)


def test_several_prompts_are_better_than_one():
    """Each text is far off its class; their mean is not."""
    T, X, labels = shared_space(0, texts=12)
    noise = np.random.default_rng(0).normal(size=T.shape) * 0.25
    T = T + noise
    many = (ZeroShot(8, text_encoder=T).fit(X).labels_ == labels).mean()
    one = (ZeroShot(8, text_encoder=T[:, 0]).fit(X).labels_ == labels).mean()
    assert many > one + 0.1


def test_prompts_are_made_from_names_and_templates():
    X = some_features()
    asked = []

    def encode(texts):
        asked.extend(texts)
        return spelled(texts)

    ours = ZeroShot(4, class_names=NAMES, text_encoder=encode, templates="pets").fit(X)
    prompts = fill("pets", NAMES)
    assert asked == [text for of_class in prompts for text in of_class]
    assert any("house cat" in text for text in asked)
    ready = np.stack([spelled(of_class) for of_class in prompts])
    theirs = ZeroShot(4, text_encoder=ready).fit(X)
    assert np.array_equal(ours.decision_function(X), theirs.decision_function(X))
    other = ZeroShot(4, class_names=NAMES, text_encoder=spelled, templates=["{}"]).fit(
        X
    )
    assert not np.array_equal(ours.decision_function(X), other.decision_function(X))


def test_a_clip_directory(tmp_path):
    save_clip(tmp_path)
    X = some_features(width=8)
    model = ZeroShot(4, class_names=NAMES, text_encoder=tmp_path).fit(X)
    assert model.state_["W"].shape == (4, 8)
    assert len(np.unique(model.decision_function(X)[0])) == 4


class TestViews:
    T, X, labels = shared_space()
    OTHER = some_features(len(X), 7)

    def test_the_view_of_the_same_width_is_found(self):
        alone = ZeroShot(8, text_encoder=self.T).fit(self.X)
        views = {"other": self.OTHER, "clip": self.X, "more": self.OTHER[:, :5]}
        model = ZeroShot(8, text_encoder=self.T).fit(views)
        assert np.array_equal(
            model.decision_function(views), alone.decision_function(self.X)
        )

    def test_a_view_by_name(self):
        views = Views({"noise": some_features(len(self.X), 128), "clip": self.X})
        model = ZeroShot(8, text_encoder=self.T, view="clip").fit(views)
        assert (model.labels_ == self.labels).mean() > 0.9
        with pytest.raises(ValueError, match="several views are as wide"):
            ZeroShot(8, text_encoder=self.T).fit(views)

    def test_no_view_of_the_width(self):
        with pytest.raises(ValueError, match=r"no view is as wide .* \(128\)"):
            ZeroShot(8, text_encoder=self.T).fit(self.OTHER)


class TestTheContract:
    T, X, labels = shared_space()

    @pytest.fixture
    def model(self):
        return ZeroShot(8, text_encoder=self.T).fit({"clip": self.X})

    def test_prediction_does_not_depend_on_company(self, model):
        together = model.decision_function({"clip": self.X})
        backwards = model.decision_function({"clip": self.X[::-1]})
        assert np.array_equal(backwards[::-1], together)
        for i in (0, 7, 300):
            alone = model.decision_function({"clip": self.X[i : i + 1]})
            assert np.array_equal(alone[0], together[i])
        assert np.array_equal(model.predict({"clip": self.X}), model.labels_)
        X, W = torch.from_numpy(self.X).double(), model.state_["W"]
        exact = exact_matmul(unit_rows(X), W.T) / model.temperature
        assert np.array_equal(exact, together)

    def test_save_and_load(self, model, tmp_path):
        model.save(tmp_path)
        again = ZeroShot.load(tmp_path)
        X = {"clip": self.X}
        assert np.array_equal(again.decision_function(X), model.decision_function(X))
        assert np.array_equal(again.labels_, model.labels_)

    def test_nothing_is_learned_from_samples_labels_or_seeds(self, model):
        few = ZeroShot(8, text_encoder=self.T, random_state=5)
        few.fit({"clip": self.X[:20]}, np.zeros(20), watch=Watch(Views(self.X)))
        assert few.state_["W"].equal(model.state_["W"])

    def test_is_a_scikit_learn_estimator(self):
        model = ZeroShot(4, class_names=NAMES, text_encoder="some/clip", view="clip")
        assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"text_encoder": spelled}, "class_names is missing"),
        ({"text_encoder": spelled, "class_names": ["cat"]}, "4 clusters need as many"),
        ({"class_names": NAMES}, "text_encoder is missing"),
        (
            {"class_names": NAMES, "text_encoder": spelled, "templates": "fish"},
            "no templates 'fish'",
        ),
        (
            {"text_encoder": np.eye(4, 21), "temperature": 0},
            "temperature must be above",
        ),
    ],
)
def test_says_what_is_wrong(parameters, message):
    with pytest.raises(ValueError, match=message):
        ZeroShot(4, **parameters).fit(some_features())
