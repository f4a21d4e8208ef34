"""Zero-shot transfer: the class whose prompts are nearest."""

from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from sagl import Views
from sagl.baselines import zero_shot as text
from sagl.baselines.base import Watch
from sagl.baselines.zero_shot import TEMPLATES, ZeroShot, fill
from sagl.nn.inference import exact_matmul
from sagl.nn.neighbours import unit_rows
from tests.baselines.shared_space import (
    quiet_transformers,
    save_clip,
    seeded,
    shared_space,
)

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
    predicted = ZeroShot(len(T), text_encoder=T).fit(X).labels_
    assert (predicted == labels).mean() > 0.9
    swapped = ZeroShot(len(T), text_encoder=T[::-1]).fit(X).labels_
    assert np.array_equal(swapped, len(T) - 1 - predicted)


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
        ({"text_encoder": spelled}, "class_names must be a list"),
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


CPU = torch.device("cpu")
PROMPTS = [["a photo of a cat.", "the cat."], ["a photo of a dog.", "the dog."]]


class TestPrompts:
    @given(
        st.sampled_from(sorted(TEMPLATES)), st.lists(st.text(min_size=1), min_size=1)
    )
    def test_each_template_holds_each_name_once(self, kind, names):
        prompts = fill(kind, names)
        assert len(prompts) == len(names)
        for name, of_class in zip(names, prompts, strict=True):
            readable = " ".join(name.replace("_", " ").split())
            expected = [
                t.split("{}")[0] + readable + t.split("{}")[1] for t in TEMPLATES[kind]
            ]
            assert of_class == expected

    def test_the_sets_are_usable(self):
        for kind, templates in TEMPLATES.items():
            assert len(set(templates)) == len(templates), kind
            assert all(t.count("{}") == 1 for t in templates), kind

    @pytest.mark.parametrize(
        ("templates", "message"),
        [
            ("fish", "no templates 'fish'; there are generic, "),
            ([], "templates is empty"),
            (["a photo"], r"template 'a photo' has no \{\}"),
        ],
    )
    def test_refuses_other_templates(self, templates, message):
        with pytest.raises(ValueError, match=message):
            fill(templates, ["cat"])

    @pytest.mark.parametrize(
        ("names", "message"),
        [
            (None, "class_names must be a list of the name of every class"),
            ("ab", "must be a list of .*; got 'ab'"),
            (["cat", " "], "must be a list of the name of every class"),
            (["cat", 3], "must be a list of the name of every class"),
            (["cat"], "2 clusters need as many class_names; got 1"),
        ],
    )
    def test_refuses_other_names(self, names, message):
        with pytest.raises(ValueError, match=message):
            ZeroShot(2, class_names=names, text_encoder=spelled).fit(some_features())


class TestTheViewOfTheSameSpace:
    """Of three views, the one whose features are those of the texts, 5 wide."""

    def find(self, view, widths):
        names = ("dino", "clip", "siglip")
        views = {n: some_features(9, w) for n, w in zip(names, widths, strict=True)}
        texts = np.random.default_rng(0).normal(size=(2, 5))
        model = ZeroShot(2, text_encoder=texts, view=view).fit(views)
        assert model.predict(views).shape == (9,)
        return model._shared_view(5)

    def test_the_only_one_of_the_width(self):
        assert self.find(None, (3, 5, 4)) == 1

    def test_by_name(self):
        assert self.find("siglip", (5, 5, 5)) == 2

    @pytest.mark.parametrize(
        ("view", "widths", "message"),
        [
            (None, (5, 5, 4), r"several views are as wide .* \(5\).* view="),
            (None, (3, 2, 4), r"no view is as wide .*dino \(3\), clip \(2\)"),
            ("clap", (5, 5, 5), r"no view called 'clap' is .* there are dino \(5\)"),
            ("dino", (3, 5, 5), r"no view called 'dino' is .* \(5\).* dino \(3\)"),
        ],
    )
    def test_says_what_is_wrong(self, view, widths, message):
        with pytest.raises(ValueError, match=message):
            self.find(view, widths)


class Texts(NamedTuple):
    embeddings: torch.Tensor
    classes: torch.Tensor


def embed_classes(encoder, texts, C):
    """What a model makes of given texts of each class."""
    model = ZeroShot(C, text_encoder=encoder)
    model.device_, model._texts = CPU, texts
    return Texts(*model._embed())


