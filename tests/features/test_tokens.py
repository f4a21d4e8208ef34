"""Texts in batches, as the tokenizer itself would make them."""

import pytest
import torch

from sagl.features.model_io import TextTokens, tokens_for
from tests.baselines.shared_space import quiet_transformers, seeded
from tests.features.models import SMALL, TEXTS, save_bert, tokenizer


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
