"""From tokens to one row, against loops."""

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sagl.features.model_io import (
    SentenceSettings,
    pool_tokens,
    read_sentence_settings,
)
from sagl.features.pretrained import find_place
from tests.features.models import sentence_files


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