class TestEmbedding:
    def test_a_function(self):
        asked = []

        def encode(texts):
            asked.extend(texts)
            return np.arange(1, 1 + 3 * len(texts)).reshape(-1, 3)

        uneven = [["a", "b", "c"], ["d"]]
        texts = embed_classes(encode, lambda: uneven, 2)
        assert asked == ["a", "b", "c", "d"]
        assert texts.classes.tolist() == [0, 0, 0, 1]
        rows = np.arange(1, 13).reshape(4, 3)
        expected = rows / np.sqrt((rows**2).sum(axis=1, keepdims=True))
        assert np.allclose(texts.embeddings, expected)

    def test_an_array_with_one_text_per_class(self):
        rows = [[3.0, 4.0], [0.0, 2.0]]  # also as a list, as a loaded model has it
        for given_as in (rows, np.array(rows), torch.tensor(rows, requires_grad=True)):
            texts = embed_classes(given_as, pytest.fail, 2)
            assert np.allclose(texts.embeddings, [[0.6, 0.8], [0, 1]])
            assert texts.classes.tolist() == [0, 1]

    @pytest.mark.parametrize(
        ("encoder", "message"),
        [
            (None, "text_encoder is missing"),
            (np.ones((3, 4)), r"array of shape \(3, 4\); expected \(2, width\)"),
            (np.ones(2), r"array of shape \(2,\)"),
            (np.array([[1, np.nan], [1, 2]]), "zero, infinite or not numbers"),
            (np.array([[0, 0], [1, 2]]), "zero, infinite or not numbers"),
            (np.ones((2, 4)), "all equal"),
            (lambda texts: np.ones((3, 4)), r"shape \(3, 4\); expected \(4, width\)"),
            (lambda texts: np.ones(4), r"shape \(4,\); expected \(4, width\)"),
        ],
    )
    def test_says_what_is_wrong(self, encoder, message):
        with pytest.raises(ValueError, match=message):
            embed_classes(encoder, lambda: PROMPTS, 2)


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    """A directory with a random CLIP, and the model."""
    directory = tmp_path_factory.mktemp("models") / "clip"
    return directory, save_clip(directory)


class TestTransformers:
    def test_the_embeddings_of_clip(self, clip, monkeypatch):
        directory, model = clip
        flat = [t for of_class in PROMPTS for t in of_class]
        tokenizer = quiet_transformers().CLIPTokenizer.from_pretrained(directory)
        tokens = tokenizer(flat, padding=True, return_tensors="pt")
        with torch.no_grad():
            theirs = model.get_text_features(**tokens)
        theirs = getattr(theirs, "pooler_output", theirs)
        expected = theirs / theirs.norm(dim=1, keepdim=True)
        state = torch.random.get_rng_state()
        for batch in (256, 3):
            monkeypatch.setattr(text, "_BATCH", batch)
            ours = embed_classes(str(directory), lambda: PROMPTS, 2)
            assert torch.allclose(ours.embeddings, expected, atol=1e-6)
            assert ours.classes.tolist() == [0, 0, 1, 1]
        assert torch.equal(torch.random.get_rng_state(), state)

    def test_long_texts_are_cut(self, clip):
        long = "cat " * 100
        ours = embed_classes(clip[0], lambda: [[long], [long + "dog"], ["dog"]], 3)
        first, second, other = ours.embeddings
        assert torch.allclose(first, second)
        assert not torch.allclose(first, other)

    def test_siglip_reads_lower_case_of_fixed_length(self, tmp_path):
        transformers = quiet_transformers()
        tokenizers = pytest.importorskip("tokenizers")
        vocabulary = {"<pad>": 0, "<unk>": 1}
        vocabulary |= {c: 2 + i for i, c in enumerate(" abcdefghijklmnopqrstuvwxyz")}
        by_letter = tokenizers.Tokenizer(
            tokenizers.models.WordLevel(vocabulary, unk_token="<unk>")
        )
        by_letter.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_object=by_letter, pad_token="<pad>", unk_token="<unk>"
        )
        small = {
            "hidden_size": 16,
            "intermediate_size": 32,
            "num_attention_heads": 2,
            "num_hidden_layers": 1,
        }
        config = transformers.SiglipConfig(
            text_config={**small, "vocab_size": 40, "max_position_embeddings": 12},
            vision_config={**small, "image_size": 16, "patch_size": 8},
        )
        model = seeded(lambda: transformers.SiglipModel(config)).eval()
        model.save_pretrained(tmp_path)
        tokenizer.save_pretrained(tmp_path)
        ours = embed_classes(tmp_path, lambda: [["A Cat"], ["dog"]], 2)
        ids = torch.zeros(2, 12, dtype=torch.long)  # 0 fills up
        for row, word in enumerate(("a cat", "dog")):
            for column, letter in enumerate(word):
                ids[row, column] = vocabulary[letter]
        with torch.no_grad():
            theirs = model.get_text_features(input_ids=ids)
        theirs = getattr(theirs, "pooler_output", theirs)
        expected = theirs / theirs.norm(dim=1, keepdim=True)
        assert torch.allclose(ours.embeddings, expected, atol=1e-6)

    def test_texts_alone(self, clip, tmp_path):
        """A model without images, and without the projection into their space."""
        clip[1].text_model.save_pretrained(tmp_path)
        tokenizer = quiet_transformers().CLIPTokenizer.from_pretrained(clip[0])
        tokenizer.save_pretrained(tmp_path)
        ours = embed_classes(tmp_path, lambda: PROMPTS, 2)
        assert ours.embeddings.shape == (4, 16)  # not the 8 of the shared space

    def test_no_such_directory(self, tmp_path):
        quiet_transformers()
        for missing in (tmp_path / "nothing", str(tmp_path / "nothing"), "./nothing"):
            with pytest.raises(ValueError, match="nothing: no such directory; give"):
                embed_classes(missing, lambda: PROMPTS, 2)
