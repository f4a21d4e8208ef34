"""``hf:`` Vision and text models of the transformers library.

A model, its own preprocessing, and how its output becomes one row of features: a
projection, its own pooled output, or tokens pooled as sentence-transformers saved it.
Neither library does this for any model: transformers leaves pooling to the user, and
sentence-transformers goes on with random weights where a file lacks some.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from sagl.environment import optional_module
from sagl.features.backbones import KNOWN
from sagl.features.callables import (
    FunctionBackbone,
    run_frozen,
    small_sample,
)
from sagl.features.pretrained import (
    digest_weights,
    find_model,
    licence_of,
    load_weights,
    place_of,
    read_json,
    reading,
    refuse_missing,
)
from sagl.features.samples import Kind

__all__ = ["load_huggingface"]

_INPUTS: dict[str, Kind] = {"pixel_values": "image", "input_ids": "text"}
_KNOWN_MODELS = {known.model: known for known in KNOWN.values()}
_CLASSIFIER = re.compile(r"For(Image|Sequence)Classification$")
_POOLINGS = ("mean", "cls", "last", "max")  # of tokens
_RESAMPLE = {2: "bilinear", 3: "bicubic"}  # by the numbers that Pillow gives them
_LONGEST = 512  # tokens, where neither the model nor its tokenizer knows a limit
_NO_LIMIT = 1_000_000  # tokenizers without one say 1e30

Inputs = tuple[Callable[[Any], dict[str, Tensor]], dict[str, Any]]


@dataclass(frozen=True)
class _Pooling:
    """What becomes of a model's output, and what a text is before it is its input."""

    # projection: into the space that pictures and texts share; pooler: the model's own
    # pooled output; the others choose among tokens.
    mode: str
    normalize: bool = False
    longest: int | None = None  # tokens beyond this number are cut off
    lower: bool = False  # whether texts are brought to lower case first
    prefix: str = ""  # put before every text


def load_huggingface(
    identifier: str | Path,
    *,
    name: str | None = None,
    side: Kind | None = None,
    revision: str | None = None,
    device: torch.device | None = None,
    trust_remote_code: bool = False,
) -> FunctionBackbone:
    """A backbone from a directory that holds a model of transformers, or the hub.

    ``name`` is what the user calls it; ``side`` chooses what a model that embeds both
    embeds, by default images; ``revision`` is a branch, tag or commit on the hub.
    """
    name, device = name or f"hf:{identifier}", device or torch.device("cpu")
    with reading(identifier) as transformers:
        directory, commit = find_model(identifier, revision)
        place = place_of(directory, commit, trust_remote_code=trust_remote_code)
        config = transformers.AutoConfig.from_pretrained(**place)
        model, missing = load_weights(_class(transformers, config), place)
        kind = _kind(model, config, side)
        pooling = _choose_pooling(model, config, kind, directory, missing)
        if kind == "image":
            prepare, settings = _image_inputs(transformers, place)
        else:
            prepare, settings = _text_inputs(transformers, place, model, pooling)
    known = _KNOWN_MODELS.get(str(identifier)) if commit else None
    labels = known.labels if known else _labels(config)
    licence = known.licence if known else None if commit else licence_of(directory)
    about = {
        "source": "hf",
        "model": str(identifier) if commit else directory.resolve().name,
        "revision": commit or digest_weights(directory),
        "pooling": pooling.mode,
        "normalized": pooling.normalize,
        "preprocessing": settings,
        "licence": licence,
        "labels": labels,
        "library": f"transformers {transformers.__version__}",
    }
    model = model.to(device)

    def embed(prepared: list[Any]) -> Tensor:
        if kind == "text":
            batch = prepare(prepared)
        elif len({tuple(v.shape for v in one.values()) for one in prepared}) > 1:
            return torch.cat([embed([one]) for one in prepared])
        else:
            batch = {k: torch.stack([one[k] for one in prepared]) for k in prepared[0]}
        batch = {key: value.to(device) for key, value in batch.items()}
        return run_frozen(lambda: _features(model, kind, pooling, batch), device)

    own = prepare if kind == "image" else None  # texts are cut into tokens by batches
    try:
        backbone = FunctionBackbone(embed, kind, name=name, prepare=own, about=about)
        sample = backbone.prepare(small_sample(kind))
        once, again = backbone.embed([sample]), backbone.embed([sample])
    except (RuntimeError, KeyError, AttributeError) as error:
        message = " ".join(str(error).split())
        raise ValueError(f"{name}: cannot be used to embed: {message}") from None
    if not torch.equal(once, again):
        raise ValueError(
            f"{name}: gives other features each time (it hides parts of its input at "
            "random); use a model without that"
        )
    return backbone


def _class(transformers: Any, config: Any) -> Any:
    saved = (getattr(config, "architectures", None) or [""])[0]
    if saved.endswith("WithProjection") and hasattr(transformers, saved):
        return getattr(transformers, saved)
    if getattr(config, "is_encoder_decoder", False):
        return transformers.AutoModelForTextEncoding
    return transformers.AutoModel


