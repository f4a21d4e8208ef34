"""Pictures as the numbers that a model of transformers reads: its own processor."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from sagl.features.backbones.pretrained import Place, optional_module, reading

Picture = Any  # a PIL.Image.Image in mode RGB

# By the numbers that Pillow gives them.
_INTERPOLATION = {0: "nearest", 2: "bilinear", 3: "bicubic"}


class Processor(Protocol):
    """One picture as the inputs of a model. Can be pickled."""

    def __call__(self, picture: Picture) -> dict[str, Tensor]: ...

    def describe(self) -> dict[str, Any]: ...


class OwnProcessor:
    """The processor that was saved with a model."""

    def __init__(self, processor: Any) -> None:
        self._processor = processor

    def __call__(self, picture: Picture) -> dict[str, Tensor]:
        made = self._processor(images=picture, return_tensors="pt")
        names = self._processor.model_input_names
        return {name: made[name][0] for name in names if name in made}

    def describe(self) -> dict[str, Any]:
        settings: dict[str, Any] = json.loads(self._processor.to_json_string())
        return settings


class DINOv3Processor:
    """What transformers does for DINOv3, without torchvision.

    transformers has this processor for torchvision alone. It is scaling to [0, 1],
    smooth resizing, standardising colours, in this order, and torch can do all three.

    Parameters
    ----------
    settings : mapping
        The content of the model's ``preprocessor_config.json``.
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

    def __call__(self, picture: Picture) -> dict[str, Tensor]:
        wanted = self._settings
        pixels = torch.from_numpy(np.array(picture)).permute(2, 0, 1).unsqueeze(0)
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
