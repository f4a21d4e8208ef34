"""``timm:`` Vision models of the timm library."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from sagl.features.pretrained import (
    check_features,
    describe_model,
    digest_weights,
    optional_module,
    run_frozen,
    warn_about_labels,
)
from sagl.features.samples import Kind

__all__ = ["TimmBackbone", "load_timm"]

_EXTRA = "timm"
# Tags such as fcmae_ft_in22k_in1k name the labelled sets that a model was trained on.
_LABELLED = re.compile(r"(?:^|_)in(1k|12k|21k|22k)(?=_|$)")


class TimmBackbone:
    """A frozen model of timm without its classifier, with its own preprocessing.

    Made by :func:`load_timm`. Copies made by pickling have no weights: they can prepare
    samples and cannot embed them.
    """

    kind: Kind = "image"

    def __init__(
        self, name: str, model: Any, transform: Any, settings: Any, device: torch.device
    ) -> None:
        self.name = name
        self._about: dict[str, Any] = dict(getattr(model, "pretrained_cfg", None) or {})
        self._transform = transform
        self._settings = settings
        self._device = device
        self._model: nn.Module | None = model.to(device)
        size = settings["input_size"]
        self.dim = self.embed([torch.zeros(*size)]).shape[1]
        self._revision  # noqa: B018 - while there are weights

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_model": None}

    @property
    def labels(self) -> str | None:
        """The labelled sets that it was trained on."""
        tag = str(self._about.get("tag") or "")
        sets = [f"ImageNet-{size}" for size in _LABELLED.findall(tag)]
        return " and ".join(sets) if sets and self._about.get("num_classes") else None

    def prepare(self, sample: Any) -> Any:
        """A picture as a tensor, by the transform that belongs to the model."""
        return self._transform(sample)

    def embed(self, prepared: Sequence[Any]) -> Tensor:
        """Features of a batch, (b, dim), float32, on the CPU."""
        if self._model is None:
            raise RuntimeError(f"{self.name}: this copy was made without the weights")
        model, pixels = self._model, torch.stack(list(prepared)).to(self._device)
        features = run_frozen(lambda: model(pixels), self._device)
        check_features(features, len(prepared))
        return features

    def describe(self) -> dict[str, Any]:
        return describe_model(
            "timm",
            self.name.removeprefix("timm:"),
            self._revision,
            self.dim,
            kind=self.kind,
            pooling="pooler",
            preprocessing=json.loads(json.dumps(self._settings, default=str)),
            licence=self._about.get("license"),
            labels=self.labels,
            library=f"timm {optional_module('timm', _EXTRA).__version__}",
        )

    @cached_property
    def _revision(self) -> str:
        if self._model is None:
            raise RuntimeError(f"{self.name}: this copy was made without the weights")
        return digest_weights(self._model)


def load_timm(
    identifier: str, *, name: str | None = None, device: torch.device | None = None
) -> TimmBackbone:
    """A backbone by its name in timm, such as ``convnextv2_tiny.fcmae``."""
    timm = optional_module("timm", _EXTRA)
    data = optional_module("timm.data", _EXTRA)
    name = name or f"timm:{identifier}"
    try:
        model = timm.create_model(identifier, pretrained=True, num_classes=0)
    except (RuntimeError, OSError, ValueError, ImportError) as error:
        raise ValueError(f"{name}: {_reason(timm, identifier, error)}") from None
    model = model.float().eval().requires_grad_(False)
    settings = data.resolve_model_data_config(model)
    transform = data.create_transform(**settings, is_training=False)
    backbone = TimmBackbone(
        name, model, transform, settings, device or torch.device("cpu")
    )
    if backbone.labels:
        warn_about_labels(name, backbone.labels)
    return backbone


def _reason(timm: Any, identifier: str, error: Exception) -> str:
    said = " ".join(str(error).split())
    if isinstance(error, OSError):
        return (
            f"its weights cannot be had ({said}); download them where there is a "
            "network and point HF_HOME at them"
        )
    names = timm.list_models(pretrained=True)
    if "Unknown model" not in said and identifier in names:
        return said
    close = difflib.get_close_matches(identifier, names, n=3)
    hint = f"; did you mean timm:{' or timm:'.join(close)}?" if close else ""
    return f"timm has no pretrained model of this name ({said}){hint}"
