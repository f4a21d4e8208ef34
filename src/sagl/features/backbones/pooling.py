"""From the output of a model to one row of features per sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from sagl.features.backbones.pretrained import Place, read_settings

TokenPooling = Literal["mean", "cls", "last", "max"]

# As sentence-transformers calls them in 1_Pooling/config.json.
_NAMES: dict[str, TokenPooling] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_lasttoken": "last",
    "pooling_mode_max_tokens": "max",
}
_READ_MODULES = {"Transformer", "Pooling", "Normalize"}


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
    """One row per text from one per token.

    Parameters
    ----------
    states : Tensor of shape (b, t, d)
    mask : Tensor of shape (b, t)
        1 where there is a token, 0 where the row was filled up.
    pooling : {"mean", "cls", "last", "max"}
        Of all tokens; or only the first, or the last.

    Examples
    --------
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
        found = getattr(output, name, None)
        if found is not None:
            flat: Tensor = found.flatten(1)  # convolutions leave (b, d, 1, 1)
            return flat
    return None


def has_class_token(model: nn.Module) -> bool:
    return any(name.endswith("cls_token") for name, _ in model.named_parameters())


def _modules(place: Place) -> dict[str, str]:
    """The parts of a sentence encoder and their folders; empty if it is none."""
    listed = read_settings(place, "modules.json") or []
    modules = {entry["type"].rpartition(".")[2]: entry["path"] for entry in listed}
    more = sorted(set(modules) - _READ_MODULES)
    if more:
        raise ValueError(
            f"{place.source}: after pooling it applies {', '.join(more)}, which is not "
            "read here; wrap it in a function of a list of texts: module:function#text"
        )
    return modules


def _pooling(place: Place, settings: dict[str, Any]) -> TokenPooling:
    chosen: Any = [_NAMES.get(k, k) for k, on in settings.items() if _is_mode(k) and on]
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
    found: TokenPooling = chosen[0]
    return found


def _is_mode(key: str) -> bool:
    return key.startswith("pooling_mode_")
