"""LaFTer: a classifier learned from texts, tuned on features or on pictures."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

from sagl import Views
from sagl.baselines.base import Watch
from sagl.baselines.lafter import LaFTer
from sagl.baselines.lafter_images import as_tensor, distorted, plain_crop, read_image
from sagl.nn.encoder import uniform_fan_in
from sagl.nn.inference import exact_matmul
from sagl.nn.neighbours import unit_rows
from sagl.training.sampler import epoch_batches
from tests.baselines.shared_space import (
    IMAGE_SIZE,
    WIDTH,
    patterns,
    plain_pixels,
    quiet_transformers,
    save_clip,
    save_pattern_clip,
    shared_space,
    unit,
)

C = 8


def lafter(T, **parameters):
    return LaFTer(len(T), text_encoder=T, **{"random_state": 0, **parameters})


def slow_step(W, x, labels, smoothing, rate, decay, moments):
    """One step of AdamW on smoothed cross-entropy, by loops and by hand."""
    gradient = np.zeros_like(W)
    for row, label in zip(x, labels, strict=True):
        scores = W @ row
        q = np.exp(scores - scores.max())
        q /= q.sum()
        target = np.full(len(W), smoothing / len(W))
        target[label] += 1 - smoothing
        gradient += np.outer(q - target, row) / len(x)
    first, second, t = moments
    t += 1
    first = 0.9 * first + 0.1 * gradient
    second = 0.999 * second + 0.001 * gradient**2
    mean, square = first / (1 - 0.9**t), second / (1 - 0.999**t)
    W = W * (1 - rate * decay) - rate * mean / (np.sqrt(square) + 1e-8)
    return W, (first, second, t)


def slow_lafter(T, X, text_steps, epochs, batch_size, rate, seed=0):
    """Both stages on features, with the random numbers that LaFTer draws."""
    width = T.shape[2]
    generator = torch.Generator().manual_seed(seed)
    W = uniform_fan_in((len(T), width), width, generator).double().numpy()
    texts = unit(T.reshape(-1, width).astype(float))
    classes = np.repeat(np.arange(len(T)), T.shape[1])
    moments = (np.zeros_like(W), np.zeros_like(W), 0)
    for _ in range(text_steps):
        noise = torch.randn(texts.shape, generator=generator).numpy()
        x = texts + 0.1 * noise
        W, moments = slow_step(W, x, classes, 0.1, rate, 0.01, moments)
    features = 10 * unit(X.astype(float))
    labels = (features @ W.T).argmax(axis=1)
    moments = (np.zeros_like(W), np.zeros_like(W), 0)
    for epoch in range(epochs):
        for rows in epoch_batches(len(X), batch_size, seed, epoch):
            x, y = features[rows], labels[rows]
            W, moments = slow_step(W, x, y, 0.1, rate, 0.01, moments)
    return W


@pytest.mark.parametrize(
    ("text_steps", "epochs", "rate"),
    [(1, 0, 5e-4), (3, 0, 5e-4), (2, 2, 5e-4), (2, 2, 0.3)],  # large: labels change
)
def test_both_stages_on_features_step_by_step(text_steps, epochs, rate):
    T, X, _ = shared_space(n=24, width=10, C=4, texts=3)
    settings = {"text_steps": text_steps, "epochs": epochs, "batch_size": 8}
    model = lafter(T, **settings, learning_rate=rate).fit(X)
    expected = slow_lafter(T, X, **settings, rate=rate)
    assert np.allclose(model.state_["W"], expected, atol=1e-5)
    assert np.array_equal(model.labels_, (unit(X) @ expected.T).argmax(axis=1))


class TestOnFeatures:
    @pytest.mark.parametrize("seed", range(4))
    def test_a_classifier_of_texts_classifies_images(self, seed):
        T, X, labels = shared_space(seed)
        model = lafter(T, epochs=0, random_state=seed).fit(X)
        assert (model.labels_ == labels).mean() > 0.75

    @pytest.mark.parametrize("seed", range(4))
    def test_tuning_helps(self, seed):
        """With more samples than columns, else it learns all of them by heart."""
        T, X, labels = shared_space(seed, C=10, width=64, n=1000, off=1.2, within=1.5)
        before = lafter(T, epochs=0, random_state=seed).fit(X)
        after = lafter(T, epochs=20, random_state=seed).fit(X)
        gain = (after.labels_ == labels).mean() - (before.labels_ == labels).mean()
        assert gain > 0.01

    def test_descriptions_are_used_beside_the_templates(self):
        asked = []

        def encode(texts):
            asked.extend(texts)
            return np.eye(len(texts), 128) + 0.1

        names = ["cat", "dog"]
        LaFTer(
            2,
            class_names=names,
            text_encoder=encode,
            templates=["a {}."],
            descriptions={"dog": ["It barks.", "It wags."], "cat": ["It purrs."]},
            text_steps=1,
            epochs=0,
        ).fit(shared_space()[1])
        assert asked == ["a cat.", "It purrs.", "a dog.", "It barks.", "It wags."]

    def test_without_descriptions_there_are_the_templates(self):
        model = LaFTer(2, class_names=["cat", "dog"], templates=["a {}.", "{}!"])
        assert model._texts() == [["a cat.", "cat!"], ["a dog.", "dog!"]]


class TestTheContract:
    T, X, labels = shared_space()
    SMALL = {"text_steps": 40, "epochs": 3}  # noqa: RUF012 - never changed

    @pytest.fixture
    def model(self):
        return lafter(self.T, **self.SMALL).fit(self.X)

    def test_the_seed_decides_alone(self, model):
        torch.manual_seed(3)
        again = lafter(self.T, **self.SMALL).fit(self.X, np.zeros(len(self.X)))
        assert again.state_["W"].equal(model.state_["W"])
        other = lafter(self.T, **self.SMALL, random_state=1).fit(self.X)
        assert not other.state_["W"].equal(model.state_["W"])

    def test_prediction_does_not_depend_on_company(self, model):
        together = model.decision_function(self.X)
        assert together.shape == (len(self.X), C)
        assert np.array_equal(model.decision_function(self.X[::-1])[::-1], together)
        for i in (0, 7, 300):
            alone = model.decision_function(self.X[i : i + 1])
            assert np.array_equal(alone[0], together[i])
        assert np.array_equal(model.predict(self.X), model.labels_)
        X, W = torch.from_numpy(self.X).double(), model.state_["W"].double()
        assert np.array_equal(exact_matmul(unit_rows(X), W.T), together)

    def test_save_and_load(self, model, tmp_path):
        model.save(tmp_path)
        again = LaFTer.load(tmp_path)
        assert np.array_equal(
            again.decision_function(self.X), model.decision_function(self.X)
        )
        assert np.array_equal(again.labels_, model.labels_)

    def test_other_views_are_ignored(self, model):
        views = Views({"other": self.X[:, :9], "clip": self.X})
        among = lafter(self.T, **self.SMALL).fit(views)
        assert among.state_["W"].equal(model.state_["W"])
        twice = Views({"first": self.X[::-1], "clip": self.X})
        named = lafter(self.T, **self.SMALL, view="clip").fit(twice)
        assert named.state_["W"].equal(model.state_["W"])
        with pytest.raises(ValueError, match="several views are as wide"):
            lafter(self.T, **self.SMALL).fit(twice)

    def test_a_watch_looks_at_both_stages_and_changes_nothing(self, model):
        watch = Watch(Views(self.X)[:50], looks=6)
        watched = lafter(self.T, **self.SMALL).fit(self.X, watch=watch)
        assert 2 <= len(watch.curve) <= 5
        assert all(labels.shape == (50,) for _, labels in watch.curve)
        assert not np.array_equal(watch.curve[0][1], model.labels_[:50])
        assert watched.state_["W"].equal(model.state_["W"])

    def test_is_a_scikit_learn_estimator(self):
        model = LaFTer(4, class_names=list("abcd"), text_encoder="some/clip", noise=0.2)
        assert clone(model).get_params() == model.get_params()

    def test_an_unfitted_model_says_so(self):
        with pytest.raises(ValueError, match="not fitted yet"):
            LaFTer(4).predict(self.X)

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            (
                {"text_steps": 0},
                "text_steps must be a whole number of at least 1; got 0",
            ),
            ({"epochs": -1}, "epochs must be a whole number of at least 0; got -1"),
            ({"batch_size": 0}, "batch_size must be a whole number of at least 1"),
            ({"noise": -0.1}, "noise must be at least 0"),
            ({"smoothing": 1.0}, "smoothing must be at least 0 and below 1"),
            ({"learning_rate": 0.0}, "learning_rate must be above 0"),
            ({"text_encoder": None}, "text_encoder is missing"),
            ({"text_encoder": len}, "class_names must be a list"),
            ({"view": "clip"}, "no view called 'clip' is as wide .* view0"),
            ({"image_encoder": "some/clip"}, r"needs both LaFTer\(image_encoder=...\)"),
            (
                {
                    "text_encoder": len,
                    "class_names": list("abcdefgh"),
                    "descriptions": {"a": ["it"], "b": []},
                },
                "descriptions has no list of texts for 'b'",
            ),
        ],
    )
    def test_says_what_is_wrong(self, parameters, message):
        with pytest.raises(ValueError, match=message):
            LaFTer(C, **{"text_encoder": self.T, **parameters}).fit(self.X)

    def test_images_without_an_encoder(self, model):
        images = np.zeros((len(self.X), 4, 4, 3), dtype=np.uint8)
        with pytest.raises(ValueError, match="needs both"):
            lafter(self.T).fit(self.X, images=images)
        with pytest.raises(ValueError, match="not tuned on images: leave out images="):
            model.predict(self.X, images=images)


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    """A directory with a random CLIP, and the model."""
    directory = tmp_path_factory.mktemp("models") / "clip"
    return directory, save_clip(directory)


def encoder_of(directory, width, n_prompts, generator=None):
    model = LaFTer(4, image_encoder=directory, device="cpu")
    return model._encoder(width, n_prompts, generator or torch.Generator())


def fresh(clip, n_prompts=5):
    generator = torch.Generator().manual_seed(0)
    return encoder_of(clip[0], 8, n_prompts, generator)


class TestPromptedEncoder:
    PIXELS = torch.randn(3, 3, 16, 16, generator=torch.Generator().manual_seed(0))

    def test_without_prompts_it_is_clip(self, clip):
        with torch.no_grad():
            theirs = clip[1].get_image_features(pixel_values=self.PIXELS)
            theirs = getattr(theirs, "pooler_output", theirs)
            ours = fresh(clip)(self.PIXELS, prompted=False)
        assert torch.allclose(ours, theirs, atol=1e-6)

    def test_prompts_stand_behind_the_class_token(self, clip):
        """The forward pass written out, with the tokens put in by hand."""
        encoder = fresh(clip)
        vision = clip[1].vision_model
        with torch.no_grad():
            tokens = vision.pre_layrnorm(vision.embeddings(self.PIXELS))
            expected = []
            for sample in tokens:
                h = torch.cat([sample[:1], encoder.prompts, sample[1:]])[None]
                for layer in vision.encoder.layers:
                    h = layer(h, attention_mask=None)
                    h = h[0] if isinstance(h, tuple) else h
                pooled = vision.post_layernorm(h[0, 0])
                expected.append(clip[1].visual_projection(pooled))
            output = encoder(self.PIXELS)
        assert torch.allclose(output, torch.stack(expected), atol=1e-5)
        assert not torch.allclose(output, encoder(self.PIXELS, prompted=False))

    def test_prompts_start_within_bounds(self, clip):
        bound = (6 / (3 * 8 * 8 + 16)) ** 0.5
        prompts = fresh(clip, n_prompts=500).prompts.detach()
        assert 0.99 * bound < float(prompts.abs().max()) <= bound
        assert abs(float(prompts.mean())) < 0.05 * bound

    def test_only_prompts_and_norms_learn(self, clip):
        encoder = fresh(clip)
        encoder(self.PIXELS).square().sum().backward()
        learning = {
            name for name, p in encoder.named_parameters() if p.grad is not None
        }
        assert "prompts" in learning
        norms = {name for name, _ in encoder.named_parameters() if "norm" in name}
        assert learning == {"prompts"} | norms
        assert len(norms) == 2 * (2 * 2 + 2)  # two per layer, one before, one after

    def test_another_width_is_refused(self, clip):
        with pytest.raises(
            ValueError, match="image features of width 8, the texts have"
        ):
            encoder_of(clip[0], 9, 5)

    def test_another_kind_of_model_is_refused(self, tmp_path):
        quiet_transformers().BertConfig().save_pretrained(tmp_path)
        with pytest.raises(ValueError, match="of kind 'bert'; needed is one of clip, "):
            encoder_of(tmp_path, 8, 5)

    def test_half_precision_is_read_as_float32(self, clip, tmp_path):
        clip[1].half().save_pretrained(tmp_path)
        clip[1].float()
        parameters = encoder_of(tmp_path, 8, 5).parameters()
        assert {p.dtype for p in parameters} == {torch.float32}


def test_it_learns_from_distorted_images_what_plain_ones_are(clip):
    arrays, _ = patterns(2, seed=0)
    encoder, images = fresh(clip), [read_image(array) for array in arrays]
    x, seen = encoder.distorted_and_plain(images, np.random.default_rng(3))
    random = np.random.default_rng(3)
    for row, image in enumerate(images):
        strong = as_tensor([distorted(image, 16, random)])
        assert torch.allclose(x[row], encoder(strong)[0], atol=1e-5)
        plain = encoder(as_tensor([plain_crop(image, 16)]), prompted=False)
        assert torch.allclose(seen[row], plain[0], atol=1e-5)
    assert x.requires_grad
    assert not seen.requires_grad


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """An encoder that knows clear patterns, and pale, noisy ones to tune it on."""
    directory = tmp_path_factory.mktemp("models") / "patterns"
    model, T = save_pattern_clip(directory)

    def features(images):
        with torch.no_grad():
            return model(pixel_values=plain_pixels(images)).image_embeds.numpy()

    images, labels = patterns(150, seed=0, contrast=0.4, noise=40)
    return str(directory), T, features, images, labels


def tune(scene, seed):
    directory, T, features, images, _ = scene
    model = lafter(
        T, image_encoder=directory, n_prompts=4, epochs=12, random_state=seed
    )
    return model.fit(features(images), images=images)


@pytest.fixture(scope="module")
def tuned(scene):
    return tune(scene, seed=0)


class TestOnPictures:
    @pytest.mark.parametrize("seed", [0, 1])
    def test_tuning_beats_the_frozen_encoder(self, scene, tuned, seed):
        _, T, features, images, labels = scene
        model = tuned if seed == 0 else tune(scene, seed)
        frozen = lafter(T, epochs=0, random_state=seed).fit(features(images))
        test, truth = patterns(90, seed=1, contrast=0.4, noise=40)
        before = (frozen.predict(features(test)) == truth).mean()
        after = (model.predict(features(test), images=test) == truth).mean()
        assert after > max(before + 0.05, 0.75)
        assert (model.labels_ == labels).mean() > (frozen.labels_ == labels).mean()

    def test_prompts_norms_and_classifier_have_moved(self, scene, tuned):
        directory = scene[0]
        generator = torch.Generator().manual_seed(0)
        uniform_fan_in((3, WIDTH), WIDTH, generator)  # what the classifier draws
        start = encoder_of(directory, WIDTH, 4, generator).tunable()
        assert tuned.state_.keys() == {"W", *start}
        for name, tensor in start.items():
            assert not torch.equal(tensor, tuned.state_[name]), name
        # It began where the generator put it: 36 steps do not lead far away.
        assert (start["prompts"] - tuned.state_["prompts"]).abs().max() < 0.05

    def test_prediction_does_not_depend_on_company(self, scene, tuned):
        _, _, features, images, _ = scene
        few = images[:9]
        X = features(few)
        together = tuned.decision_function(X, images=few)
        backwards = tuned.decision_function(X[::-1], images=few[::-1])
        assert np.array_equal(backwards[::-1], together)
        alone = tuned.decision_function(X[4:5], images=few[4:5])
        assert np.array_equal(alone[0], together[4])
        assert np.array_equal(together.argmax(axis=1), tuned.labels_[:9])

    def test_save_and_load(self, scene, tuned, tmp_path):
        _, _, features, images, _ = scene
        X, few = features(images[:9]), images[:9]
        tuned.save(tmp_path)
        again = LaFTer.load(tmp_path)
        assert np.array_equal(
            again.decision_function(X, images=few),
            tuned.decision_function(X, images=few),
        )
        again.set_params(image_encoder=None)
        with pytest.raises(ValueError, match=r"set_params\(image_encoder=...\)"):
            again.predict(X, images=few)

    def test_files_and_the_seed(self, scene, tmp_path):
        Image = pytest.importorskip("PIL.Image")
        directory, T, features, images, _ = scene
        few, X = images[:12], features(images[:12])
        paths = [tmp_path / f"{i}.png" for i in range(12)]
        for path, image in zip(paths, few, strict=True):
            Image.fromarray(image).save(path)
        small = {"image_encoder": directory, "n_prompts": 2, "epochs": 1}
        first = lafter(T, **small, text_steps=5).fit(X, images=few)
        again = lafter(T, **small, text_steps=5).fit(X, images=paths)
        other = lafter(T, **small, text_steps=5, random_state=1).fit(X, images=few)
        assert first.state_.keys() == again.state_.keys()
        assert all(t.equal(again.state_[name]) for name, t in first.state_.items())
        assert not first.state_["prompts"].equal(other.state_["prompts"])

    def test_says_what_is_wrong(self, scene, tuned):
        directory, T, features, images, _ = scene
        X = features(images[:9])
        with pytest.raises(ValueError, match="was tuned on images: give images="):
            tuned.predict(X)
        with pytest.raises(ValueError, match="9 samples need as many images; got 8"):
            tuned.predict(X, images=images[:8])
        model = lafter(T, image_encoder=directory)
        with pytest.raises(ValueError, match="9 samples need as many images; got 150"):
            model.fit(X, images=images)
        with pytest.raises(ValueError, match="a watch has no images"):
            model.fit(X, images=images[:9], watch=Watch(Views(X)))
        with pytest.raises(
            ValueError, match="epochs must be a whole number of at least 1; got 0"
        ):
            lafter(T, image_encoder=directory, epochs=0).fit(X, images=images[:9])

    def test_the_size_is_that_of_the_encoder(self, scene):
        assert encoder_of(scene[0], WIDTH, 2).size == IMAGE_SIZE
