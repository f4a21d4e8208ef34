"""What goes into a model of transformers and what comes out of it.

Images and texts become the numbers that it reads; its output becomes one row of
features per sample.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from sagl.features.pretrained import (
    Place,
    optional_module,
    read_settings,
    reading,
)

__all__ = ["Processor", "TextTokens", "load_processor", "pool_tokens", "tokens_for"]

Tokens = Mapping[str, list[int]]
TokenPooling = Literal["mean", "cls", "last", "max"]

# By the numbers that Pillow gives them.
_INTERPOLATION = {0: "nearest", 2: "bilinear", 3: "bicubic"}
# As sentence-transformers calls them in 1_Pooling/config.json.
_POOLINGS: dict[str, TokenPooling] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_lasttoken": "last",
    "pooling_mode_max_tokens": "max",
}
_LONGEST = 512  # where neither the model nor its tokenizer knows a limit
_NO_LIMIT = 1_000_000  # tokenizers without one say 1e30


class Processor(Protocol):
    """One image as the inputs of a model. Can be pickled."""

    def __call__(self, image: Any) -> dict[str, Tensor]: ...

    def describe(self) -> dict[str, Any]: ...


class OwnProcessor:
    """The processor that was saved with a model."""

    def __init__(self, processor: Any) -> None:
        self._processor = processor

    def __call__(self, image: Any) -> dict[str, Tensor]:
        made = self._processor(images=image, return_tensors="pt")
        names = self._processor.model_input_names
        return {name: made[name][0] for name in names if name in made}

    def describe(self) -> dict[str, Any]:
        settings: dict[str, Any] = json.loads(self._processor.to_json_string())
        return settings


class DINOv3Processor:
    """What transformers does for DINOv3, without torchvision.

    transformers has this processor for torchvision alone. It is scaling to [0, 1],
    smooth resizing, standardising colours, in this order, and torch can do all three.
    ``settings`` are those of the model's ``preprocessor_config.json``.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        size = settings.get("size") or {}
        if not {"height", "width"} <= set(size) or settings.get("do_center_crop"):
            raise ValueError(
                f"its pictures are prepared by size {size} and a crop, which is not "
                "done here; a height and a width without a crop can be"
            )
        resample = settings.get("resample", 2)
        if resample not in _INTERPOLATION:
            raise ValueError(
                f"it resizes pictures by method {resample}, which is not done here"
            )
        self._settings = dict(settings)
        self._size = (int(size["height"]), int(size["width"]))
        self._interpolation = _INTERPOLATION[resample]

    def __call__(self, image: Any) -> dict[str, Tensor]:
        wanted = self._settings
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).unsqueeze(0)
        x = pixels.float()
        if wanted.get("do_rescale", True):
            x = x * wanted.get("rescale_factor", 1 / 255)
        if wanted.get("do_resize", True):
            smooth = self._interpolation != "nearest"
            x = functional.interpolate(
                x,
                self._size,
                mode=self._interpolation,
                align_corners=False if smooth else None,
                antialias=smooth,
            )
        if wanted.get("do_normalize", True):
            x = (x - _colours(wanted["image_mean"])) / _colours(wanted["image_std"])
        return {"pixel_values": x[0].contiguous()}

    def describe(self) -> dict[str, Any]:
        return dict(self._settings)


def load_processor(place: Place) -> Processor:
    """The image processor that belongs to a model, the one that needs no torchvision.

    The same one is taken where torchvision is installed, so that features do not
    depend on that.
    """
    optional_module("PIL.Image")
    with reading(place) as transformers:
        base = optional_module("transformers.image_processing_base")
        settings, _ = base.ImageProcessingMixin.get_image_processor_dict(
            **place.arguments
        )
        if str(settings.get("image_processor_type", "")).startswith("DINOv3"):
            return DINOv3Processor(settings)
        auto = transformers.AutoImageProcessor
        return OwnProcessor(auto.from_pretrained(**place.arguments, backend="pil"))


def _colours(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float32).reshape(1, -1, 1, 1)