def _kind(model: Any, config: Any, side: Kind | None) -> Kind:
    if _embeds_both(model):
        return side or "image"
    takes = model.main_input_name
    if (kind := _INPUTS.get(takes)) is None:
        raise ValueError(
            f"it is a model of kind {config.model_type!r}, which takes {takes}; needed "
            "is one that takes pictures or texts"
        )
    if side not in (None, kind):
        raise ValueError(f"it embeds {kind}s, and #{side} was asked for")
    return kind


def _embeds_both(model: Any) -> bool:
    return hasattr(model, "get_image_features") and hasattr(model, "get_text_features")


def _choose_pooling(
    model: Any, config: Any, kind: Kind, directory: Path, missing: list[str]
) -> _Pooling:
    """What to take from a model; drops the part that it does not need."""
    lost_pooler = [key for key in missing if "pooler" in key.split(".")]
    refuse_missing([key for key in missing if key not in lost_pooler])
    if _embeds_both(model):
        # Half of the memory of CLIP is for the other kind of sample.
        other = "text_model" if kind == "image" else "vision_model"
        if isinstance(getattr(model, other, None), nn.Module):
            setattr(model, other, None)
        return _Pooling("projection")
    if type(model).__name__.endswith("WithProjection"):
        return _Pooling("projection")
    if kind == "text" and not config.model_type.endswith("_text_model"):
        return _sentence_settings(directory)
    untrained = lost_pooler or (hasattr(model, "pooler") and model.pooler is None)
    names = (name for name, _ in model.named_parameters())
    if untrained and any(name.endswith("cls_token") for name in names):
        return _Pooling("cls")  # a pooler that was never trained is worth nothing
    return _Pooling("pooler")


def _sentence_settings(directory: Path) -> _Pooling:
    """What sentence-transformers saved beside a model; mean pooling if nothing."""
    listed = read_json(directory / "modules.json", [])
    modules = {entry["type"].rpartition(".")[2]: entry["path"] for entry in listed}
    pooling = read_json(
        directory / modules.get("Pooling", "1_Pooling") / "config.json",
        {"pooling_mode": "mean"},
    )
    # pooling_mode_mean_tokens is true in older files; newer ones name it.
    modes = [k for k in pooling if k.startswith("pooling_mode_") and pooling[k]]
    modes = pooling.get("pooling_mode", modes)
    modes = [modes] if isinstance(modes, str) else modes
    modes = [re.sub(r"^pooling_mode_|_?tokens?$", "", mode) for mode in modes]
    steps = {*modules, *modes} - {"Transformer", "Pooling", "Normalize", *_POOLINGS}
    if steps or len(modes) != 1:
        how = " + ".join(sorted(steps or modes)) or "none"
        raise ValueError(
            f"it makes one row of tokens by {how}, and only one of "
            f"{', '.join(_POOLINGS)} can be read; wrap it in module:function#text"
        )
    sentence = read_json(directory / "sentence_bert_config.json", {})
    prompts = read_json(directory / "config_sentence_transformers.json", {})
    default = prompts.get("default_prompt_name")
    return _Pooling(
        mode=modes[0],
        normalize="Normalize" in modules,
        longest=sentence.get("max_seq_length"),
        lower=bool(sentence.get("do_lower_case", False)),
        prefix=prompts.get("prompts", {}).get(default, "") if default else "",
    )


def _features(
    model: Any, kind: Kind, pooling: _Pooling, batch: dict[str, Tensor]
) -> Tensor:
    """One row per sample."""
    if pooling.mode == "projection":
        model = getattr(model, f"get_{kind}_features", model)
    output = model(**batch)
    if pooling.mode in _POOLINGS:
        states: Tensor = output.last_hidden_state
        mask = batch.get("attention_mask")
        if mask is None or kind == "image":
            mask = torch.ones(states.shape[:2], device=states.device)
        rows = pool_tokens(states, mask, pooling.mode)
        return functional.normalize(rows) if pooling.normalize else rows
    names = ("image_embeds", "text_embeds", "pooler_output")
    for pooled in (output, *(getattr(output, name, None) for name in names)):
        if isinstance(pooled, Tensor):
            return pooled.flatten(1)  # convolutions leave (b, d, 1, 1)
    raise ValueError(
        "it has no pooled output; use a model that has one, or a function of a list of "
        f"{kind}s: module:function#{kind}"
    )


