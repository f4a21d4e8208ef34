"""Texts as the token numbers that a model of transformers reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

Tokens = Mapping[str, list[int]]

_LONGEST = 512  # where neither the model nor its tokenizer knows a limit
_NO_LIMIT = 1_000_000  # tokenizers without one say 1e30


class TextTokens:
    """Turns one text into numbers, and a few of those into a batch.

    Parameters
    ----------
    tokenizer : object
        Of the transformers library.
    longest : int
        Tokens beyond this number are cut off.
    prefix : str
        Put before every text.
    lower : bool
        Whether texts are brought to lower case first.
    filled : bool
        Whether every text is filled up to ``longest``, and no mask says where it ends.
    """

    def __init__(
        self,
        tokenizer: Any,
        longest: int,
        *,
        prefix: str = "",
        lower: bool = False,
        filled: bool = False,
    ) -> None:
        self._tokenizer = tokenizer
        self.longest = longest
        self.prefix = prefix
        self.lower = lower
        self.filled = filled

    def __call__(self, text: str) -> Tokens:
        text = self.prefix + text
        made = self._tokenizer(
            text.lower() if self.lower else text,
            truncation=True,
            max_length=self.longest,
            padding="max_length" if self.filled else False,
        )
        keys = ["input_ids"] if self.filled else list(made)
        return {key: list(made[key]) for key in keys}

    def batch(self, tokens: Sequence[Tokens]) -> dict[str, Tensor]:
        """Rows of equal length, (b, longest of them)."""
        length = max(len(row["input_ids"]) for row in tokens)
        fill = {
            "input_ids": self._tokenizer.pad_token_id or 0,
            "token_type_ids": getattr(self._tokenizer, "pad_token_type_id", 0),
        }
        left = self._tokenizer.padding_side == "left"
        return {
            key: torch.tensor(
                [_filled(row[key], length, fill.get(key, 0), left) for row in tokens]
            )
            for key in tokens[0]
        }

    def describe(self) -> dict[str, Any]:
        return {
            "tokenizer": type(self._tokenizer).__name__,
            "vocabulary": len(self._tokenizer),
            "longest": self.longest,
            "prefix": self.prefix,
            "lower": self.lower,
            "filled": self.filled,
        }


def tokens_for(
    tokenizer: Any,
    model: Any,
    *,
    longest: int | None = None,
    prefix: str = "",
    lower: bool = False,
) -> TextTokens:
    """How texts are prepared for a model: cut where its positions end."""
    # SigLIP was trained on lower-case texts, always filled up to all its positions.
    siglip = model.config.model_type.startswith("siglip")
    limits = [_positions(model)]
    if not siglip:
        limits += [longest, tokenizer.model_max_length]
    known = [limit for limit in limits if limit and limit < _NO_LIMIT]
    return TextTokens(
        tokenizer,
        int(min(known, default=_LONGEST)),
        prefix=prefix,
        lower=lower or siglip,
        filled=siglip,
    )


def _positions(model: nn.Module) -> int | None:
    """How many positions the model has learned; None if it computes them."""
    for name, module in model.named_modules():
        last = name.rpartition(".")[2]
        if last.startswith("position_embed") and isinstance(module, nn.Embedding):
            if "vision" in name:
                continue
            # RoBERTa and its kin begin to count behind the number that fills.
            skipped = 0 if module.padding_idx is None else module.padding_idx + 1
            return module.num_embeddings - skipped
    return None


def _filled(row: list[int], length: int, value: int, left: bool) -> list[int]:
    rest = [value] * (length - len(row))
    return rest + row if left else row + rest