@dataclass(frozen=True)
class TextTokens:
    """Turns one text into numbers, and a few of those into a batch."""

    tokenizer: Any  # of the transformers library
    longest: int  # tokens beyond this number are cut off
    prefix: str = ""  # put before every text
    lower: bool = False  # whether texts are brought to lower case first
    # Whether every text is filled up to the longest, and no mask says where it ends.
    filled: bool = False

    def __call__(self, text: str) -> Tokens:
        text = self.prefix + text
        made = self.tokenizer(
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
            "input_ids": self.tokenizer.pad_token_id or 0,
            "token_type_ids": getattr(self.tokenizer, "pad_token_type_id", 0),
        }
        left = self.tokenizer.padding_side == "left"
        return {
            key: torch.tensor(
                [_filled(row[key], length, fill.get(key, 0), left) for row in tokens]
            )
            for key in tokens[0]
        }

    def describe(self) -> dict[str, Any]:
        return {
            "tokenizer": type(self.tokenizer).__name__,
            "vocabulary": len(self.tokenizer),
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


@dataclass(frozen=True)
class SentenceSettings:
    """What a sentence encoder does around its transformer."""

    pooling: TokenPooling = "mean"
    normalize: bool = False
    longest: int | None = None
    lower: bool = False
    prompt: str = ""


def read_sentence_settings(place: Place) -> SentenceSettings:
    """What sentence-transformers saved beside a model; mean pooling if nothing."""
    modules = _modules(place)
    folder = modules.get("Pooling", "1_Pooling")
    pooling = read_settings(place, f"{folder}/config.json")
    sentence = read_settings(place, "sentence_bert_config.json") or {}
    prompts = read_settings(place, "config_sentence_transformers.json") or {}
    default = prompts.get("default_prompt_name")
    return SentenceSettings(
        pooling="mean" if pooling is None else _pooling(place, pooling),
        normalize="Normalize" in modules,
        longest=sentence.get("max_seq_length"),
        lower=bool(sentence.get("do_lower_case", False)),
        prompt=prompts.get("prompts", {}).get(default, "") if default else "",
    )


def pool_tokens(states: Tensor, mask: Tensor, pooling: TokenPooling) -> Tensor:
    """One row per text, (b, d), from one per token, (b, t, d).

    ``mask`` (b, t) is 1 where there is a token, 0 where the row was filled up.

    >>> states = torch.tensor([[[1.0], [3.0], [9.0]]])
    >>> mask = torch.tensor([[1, 1, 0]])
    >>> [pool_tokens(states, mask, p).item() for p in ("mean", "cls", "last", "max")]
    [2.0, 1.0, 3.0, 3.0]
    """
    there = mask.unsqueeze(-1).bool()
    if pooling == "max":
        return states.masked_fill(~there, -torch.inf).amax(dim=1)
    if pooling == "mean":
        total = states.masked_fill(~there, 0).sum(dim=1)
        return total / mask.sum(dim=1, keepdim=True).clamp_min(1)
    first = mask.int().argmax(dim=1)
    last = mask.shape[1] - 1 - mask.int().flip(1).argmax(dim=1)
    chosen = first if pooling == "cls" else last
    return states[torch.arange(len(states), device=states.device), chosen]


def pooled_output(output: Any) -> Tensor | None:
    """The one row per sample that a model gives by itself, if it does."""
    if isinstance(output, Tensor):
        return output
    for name in ("image_embeds", "text_embeds", "pooler_output"):
        rows = getattr(output, name, None)
        if rows is not None:
            flat: Tensor = rows.flatten(1)  # convolutions leave (b, d, 1, 1)
            return flat
    return None


def _modules(place: Place) -> dict[str, str]:
    """The parts of a sentence encoder and their folders; empty if it is none."""
    listed = read_settings(place, "modules.json") or []
    modules = {entry["type"].rpartition(".")[2]: entry["path"] for entry in listed}
    more = sorted(set(modules) - {"Transformer", "Pooling", "Normalize"})
    if more:
        raise ValueError(
            f"{place.source}: after pooling it applies {', '.join(more)}, which is not "
            "read here; wrap it in a function of a list of texts: module:function#text"
        )
    return modules


def _pooling(place: Place, settings: dict[str, Any]) -> TokenPooling:
    modes = {k: on for k, on in settings.items() if k.startswith("pooling_mode_")}
    chosen: Any = [_POOLINGS.get(key, key) for key, on in modes.items() if on]
    if "pooling_mode" in settings:  # newer files name it
        chosen = settings["pooling_mode"]
        chosen = [chosen] if isinstance(chosen, str) else list(chosen)
        chosen = ["last" if name == "lasttoken" else name for name in chosen]
    known = get_args(TokenPooling)
    if len(chosen) != 1 or chosen[0] not in known:
        raise ValueError(
            f"{place.source}: its pooling is {' + '.join(chosen) or 'none'}; one of "
            f"{', '.join(known)} can be read: wrap it in a function of a list of "
            "texts, module:function#text"
        )
    pooling: TokenPooling = chosen[0]
    return pooling