def pool_tokens(states: Tensor, mask: Tensor, pooling: str) -> Tensor:
    """One row per text, (b, d), from one per token, (b, t, d).

    ``mask`` (b, t) is 1 where there is a token, 0 where the row was filled up.

    >>> states = torch.tensor([[[1.0], [3.0], [9.0]]])
    >>> mask = torch.tensor([[1, 1, 0]])
    >>> [pool_tokens(states, mask, p).item() for p in ("mean", "cls", "last", "max")]
    [2.0, 1.0, 3.0, 3.0]
    """
    kept = mask.unsqueeze(-1).bool()
    if pooling == "max":
        return states.masked_fill(~kept, -torch.inf).amax(dim=1)
    if pooling == "mean":
        total = states.masked_fill(~kept, 0).sum(dim=1)
        return total / mask.sum(dim=1, keepdim=True).clamp_min(1)
    first = mask.int().argmax(dim=1)
    last = mask.shape[1] - 1 - mask.int().flip(1).argmax(dim=1)
    chosen = first if pooling == "cls" else last
    return states[torch.arange(len(states), device=states.device), chosen]


def _image_inputs(transformers: Any, place: Mapping[str, Any]) -> Inputs:
    """How one image becomes the inputs of a model, and the settings of it.

    The processor that needs no torchvision is taken where that is installed, too, so
    that features do not depend on it.
    """
    optional_module("PIL.Image")
    base = optional_module("transformers.image_processing_base")
    settings, _ = base.ImageProcessingMixin.get_image_processor_dict(**place)
    if str(settings.get("image_processor_type", "")).startswith("DINOv3"):
        _check_dinov3(settings)
        return partial(process_dinov3, settings), dict(settings)
    processor = transformers.AutoImageProcessor.from_pretrained(**place, backend="pil")
    return partial(_process, processor), json.loads(processor.to_json_string())


def _process(processor: Any, image: Any) -> dict[str, Tensor]:
    encoded = processor(images=image, return_tensors="pt")
    return {k: encoded[k][0] for k in processor.model_input_names if k in encoded}


def process_dinov3(settings: Mapping[str, Any], image: Any) -> dict[str, Tensor]:
    """What transformers does for DINOv3, without torchvision.

    transformers has this processor for torchvision alone. It is scaling to [0, 1],
    smooth resizing, standardising colours, in this order, and torch can do all three.
    ``settings`` are those of the model's ``preprocessor_config.json``.
    """
    pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).unsqueeze(0)
    (x,) = functional.interpolate(
        pixels.float() * settings.get("rescale_factor", 1 / 255),
        (int(settings["size"]["height"]), int(settings["size"]["width"])),
        mode=_RESAMPLE[settings.get("resample", 2)],
        align_corners=False,
        antialias=True,
    )
    colours = torch.tensor([settings["image_mean"], settings["image_std"]])
    mean, deviation = colours.reshape(2, 3, 1, 1)
    return {"pixel_values": ((x - mean) / deviation).contiguous()}


def _check_dinov3(settings: Mapping[str, Any]) -> None:
    steps = ("do_rescale", "do_resize", "do_normalize")
    if (
        not {"height", "width"} <= set(settings.get("size") or {})
        or settings.get("resample", 2) not in _RESAMPLE
        or settings.get("do_center_crop")
        or not all(settings.get(step, True) for step in steps)
    ):
        raise ValueError(
            f"its pictures are prepared by {dict(settings)}; only scaling, resizing to "
            "a height and a width by method 2 or 3, and standardising is done here"
        )


def _text_inputs(
    transformers: Any, place: Mapping[str, Any], model: Any, pooling: _Pooling
) -> Inputs:
    """How texts become the inputs of a model, and the settings of it."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(**place)
    # Without its files transformers makes one that knows no words, and goes on.
    if len(tokenizer) <= len(tokenizer.all_special_tokens) + 1:
        raise ValueError("its tokenizer is missing; save it beside the model")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    # SigLIP was trained on lower-case texts, always filled up to all its positions.
    siglip = model.config.model_type.startswith("siglip")
    limits = [_positions(model)]
    if not siglip:
        limits += [pooling.longest, tokenizer.model_max_length]
    known = [limit for limit in limits if limit and limit < _NO_LIMIT]
    settings = {
        "tokenizer": type(tokenizer).__name__,
        "vocabulary": len(tokenizer),
        "longest": int(min(known, default=_LONGEST)),
        "prefix": pooling.prefix,
        "lower": pooling.lower or siglip,
        "filled": siglip,  # up to the longest, and no mask says where it ends
    }
    return partial(_tokenize, tokenizer, settings), settings


def _tokenize(
    tokenizer: Any, settings: Mapping[str, Any], texts: list[str]
) -> dict[str, Tensor]:
    """Rows of equal length, (b, longest of them)."""
    texts = [settings["prefix"] + text for text in texts]
    encoded = tokenizer(
        [text.lower() for text in texts] if settings["lower"] else texts,
        truncation=True,
        max_length=settings["longest"],
        padding="max_length" if settings["filled"] else True,
        return_tensors="pt",
    )
    return {"input_ids": encoded["input_ids"]} if settings["filled"] else dict(encoded)


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


def _labels(config: Any) -> str | None:
    """What labels a model was trained with, as far as can be known."""
    saved = (getattr(config, "architectures", None) or [""])[0]
    classes = getattr(config, "id2label", None) or {}
    return f"{len(classes)} classes" if _CLASSIFIER.search(saved) else None
