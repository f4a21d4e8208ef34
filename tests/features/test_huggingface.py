"""Real kinds of models, tiny, read from a directory as a user would."""

import copy
import json
import pickle
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sagl.features.backbones import load_backbone
from sagl.features.huggingface import load_huggingface, pool_tokens, process_dinov3
from tests.baselines.shared_space import quiet_transformers, seeded
from tests.features.models import (
    DINOV3_PICTURES,
    SAVE,
    SMALL,
    TEXTS,
    pictures,
    processor,
    save_bert,
    sentence_files,
    tokenizer,
)

VISION = ["dinov3", "dinov2", "siglip", "siglip2", "clip", "convnextv2"]
POOLING = {
    **dict.fromkeys(("dinov3", "dinov2", "convnextv2"), "pooler"),
    **dict.fromkeys(("siglip", "siglip2", "clip"), "projection"),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A directory with each kind of model, and the model; made when asked for."""
    root, made = tmp_path_factory.mktemp("models"), {}

    def get(kind):
        if kind not in made:
            directory = root / kind
            directory.mkdir()
            made[kind] = directory, SAVE[kind](directory)
        return made[kind]

    return get


def load(directory, side=""):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_backbone(f"hf:{directory}{side}", device="cpu")


def embed(backbone, samples):
    return backbone.embed([backbone.prepare(sample) for sample in samples])


def by_hand(kind, directory, model, samples):
    """Features as the documentation of transformers says to get them."""
    transformers = quiet_transformers()
    if kind == "dinov3":  # its processor needs torchvision; see TestDINOv3
        settings = json.loads((directory / "preprocessor_config.json").read_text())
        made = [process_dinov3(settings, sample) for sample in samples]
        inputs = {"pixel_values": torch.stack([m["pixel_values"] for m in made])}
    else:
        own = transformers.AutoImageProcessor.from_pretrained(directory)
        inputs = own(images=samples, return_tensors="pt")
    with torch.no_grad():
        if kind in ("clip", "siglip", "siglip2"):
            return model.get_image_features(**inputs).pooler_output
        if kind == "convnextv2":
            return model.convnextv2(**inputs).pooler_output
        return model(**inputs).pooler_output


class TestPictures:
    @pytest.mark.parametrize("kind", VISION)
    def test_features_are_those_of_the_model(self, saved, kind):
        directory, model = saved(kind)
        backbone = load(directory)
        samples = pictures(4)
        features = embed(backbone, samples)
        expected = by_hand(kind, directory, model, samples)
        assert features.dtype == torch.float32
        assert features.shape == (4, backbone.dim)
        assert torch.allclose(features, expected, atol=1e-5)
        assert not torch.allclose(features[0], features[1], atol=1e-5)
        assert (backbone.kind, backbone.describe()["pooling"]) == (
            "image",
            POOLING[kind],
        )

    @pytest.mark.parametrize("kind", VISION)
    def test_preprocessing_is_the_processors(self, saved, kind):
        if kind == "dinov3":
            pytest.skip("transformers has its processor for torchvision alone")
        directory, _ = saved(kind)
        own = quiet_transformers().AutoImageProcessor.from_pretrained(directory)
        picture = pictures(1)[0]
        expected = own(images=picture, return_tensors="pt")
        prepared = load(directory).prepare(picture)
        assert set(prepared) == set(own.model_input_names)
        for key, value in prepared.items():
            assert torch.equal(value, expected[key][0])

    @pytest.mark.parametrize("kind", VISION)
    def test_company_does_not_matter(self, saved, kind):
        backbone = load(saved(kind)[0])
        samples = pictures(5)
        together = embed(backbone, samples)
        assert torch.equal(together, embed(backbone, samples))
        for i, sample in enumerate(samples):
            assert torch.allclose(embed(backbone, [sample])[0], together[i], atol=1e-5)

    def test_pictures_that_keep_their_size(self, tmp_path):
        """A processor that does not resize: no batch, but features."""
        transformers = quiet_transformers()
        config = transformers.Dinov2Config(**SMALL, image_size=28, patch_size=14)
        seeded(lambda: transformers.Dinov2Model(config)).save_pretrained(tmp_path)
        processor("Bit", do_resize=False, do_center_crop=False)(tmp_path)
        backbone = load(tmp_path)
        samples = pictures(3)
        together = embed(backbone, samples)
        for i, sample in enumerate(samples):
            assert torch.equal(embed(backbone, [sample])[0], together[i])

    def test_a_vision_tower_alone(self, saved, tmp_path):
        """Saved with its projection, the features are those of the whole CLIP."""
        transformers = quiet_transformers()
        directory, _ = saved("clip")
        tower = transformers.CLIPVisionModelWithProjection.from_pretrained(directory)
        tower.save_pretrained(tmp_path)
        shutil.copy(directory / "preprocessor_config.json", tmp_path)
        features = embed(load(tmp_path), pictures())
        assert torch.allclose(features, embed(load(directory), pictures()), atol=1e-6)

    def test_an_untrained_pooler_is_not_used(self, tmp_path):
        """Classifiers are saved without a pooler: the class token serves."""
        transformers = quiet_transformers()
        config = transformers.ViTConfig(**SMALL, image_size=16, patch_size=8)
        model = seeded(lambda: transformers.ViTForImageClassification(config)).eval()
        model.save_pretrained(tmp_path)
        processor("ViT", size={"height": 16, "width": 16})(tmp_path)
        with pytest.warns(UserWarning, match=r"trained with labels \(2 classes\)"):
            backbone = load_backbone(f"hf:{tmp_path}", device="cpu")
        assert backbone.describe()["pooling"] == "cls"
        prepared = [backbone.prepare(p) for p in pictures()]
        pixels = torch.stack([p["pixel_values"] for p in prepared])
        with torch.no_grad():
            expected = model.vit(pixel_values=pixels).last_hidden_state[:, 0]
        assert torch.allclose(backbone.embed(prepared), expected, atol=1e-6)


@pytest.mark.parametrize(("resample", "method"), [(2, "BILINEAR"), (3, "BICUBIC")])
@pytest.mark.parametrize("size", [(12, 20), (32, 32), (64, 48)])
def test_dinov3_resizes_in_floating_point(resample, method, size):
    """Pillow resizes single channels of floats by the same smooth filters."""
    Image = pytest.importorskip("PIL.Image")
    settings = {
        **DINOV3_PICTURES,
        "resample": resample,
        "size": {"height": size[0], "width": size[1]},
    }
    picture = pictures(1, size=(37, 51))[0]
    pixels = process_dinov3(settings, picture)["pixel_values"].numpy()
    assert pixels.shape == (3, *size)
    for channel in range(3):
        values = np.asarray(picture)[..., channel].astype(np.float32) / 255
        whole = Image.fromarray(values, mode="F")
        expected = np.asarray(
            whole.resize((size[1], size[0]), getattr(Image.Resampling, method))
        )
        mean = DINOV3_PICTURES["image_mean"][channel]
        deviation = DINOV3_PICTURES["image_std"][channel]
        # torch's cubic has another parameter than Pillow's, unless it is antialiased
        assert np.allclose(pixels[channel], (expected - mean) / deviation, atol=2e-4)


@pytest.mark.parametrize(
    "change",
    [
        {"size": {"shortest_edge": 224}},
        {"do_center_crop": True},
        {"do_normalize": False},
        {"resample": 1},
    ],
)
def test_dinov3_refuses_what_it_does_not_do(saved, tmp_path, change):
    directory = copied(saved, "dinov3", tmp_path)
    changed = json.dumps({**DINOV3_PICTURES, **change})
    (directory / "preprocessor_config.json").write_text(changed)
    assert "pictures are prepared by {" in refusal(f"hf:{directory}")


class TestTexts:
    @pytest.mark.parametrize("pooling", ["mean_tokens", "cls_token", "max_tokens"])
    def test_sentence_encoders(self, tmp_path, pooling):
        model = save_bert(tmp_path)
        sentence_files(tmp_path, pooling, longest=16)
        backbone = load(tmp_path)
        own = quiet_transformers().AutoTokenizer.from_pretrained(tmp_path)
        for i, row in enumerate(embed(backbone, TEXTS)):
            one = own(TEXTS[i], truncation=True, max_length=16, return_tensors="pt")
            with torch.no_grad():
                states = model(**one).last_hidden_state[0]
            expected = {
                "mean_tokens": states.mean(dim=0),
                "cls_token": states[0],
                "max_tokens": states.max(dim=0).values,
            }[pooling]
            assert torch.allclose(row, expected, atol=1e-5)

    def test_mean_pooling_where_nothing_is_said(self, saved):
        directory, model = saved("bert")
        backbone = load(directory)
        assert (backbone.kind, backbone.dim) == ("text", 16)
        assert backbone.describe()["pooling"] == "mean"
        own = quiet_transformers().AutoTokenizer.from_pretrained(directory)
        with torch.no_grad():
            states = model(**own(TEXTS[0], return_tensors="pt")).last_hidden_state[0]
        assert torch.allclose(embed(backbone, TEXTS)[0], states.mean(dim=0), atol=1e-5)

    def test_rows_of_length_one_and_prompts(self, tmp_path):
        save_bert(tmp_path)
        plain = embed(load(tmp_path), ["red cat"])
        sentence_files(
            tmp_path,
            modules=[("2_Normalize", "Normalize")],
            prompts={"query": "red "},
            default_prompt_name="query",
        )
        backbone = load(tmp_path)
        features = embed(backbone, ["cat"])
        assert torch.allclose(features, plain / plain.norm(), atol=1e-6)
        assert backbone.describe()["normalized"]
        assert backbone.describe()["preprocessing"]["prefix"] == "red "

    def test_company_does_not_matter(self, saved):
        backbone = load(saved("bert")[0])
        together = embed(backbone, TEXTS)
        assert torch.equal(together, embed(backbone, TEXTS))
        for i, text in enumerate(TEXTS):
            assert torch.allclose(embed(backbone, [text])[0], together[i], atol=1e-5)

    @pytest.mark.parametrize("kind", ["clip", "siglip", "siglip2"])
    def test_the_text_side(self, saved, kind):
        directory, model = saved(kind)
        backbone = load(directory, "#text")
        own = quiet_transformers().AutoTokenizer.from_pretrained(directory)
        texts = ["a cat", "the red dog"]
        filled = {"padding": "max_length", "max_length": 12} if kind != "clip" else {}
        inputs = own(texts, return_tensors="pt", **{"padding": True, **filled})
        if kind != "clip":
            inputs = {"input_ids": inputs["input_ids"]}
        with torch.no_grad():
            expected = model.get_text_features(**inputs).pooler_output
        assert backbone.kind == "text"
        assert torch.allclose(embed(backbone, texts), expected, atol=1e-5)

    def test_siglip_reads_lower_case(self, saved):
        backbone = load(saved("siglip")[0], "#text")
        assert torch.equal(embed(backbone, ["A CAT"]), embed(backbone, ["a cat"]))

    def test_the_encoder_of_an_encoder_and_decoder(self, tmp_path):
        transformers = quiet_transformers()
        config = transformers.T5Config(
            vocab_size=64, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2
        )
        model = seeded(lambda: transformers.T5Model(config)).eval()
        model.save_pretrained(tmp_path)
        own = tokenizer(tmp_path)
        inputs = own(TEXTS[0], return_tensors="pt")
        with torch.no_grad():
            states = model.encoder(
                inputs["input_ids"], attention_mask=inputs["attention_mask"]
            ).last_hidden_state
        features = embed(load(tmp_path), TEXTS[:1])
        assert torch.allclose(features, states.mean(dim=1), atol=1e-5)


class TestLongest:
    """Texts are cut where the positions of a model end."""

    def longest(self, directory):
        backbone = load(directory)
        embed(backbone, TEXTS[-1:])  # a model fails beyond its positions
        return backbone.describe()["preprocessing"]["longest"]

    def test_the_positions_of_the_model(self, tmp_path):
        save_bert(tmp_path)  # has 32, its tokenizer knows no limit
        assert self.longest(tmp_path) == 32
        sentence_files(tmp_path, longest=8)
        assert self.longest(tmp_path) == 8
        sentence_files(tmp_path, longest=99)
        assert self.longest(tmp_path) == 32

    def test_roberta_begins_to_count_late(self, tmp_path):
        transformers = quiet_transformers()
        config = transformers.RobertaConfig(
            **SMALL, vocab_size=64, max_position_embeddings=34, pad_token_id=1
        )
        seeded(lambda: transformers.RobertaModel(config)).save_pretrained(tmp_path)
        tokenizer(tmp_path)
        assert self.longest(tmp_path) == 32

    def test_a_model_that_computes_positions(self, tmp_path):
        transformers = quiet_transformers()
        config = transformers.T5Config(
            vocab_size=64, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2
        )
        seeded(lambda: transformers.T5Model(config)).save_pretrained(tmp_path)
        tokenizer(tmp_path)
        assert self.longest(tmp_path) == 512


@st.composite
def batches(draw):
    b, t, d = (draw(st.integers(1, 5)) for _ in range(3))
    lengths = [draw(st.integers(1, t)) for _ in range(b)]
    left = draw(st.booleans())
    states = torch.randn(
        b, t, d, generator=torch.Generator().manual_seed(draw(st.integers(0, 99)))
    )
    mask = torch.zeros(b, t, dtype=torch.long)
    for row, length in enumerate(lengths):
        mask[row, t - length :] = 1 if left else mask[row, t - length :]
        if not left:
            mask[row, :length] = 1
    return states, mask


@given(batches(), st.sampled_from(["mean", "cls", "last", "max"]))
def test_pooling(batch, pooling):
    states, mask = batch
    pooled = pool_tokens(states, mask, pooling)
    for row in range(len(states)):
        tokens = [s for s, m in zip(states[row], mask[row], strict=True) if m]
        expected = {
            "mean": sum(tokens) / len(tokens),
            "cls": tokens[0],
            "last": tokens[-1],
            "max": torch.stack(tokens).max(dim=0).values,
        }[pooling]
        assert torch.allclose(pooled[row], expected, atol=1e-6)


class TestSentenceSettings:
    """What sentence-transformers saved beside a model."""

    def test_all(self, tmp_path):
        save_bert(tmp_path)
        sentence_files(
            tmp_path,
            "lasttoken",
            modules=[("2_Normalize", "Normalize")],
            longest=16,
            prompts={"q": "query: ", "p": "passage: "},
            default_prompt_name="q",
        )
        about = load(tmp_path).describe()
        assert (about["pooling"], about["normalized"]) == ("last", True)
        assert about["preprocessing"]["longest"] == 16
        assert about["preprocessing"]["prefix"] == "query: "
        assert not about["preprocessing"]["lower"]

    @pytest.mark.parametrize("mode", ["lasttoken", ["lasttoken"]])
    def test_newer_files(self, tmp_path, mode):
        save_bert(tmp_path)
        (tmp_path / "1_Pooling").mkdir()
        file = tmp_path / "1_Pooling" / "config.json"
        file.write_text(json.dumps({"pooling_mode": mode}))
        assert load(tmp_path).describe()["pooling"] == "last"

    @pytest.mark.parametrize(
        ("pooling", "named"),
        [
            ({"pooling_mode_weightedmean_tokens": True}, "weightedmean"),
            ({"pooling_mode_mean_sqrt_len_tokens": True}, "mean_sqrt_len"),
            ({"pooling_mode_mean_tokens": False}, "none"),
            (
                {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True},
                "cls + mean",
            ),
        ],
    )
    def test_refuses_others(self, tmp_path, pooling, named):
        save_bert(tmp_path)
        (tmp_path / "1_Pooling").mkdir()
        (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
        said = refusal(f"hf:{tmp_path}")
        assert (
            f"it makes one row of tokens by {named}, and only one of mean, cls" in said
        )


class TestDescription:
    @pytest.mark.parametrize("kind", [*VISION, "bert"])
    def test_is_json_and_the_same_on_each_run(self, saved, kind):
        directory, _ = saved(kind)
        first, second = load(directory).describe(), load(directory).describe()
        assert first == second == json.loads(json.dumps(first))
        assert first["source"] == "hf"
        assert first["model"] == kind  # not where it lies on this machine
        assert str(directory.parent) not in json.dumps(first)
        assert first["pooling"] == POOLING.get(kind, "mean")
        assert first["library"].startswith("transformers ")

    def test_the_revision_is_the_checksum_of_the_weights(self, saved, tmp_path):
        from sagl.storage import sha256

        directory, model = saved("dinov2")
        revision = load(directory).describe()["revision"]
        assert revision == sha256(directory / "model.safetensors")
        copied = shutil.copytree(directory, tmp_path / "copy")
        assert load(copied).describe()["revision"] == revision
        other = copy.deepcopy(model)
        with torch.no_grad():
            next(other.parameters()).add_(1)
        other.save_pretrained(copied)
        assert load(copied).describe()["revision"] != revision

    def test_weights_in_several_files(self, saved, tmp_path):
        _, model = saved("dinov2")
        directory = shutil.copytree(saved("dinov2")[0], tmp_path / "copy")
        (directory / "model.safetensors").unlink()
        model.save_pretrained(directory, max_shard_size="10KB")
        assert len(list(directory.glob("*.safetensors"))) > 1
        backbone = load(directory)
        whole = load(saved("dinov2")[0])
        assert torch.equal(embed(backbone, pictures()), embed(whole, pictures()))
        assert backbone.describe()["revision"] == load(directory).describe()["revision"]

    def test_licence_and_preprocessing(self, saved, tmp_path):
        directory = shutil.copytree(saved("dinov2")[0], tmp_path / "copy")
        assert load(directory).describe()["licence"] is None
        card = "---\ntags:\n- dino\nlicense: apache-2.0\n---\n# DINOv2\nlicense: no\n"
        (directory / "README.md").write_text(card)
        about = load(directory).describe()
        assert about["licence"] == "apache-2.0"
        assert about["preprocessing"]["crop_size"] == {"height": 28, "width": 28}

    def test_workers_get_no_weights(self, saved):
        """What is sent to a worker is small, and prepares samples as before."""
        backbone = load(saved("dinov2")[0])
        sent = pickle.dumps(backbone)
        weights = (saved("dinov2")[0] / "model.safetensors").stat().st_size
        assert len(sent) < weights / 2
        there = pickle.loads(sent)
        picture = pictures(1)[0]
        copied, here = there.prepare(picture), backbone.prepare(picture)
        assert torch.equal(copied["pixel_values"], here["pixel_values"])
        with pytest.raises(RuntimeError, match="without the weights"):
            there.embed([copied])

    def test_texts_in_workers(self, saved):
        backbone = load(saved("bert")[0])
        there = pickle.loads(pickle.dumps(backbone.prepare))
        assert there("the cat") == backbone.prepare("the cat")

    def test_nothing_is_trained_or_drawn(self, saved):
        state = torch.random.get_rng_state()
        backbone = load(saved("dinov3")[0])
        features = embed(backbone, pictures())
        assert torch.equal(torch.random.get_rng_state(), state)
        assert not features.requires_grad
        assert not features.is_inference()  # may be used in training later


class TestLabels:
    def test_a_classifier_warns(self, saved):
        directory, _ = saved("convnextv2")
        with pytest.warns(
            UserWarning, match=r"convnextv2 was trained with labels"
        ) as w:
            backbone = load_backbone(f"hf:{directory}", device="cpu")
        assert "3 classes" in str(w[0].message)
        assert "\n" not in str(w[0].message)
        assert backbone.describe()["labels"] == "3 classes"

    @pytest.mark.parametrize("kind", ["dinov2", "clip", "bert"])
    def test_others_do_not(self, saved, kind):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            backbone = load_backbone(f"hf:{saved(kind)[0]}", device="cpu")
        assert backbone.describe()["labels"] is None


def copied(saved, kind, tmp_path):
    return shutil.copytree(saved(kind)[0], tmp_path / "copy")


def refusal(name, **more):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - looked at by the caller
        load_backbone(name, device="cpu", **more)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestWhatCanGoWrong:
    def test_an_incomplete_directory(self, saved, tmp_path):
        directory = copied(saved, "dinov2", tmp_path)
        (directory / "model.safetensors").unlink()
        assert "copy the whole directory" in refusal(f"hf:{directory}")

    def test_damaged_weights(self, saved, tmp_path):
        directory = copied(saved, "dinov2", tmp_path)
        whole = (directory / "model.safetensors").read_bytes()
        (directory / "model.safetensors").write_bytes(whole[: len(whole) // 2])
        assert "damaged or cut short" in refusal(f"hf:{directory}")

    def test_weights_that_are_missing(self, saved, tmp_path):
        from safetensors.torch import load_file, save_file

        directory = copied(saved, "dinov2", tmp_path)
        file = directory / "model.safetensors"
        tensors = load_file(file)
        lost = next(name for name in sorted(tensors) if "layernorm" in name)
        tensors = {k: v for k, v in tensors.items() if k != lost}
        save_file(tensors, file, {"format": "pt"})
        said = refusal(f"hf:{directory}")
        assert "1 of its weights are missing" in said
        assert lost in said

    def test_no_processor(self, saved, tmp_path):
        directory = copied(saved, "dinov2", tmp_path)
        (directory / "preprocessor_config.json").unlink()
        assert "preprocessor_config.json" in refusal(f"hf:{directory}")

    def test_no_tokenizer(self, saved, tmp_path):
        directory = copied(saved, "bert", tmp_path)
        for file in directory.glob("*token*"):
            file.unlink()
        assert "tokenizer" in refusal(f"hf:{directory}")

    def test_no_model(self, tmp_path):
        assert "Unrecognized model" in refusal(f"hf:{tmp_path}")

    def test_damaged_settings(self, saved, tmp_path):
        directory = copied(saved, "bert", tmp_path)
        sentence_files(directory)
        (directory / "modules.json").write_text("[{")
        assert "modules.json is damaged" in refusal(f"hf:{directory}")

    def test_no_pooled_output(self, tmp_path):
        transformers = quiet_transformers()
        config = transformers.SegformerConfig(
            hidden_sizes=[8, 8, 8, 8], depths=[1] * 4, num_attention_heads=[1] * 4
        )
        seeded(lambda: transformers.SegformerModel(config)).save_pretrained(tmp_path)
        processor("Segformer", size={"height": 32, "width": 32})(tmp_path)
        said = refusal(f"hf:{tmp_path}")
        assert "no pooled output" in said
        assert "module:function#image" in said

    def test_features_that_change_each_time(self, tmp_path):
        """Masked autoencoders hide patches at random, also when they embed."""
        transformers = quiet_transformers()
        config = transformers.ViTMAEConfig(
            **SMALL, image_size=16, patch_size=4, decoder_hidden_size=16
        )
        model = seeded(lambda: transformers.ViTMAEModel(config))
        model.save_pretrained(tmp_path)
        processor("ViT", size={"height": 16, "width": 16})(tmp_path)
        said = refusal(f"hf:{tmp_path}")
        assert "no pooled output" in said or "other features each time" in said

    def test_another_kind_of_sample(self, tmp_path):
        transformers = quiet_transformers()
        config = transformers.Wav2Vec2Config(
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=16,
            conv_dim=[8],
            conv_stride=[2],
            conv_kernel=[2],
            num_feat_extract_layers=1,
            num_conv_pos_embeddings=4,
            num_conv_pos_embedding_groups=2,
        )
        seeded(lambda: transformers.Wav2Vec2Model(config)).save_pretrained(tmp_path)
        assert "takes input_values; needed is one that takes pictures or texts" in (
            refusal(f"hf:{tmp_path}")
        )

    def test_the_other_side_of_a_model_with_one(self, saved):
        said = refusal(f"hf:{saved('bert')[0]}#image")
        assert "it embeds texts, and #image was asked for" in said

    def test_more_than_pooling(self, tmp_path):
        save_bert(tmp_path)
        sentence_files(tmp_path, modules=[("2_Dense", "Dense")])
        assert "one row of tokens by Dense, and only" in refusal(f"hf:{tmp_path}")

    @pytest.mark.parametrize("trusted", [False, True])
    def test_code_of_a_model_runs_only_if_asked(self, saved, tmp_path, trusted):
        directory = copied(saved, "bert", tmp_path)
        config = json.loads((directory / "config.json").read_text())
        config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Config"}}
        (directory / "config.json").write_text(json.dumps(config))
        witness = tmp_path / "it ran"
        (directory / "own.py").write_text(
            "from transformers import BertConfig\n"
            f"open({str(witness)!r}, 'w').close()\n"
            "class Config(BertConfig):\n    model_type = 'own'\n"
        )
        said = refusal(f"hf:{directory}", trust_remote_code=trusted)
        assert witness.exists() == trusted
        assert ("code of its own, which is not run" in said) != trusted

    def test_weights_that_are_not_numbers(self, saved, tmp_path):
        _, model = saved("dinov2")
        directory = copied(saved, "dinov2", tmp_path)
        broken = copy.deepcopy(model)
        with torch.no_grad():
            next(broken.parameters()).fill_(torch.nan)
        broken.save_pretrained(directory)
        assert "infinite or not numbers" in refusal(f"hf:{directory}")


BROKEN_TORCHVISION = """
import sys, warnings
from sagl.features.backbones import load_backbone
try:
    load_backbone(sys.argv[1], device="cpu")
except ValueError as error:
    print(error)
else:
    print("loaded")
"""


def test_a_torchvision_that_does_not_fit(saved, tmp_path):
    """Installed, but for another torch: importing it fails as the real one does."""
    package = tmp_path / "torchvision"
    package.mkdir()
    fault = "raise RuntimeError('operator torchvision::nms does not exist')\n"
    (package / "__init__.py").write_text(fault)
    about = tmp_path / "torchvision-0.28.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: torchvision\nVersion: 0.28.0\n")
    directory, _ = saved("clip")
    process = subprocess.run(
        [sys.executable, "-c", BROKEN_TORCHVISION, f"hf:{directory}"],
        env={
            "PYTHONPATH": str(tmp_path),
            "OMP_NUM_THREADS": "1",
            "HOME": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.count("\n") == 1
    assert "pip uninstall torchvision" in process.stdout


def test_a_name_of_the_users_own(saved):
    backbone = load_huggingface(str(saved("dinov2")[0]), name="mine")
    assert backbone.name == "mine"
    assert np.asarray(backbone.embed([backbone.prepare(pictures(1)[0])])).shape == (
        1,
        backbone.dim,
    )
