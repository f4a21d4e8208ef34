"""Images and texts as a model reads them, and its output as rows."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sagl.features.model_io import (
    DINOv3Processor,
    SentenceSettings,
    TextTokens,
    pool_tokens,
    read_sentence_settings,
    tokens_for,
)
from sagl.features.pretrained import find_place
from tests.baselines.shared_space import quiet_transformers, seeded
from tests.features.models import (
    DINOV3_PICTURES,
    SMALL,
    TEXTS,
    pictures,
    save_bert,
    sentence_files,
    tokenizer,
)


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
    found = DINOv3Processor(settings)(picture)["pixel_values"].numpy()
    assert found.shape == (3, *size)
    for channel in range(3):
        values = np.asarray(picture)[..., channel].astype(np.float32) / 255
        whole = Image.fromarray(values, mode="F")
        expected = np.asarray(
            whole.resize((size[1], size[0]), getattr(Image.Resampling, method))
        )
        mean = DINOV3_PICTURES["image_mean"][channel]
        deviation = DINOV3_PICTURES["image_std"][channel]
        # torch's cubic has another parameter than Pillow's, unless it is antialiased
        assert np.allclose(found[channel], (expected - mean) / deviation, atol=2e-4)


def test_dinov3_in_steps():
    picture = pictures(1)[0]
    pixels = torch.from_numpy(np.array(picture)).permute(2, 0, 1).float()
    off = {"do_resize": False, "do_normalize": False}
    scaled = DINOv3Processor({**DINOV3_PICTURES, **off})(picture)["pixel_values"]
    assert torch.allclose(scaled, pixels / 255)
    plain = DINOv3Processor({**DINOV3_PICTURES, **off, "do_rescale": False})(picture)
    assert torch.equal(plain["pixel_values"], pixels)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": {"shortest_edge": 224}}, "prepared by size"),
        ({"do_center_crop": True}, "and a crop"),
        ({"resample": 1}, "method 1"),
    ],
)
def test_dinov3_refuses_what_it_does_not_do(change, message):
    with pytest.raises(ValueError, match=message):
        DINOv3Processor({**DINOV3_PICTURES, **change})


@pytest.mark.parametrize("side", ["right", "left"])
def test_batches_are_those_of_the_tokenizer(tmp_path, side):
    own = tokenizer(tmp_path)
    own.padding_side = side
    tokens = TextTokens(own, 10)
    found = tokens.batch([tokens(text) for text in TEXTS])
    expected = own(
        TEXTS, padding=True, truncation=True, max_length=10, return_tensors="pt"
    )
    assert set(found) == set(expected)
    for key, value in found.items():
        assert torch.equal(value, expected[key])


class TestLongest:
    def test_the_positions_of_the_model(self, tmp_path):
        model = save_bert(tmp_path)  # has 32, its tokenizer knows no limit
        tokens = tokens_for(tokenizer(tmp_path), model)
        assert tokens.longest == 32
        assert len(tokens(TEXTS[-1])["input_ids"]) == 32
        assert tokens_for(tokenizer(tmp_path), model, longest=8).longest == 8
        assert tokens_for(tokenizer(tmp_path), model, longest=99).longest == 32

    def test_roberta_begins_to_count_late(self, tmp_path):
        transformers = quiet_transformers()
        config = transformers.RobertaConfig(
            **SMALL, vocab_size=64, max_position_embeddings=34, pad_token_id=1
        )
        model = seeded(lambda: transformers.RobertaModel(config)).eval()
        tokens = tokens_for(tokenizer(tmp_path), model)
        assert tokens.longest == 32
        batch = tokens.batch([tokens(TEXTS[-1])])
        model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])

    def test_a_model_that_computes_positions(self, tmp_path):
        transformers = quiet_transformers()
        config = transformers.T5Config(
            vocab_size=64, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2
        )
        model = seeded(lambda: transformers.T5EncoderModel(config))
        assert tokens_for(tokenizer(tmp_path), model).longest == 512


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
    found = pool_tokens(states, mask, pooling)
    for row in range(len(states)):
        tokens = [s for s, m in zip(states[row], mask[row], strict=True) if m]
        expected = {
            "mean": sum(tokens) / len(tokens),
            "cls": tokens[0],
            "last": tokens[-1],
            "max": torch.stack(tokens).max(dim=0).values,
        }[pooling]
        assert torch.allclose(found[row], expected, atol=1e-6)


class TestSettings:
    def test_nothing_saved(self, tmp_path):
        pytest.importorskip("transformers")
        assert read_sentence_settings(find_place(tmp_path)) == SentenceSettings()

    def test_all(self, tmp_path):
        pytest.importorskip("transformers")
        sentence_files(
            tmp_path,
            "lasttoken",
            modules=[("2_Normalize", "Normalize")],
            longest=128,
            prompts={"q": "query: ", "p": "passage: "},
            default_prompt_name="q",
        )
        found = read_sentence_settings(find_place(tmp_path))
        assert found == SentenceSettings("last", True, 128, False, "query: ")

    def test_newer_files(self, tmp_path):
        pytest.importorskip("transformers")
        (tmp_path / "1_Pooling").mkdir()
        file = tmp_path / "1_Pooling" / "config.json"
        file.write_text(json.dumps({"pooling_mode": "lasttoken"}))
        assert read_sentence_settings(find_place(tmp_path)).pooling == "last"

    @pytest.mark.parametrize("pooling", ["weightedmean_tokens", "mean_sqrt_len_tokens"])
    def test_refuses_others(self, tmp_path, pooling):
        pytest.importorskip("transformers")
        sentence_files(tmp_path, pooling)
        with pytest.raises(ValueError, match=r"its pooling is .*; one of mean, cls"):
            read_sentence_settings(find_place(tmp_path))

    def test_refuses_two_at_once(self, tmp_path):
        pytest.importorskip("transformers")
        (tmp_path / "1_Pooling").mkdir()
        both = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}
        (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(both))
        with pytest.raises(ValueError, match=r"pooling is mean \+ cls"):
            read_sentence_settings(find_place(tmp_path))
