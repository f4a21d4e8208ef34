"""Pictures for image encoders: read one by one, cropped plainly or distorted.

The distortions and their strengths are those that LaFTer tunes with, the usual ones of
self-supervised learning. Pillow does the work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sagl.features.pretrained import optional_module

Picture = Any  # a PIL.Image.Image in RGB
Images = Sequence[str | Path] | Sequence[NDArray[np.uint8]] | NDArray[np.uint8]

# Colours as CLIP was trained on them.
_MEAN = (0.48145466, 0.4578275, 0.40821073)
_DEVIATION = (0.26862954, 0.26130258, 0.27577711)

_SMALLEST_AREA = 0.2  # of a random crop, as a part of the whole
_LARGEST_RATIO = 4 / 3  # of its sides
_CROP_TRIALS = 10
_JITTER = 0.4  # of brightness, contrast and saturation
_HUE_JITTER = 0.1  # of a full turn
_JITTER_CHANCE = 0.8
_GREY_CHANCE = 0.2
_BLUR = (0.1, 2.0)  # standard deviation in pixels


class Pictures:
    """Image files, or arrays of shape (height, width, 3) in uint8, as PIL images."""

    def __init__(self, images: Images) -> None:
        self._images = images
        for i, image in enumerate(images):
            if isinstance(image, str | Path):
                continue
            array = np.asarray(image)
            if array.ndim != 3 or array.shape[2] != 3 or array.dtype != np.uint8:
                raise ValueError(
                    f"image {i} is an array of {array.dtype} of shape {array.shape}; "
                    "expected a path, or (height, width, 3) of uint8"
                )

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, i: int) -> Picture:
        image = self._images[i]
        pillow = optional_module("PIL.Image")
        if not isinstance(image, str | Path):
            return pillow.fromarray(np.asarray(image))
        try:
            with pillow.open(image) as file:
                return file.convert("RGB")
        except (OSError, pillow.DecompressionBombError) as error:
            raise ValueError(
                f"{image}: cannot be read as a picture ({error})"
            ) from None


def as_tensor(pictures: Sequence[Picture]) -> Tensor:
    """Pictures of one size as (n, 3, height, width), scaled as CLIP wants them."""
    pixels = torch.from_numpy(np.stack([np.asarray(picture) for picture in pictures]))
    scaled = (pixels / 255 - torch.tensor(_MEAN)) / torch.tensor(_DEVIATION)
    return scaled.permute(0, 3, 1, 2).contiguous()


def plain_crop(picture: Picture, size: int) -> Picture:
    """The central square, after the shorter side was brought to ``size``."""
    width, height = picture.size
    scale = size / min(width, height)
    width, height = max(size, int(width * scale)), max(size, int(height * scale))
    resized = picture.resize((width, height), _filter("BICUBIC"))
    left, top = round((width - size) / 2), round((height - size) / 2)
    return resized.crop((left, top, left + size, top + size))


def distorted(picture: Picture, size: int, random: np.random.Generator) -> Picture:
    """A random crop, perhaps mirrored, in other colours, blurred."""
    picture = _random_crop(picture, size, random)
    if random.random() < 0.5:
        picture = optional_module("PIL.ImageOps").mirror(picture)
    if random.random() < _JITTER_CHANCE:
        picture = _jittered(picture, random)
    if random.random() < _GREY_CHANCE:
        picture = picture.convert("L").convert("RGB")
    blur = optional_module("PIL.ImageFilter").GaussianBlur(random.uniform(*_BLUR))
    return picture.filter(blur)


def _random_crop(picture: Picture, size: int, random: np.random.Generator) -> Picture:
    width, height = picture.size
    box = crop_box(width, height, random)
    return picture.resize((size, size), _filter("BILINEAR"), box=box)


def crop_box(
    width: int, height: int, random: np.random.Generator
) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of a random part of a picture."""
    widest = math.log(_LARGEST_RATIO)
    for _ in range(_CROP_TRIALS):
        area = width * height * random.uniform(_SMALLEST_AREA, 1)
        ratio = math.exp(random.uniform(-widest, widest))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            left = int(random.integers(width - w + 1))
            top = int(random.integers(height - h + 1))
            return left, top, left + w, top + h
    return 0, 0, width, height


def _jittered(picture: Picture, random: np.random.Generator) -> Picture:
    enhance = optional_module("PIL.ImageEnhance")
    changes: list[Callable[[Picture], Picture]] = [
        lambda p: enhance.Brightness(p).enhance(factors[0]),
        lambda p: enhance.Contrast(p).enhance(factors[1]),
        lambda p: enhance.Color(p).enhance(factors[2]),
        lambda p: turned_hue(p, turn),
    ]
    factors = random.uniform(1 - _JITTER, 1 + _JITTER, size=3)
    turn = random.uniform(-_HUE_JITTER, _HUE_JITTER)
    for i in random.permutation(len(changes)):
        picture = changes[i](picture)
    return picture


def turned_hue(picture: Picture, turn: float) -> Picture:
    """All hues moved by a part of a full turn."""
    hue, *rest = picture.convert("HSV").split()
    shift = round(turn * 256)
    moved = hue.point([(value + shift) % 256 for value in range(256)])
    merge = optional_module("PIL.Image").merge
    return merge("HSV", (moved, *rest)).convert("RGB")


def _filter(name: str) -> Any:
    return getattr(optional_module("PIL.Image").Resampling, name)
