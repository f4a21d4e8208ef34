"""``hf:`` Vision and text models of the transformers library.

A model, its own preprocessing, and how its output becomes one row of features: a
projection, its own pooled output, or tokens pooled as sentence-transformers saved it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from sagl.features.backbones import KNOWN
from sagl.features.model_io import (
    Processor,
    SentenceSettings,
    TextTokens,
    load_processor,
    pool_tokens,
    pooled_output,
    read_sentence_settings,
    tokens_for,
)
from sagl.features.pretrained import (
    Place,
    check_features,
    describe_model,
    find_place,
    load_config,
    load_tokenizer,
    load_weights,
    optional_module,
    reading,
    refuse_missing,
    run_frozen,
    warn_about_labels,
)
from sagl.features.samples import Kind
from sagl.storage import sha256

__all__ = ["HuggingFaceBackbone", "load_huggingface"]

# projection: into the space that pictures and texts share; pooler: the model's own
# pooled output; the others choose among tokens.
Pooling = Literal["projection", "pooler", "cls", "mean", "last", "max"]

_INPUTS: dict[str, Kind] = {"pixel_values": "image", "input_ids": "text"}
_KNOWN_MODELS = {known.model: known for known in KNOWN.values()}
_CLASSIFIER = re.compile(r"For(Image|Sequence)Classification$")
_LICENCE = re.compile(r"\A---\n.*?^license:\s*(\S+)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class _Loaded:
    """A model and what has been found out about it."""

    model: nn.Module
    kind: Kind
    pooling: Pooling
    sentence: SentenceSettings
    labels: str | None  # that it was trained with


class HuggingFaceBackbone:
    """A frozen model of the transformers library, with its own preprocessing.

    Made by :func:`load_huggingface`. Copies made by pickling have no weights: they can
    prepare samples and cannot embed them.
    """

    def __init__(
        self,
        name: str,
        place: Place,
        loaded: _Loaded,
        inputs: Processor | TextTokens,
        device: torch.device,
    ) -> None:
        self.name = name
        self.kind: Kind = loaded.kind
        self.pooling: Pooling = loaded.pooling
        self._place = place
        self._sentence = loaded.sentence
        self._labels = loaded.labels
        self._inputs = inputs
        self._device = device
        self._model: nn.Module | None = loaded.model.to(device)
        self.dim = self._probe()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_model": None}

    def prepare(self, sample: Any) -> Any:
        """A picture as tensors, or a text as token numbers."""
        return self._inputs(sample)

    def embed(self, prepared: Sequence[Any]) -> Tensor:
        """Features of a batch, (b, dim), float32, on the CPU."""
        if self._model is None:
            raise RuntimeError(f"{self.name}: this copy was made without the weights")
        if not _alike(prepared):
            return torch.cat([self.embed([one]) for one in prepared])
        batch = {k: v.to(self._device) for k, v in self._batch(prepared).items()}
        features = run_frozen(lambda: self._features(batch), self._device)
        check_features(features, len(prepared))
        return features

    def describe(self) -> dict[str, Any]:
        return describe_model(
            "hf",
            self._place.name,
            self._revision,
            self.dim,
            kind=self.kind,
            pooling=self.pooling,
            normalized=self._sentence.normalize,
            preprocessing=self._inputs.describe(),
            licence=self._licence,
            labels=self._labels,
            library=f"transformers {optional_module('transformers').__version__}",
        )

    @cached_property
    def _revision(self) -> str | None:
        """The commit on the hub, or a checksum of the weights of a directory."""
        if not self._place.local:
            return self._place.revision
        return _digest_directory(Path(self._place.source))

    @property
    def _licence(self) -> str | None:
        if not self._place.local:
            known = _KNOWN_MODELS.get(self._place.source)
            return None if known is None else known.licence
        card = Path(self._place.source) / "README.md"
        if not card.is_file():
            return None
        licence = _LICENCE.search(card.read_text(encoding="utf-8", errors="replace"))
        return licence.group(1).strip("\"'") if licence else None

    def _probe(self) -> int:
        """The width of the features, found by embedding something small."""
        sample: Any = "a text"
        if self.kind == "image":
            sample = optional_module("PIL.Image").new("RGB", (32, 32), (99, 120, 80))
        try:
            prepared = self.prepare(sample)
            once, again = self.embed([prepared]), self.embed([prepared])
            if not once.isfinite().all():
                raise ValueError("its features are infinite or not numbers: damaged")
        except (RuntimeError, TypeError, ValueError, KeyError, AttributeError) as error:
            said = " ".join(str(error).split())
            raise ValueError(f"{self.name}: cannot be used to embed: {said}") from None
        if not torch.equal(once, again):
            raise ValueError(
                f"{self.name}: gives other features each time (it hides parts of its "
                "input at random); use a model without that"
            )
        return once.shape[1]

    def _batch(self, prepared: Sequence[Any]) -> dict[str, Tensor]:
        if isinstance(self._inputs, TextTokens):
            return self._inputs.batch(prepared)
        return {key: torch.stack([p[key] for p in prepared]) for key in prepared[0]}

    def _features(self, batch: dict[str, Tensor]) -> Tensor:
        model: Any = self._model
        if self.pooling == "projection":
            both = {"image": "get_image_features", "text": "get_text_features"}
            output = getattr(model, both[self.kind], model)(**batch)
        else:
            output = model(**batch)
        if self.pooling in ("projection", "pooler"):
            features = pooled_output(output)
            if features is None:
                raise ValueError(
                    "it has no pooled output; use a model that has one, or a function "
                    f"of a list of {self.kind}s: module:function#{self.kind}"
                )
            return features
        states: Tensor = output.last_hidden_state
        mask = batch.get("attention_mask")
        if mask is None:
            mask = torch.ones(states.shape[:2], device=states.device)
        tokens = "cls" if self.kind == "image" else self._sentence.pooling
        features = pool_tokens(states, mask, tokens)
        return (
            nn.functional.normalize(features) if self._sentence.normalize else features
        )


def load_huggingface(
    identifier: str,
    *,
    name: str | None = None,
    side: Kind | None = None,
    revision: str | None = None,
    device: torch.device | None = None,
    trust_remote_code: bool = False,
) -> HuggingFaceBackbone:
    """A backbone from a directory that holds a model of transformers, or the hub.

    ``name`` is what the user calls it; ``side`` chooses what a model that embeds both
    embeds, by default images; ``revision`` is a branch, tag or commit on the hub.
    """
    name = name or f"hf:{identifier}"
    config, place = load_config(find_place(identifier, revision, trust_remote_code))
    loaded = _load(place, config, side)
    if loaded.labels:
        warn_about_labels(name, loaded.labels)
    inputs: Processor | TextTokens
    if loaded.kind == "image":
        inputs = load_processor(place)
    else:
        inputs = tokens_for(
            load_tokenizer(place),
            loaded.model,
            longest=loaded.sentence.longest,
            prefix=loaded.sentence.prompt,
            lower=loaded.sentence.lower,
        )
    return HuggingFaceBackbone(
        name, place, loaded, inputs, device or torch.device("cpu")
    )


def _load(place: Place, config: Any, side: Kind | None) -> _Loaded:
    with reading(place) as transformers:
        model, missing = load_weights(_class(transformers, config), place)
        kind = _kind(model, config, side)
        lost_pooler = [key for key in missing if "pooler" in key.split(".")]
        refuse_missing(sorted(set(missing) - set(lost_pooler)))
    if _embeds_both(model):
        _drop_other_tower(model, kind)
    sentence = SentenceSettings()
    pooling: Pooling = "pooler"
    if _embeds_both(model) or type(model).__name__.endswith("WithProjection"):
        pooling = "projection"
    elif kind == "text" and not config.model_type.endswith("_text_model"):
        sentence = read_sentence_settings(place)
        pooling = sentence.pooling
    elif (lost_pooler or _lacks_pooler(model)) and _has_class_token(model):
        pooling = "cls"  # a pooler that was never trained is worth nothing
    return _Loaded(model, kind, pooling, sentence, _taught(place, config))


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
    kind = _INPUTS.get(model.main_input_name)
    if kind is None:
        raise ValueError(
            f"it is a model of kind {config.model_type!r}, which takes "
            f"{model.main_input_name}; needed is one that takes pictures or texts"
        )
    if side is not None and side != kind:
        raise ValueError(f"it embeds {kind}s, and #{side} was asked for")
    return kind


def _embeds_both(model: Any) -> bool:
    return hasattr(model, "get_image_features") and hasattr(model, "get_text_features")


def _drop_other_tower(model: Any, kind: Kind) -> None:
    """Half of the memory of CLIP is for the other kind of sample."""
    other = "text_model" if kind == "image" else "vision_model"
    if isinstance(getattr(model, other, None), nn.Module):
        setattr(model, other, None)


def _lacks_pooler(model: Any) -> bool:
    return hasattr(model, "pooler") and model.pooler is None


def _has_class_token(model: nn.Module) -> bool:
    return any(name.endswith("cls_token") for name, _ in model.named_parameters())


def _taught(place: Place, config: Any) -> str | None:
    """What labels a model was trained with, as far as can be known."""
    known = None if place.local else _KNOWN_MODELS.get(place.source)
    if known is not None:
        return known.labels
    saved = (getattr(config, "architectures", None) or [""])[0]
    if not _CLASSIFIER.search(saved):
        return None
    classes = list((getattr(config, "id2label", None) or {}).values())
    such = "" if not classes or str(classes[0]).startswith("LABEL_") else classes[0]
    return f"{len(classes)} classes" + (f" such as {such}" if such else "")


def _alike(prepared: Sequence[Any]) -> bool:
    """Whether pictures can stand in one batch; texts always can."""
    shapes = {
        tuple((k, tuple(v.shape)) for k, v in one.items() if isinstance(v, Tensor))
        for one in prepared
    }
    return len(shapes) <= 1


def _digest_directory(directory: Path) -> str:
    """A checksum of the weights: of the file, or of all files if there are several."""
    files = sorted(directory.glob("*.safetensors")) or sorted(directory.glob("*.bin"))
    sums = [sha256(file) for file in files]
    if len(sums) == 1:
        return sums[0]
    return hashlib.sha256("".join(sums).encode()).hexdigest()
