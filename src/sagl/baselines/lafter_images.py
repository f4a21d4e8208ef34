"""Images for LaFTer: read, cropped as CLIP does, or distorted, by Pillow.

The distortions and their strengths are the usual ones of self-supervised learning.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sagl.environment import optional_module
from sagl.features.images import image_from_file
from sagl.features.samples import Unreadable

Image = Any  # a PIL.Image.Image in RGB
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


def check_images(images: Images, n: int) -> None:
    """Refuse what is not a path or an array of (height, width, 3) for each sample."""
    if len(images) != n:
        raise ValueError(f"{n} samples need as many images; got {len(images)}")
    for i, image in enumerate(images):
        array = np.asarray(image)
        if not isinstance(image, str | Path) and (
            array.ndim != 3 or array.shape[2] != 3 or array.dtype != np.uint8
        ):
            raise ValueError(
                f"image {i} is an array of {array.dtype} of shape {array.shape}; "
                "expected a path, or (height, width, 3) of uint8"
            )


def read_image(image: str | Path | NDArray[np.uint8]) -> Image:
    """An image file, or an array, as a PIL image."""
    if not isinstance(image, str | Path):
        return optional_module("PIL.Image").fromarray(np.asarray(image))
    try:
        return image_from_file(Path(image))
    except Unreadable as error:
        raise ValueError(f"{image}: cannot be read as a picture ({error})") from None


def as_tensor(images: Sequence[Image]) -> Tensor:
    """Images of one size as (n, 3, height, width), scaled as CLIP wants them."""
    pixels = torch.from_numpy(np.stack([np.asarray(image) for image in images]))
    scaled = (pixels / 255 - torch.tensor(_MEAN)) / torch.tensor(_DEVIATION)
    return scaled.permute(0, 3, 1, 2).contiguous()


def plain_crop(image: Image, size: int) -> Image:
    """The central square, after the shorter side was brought to ``size``."""
    scale = size / min(image.size)
    width, height = (max(size, int(side * scale)) for side in image.size)
    bicubic = optional_module("PIL.Image").Resampling.BICUBIC
    left, top = round((width - size) / 2), round((height - size) / 2)
    resized = image.resize((width, height), bicubic)
    return resized.crop((left, top, left + size, top + size))


def distorted(image: Image, size: int, random: np.random.Generator) -> Image:
    """A random crop, perhaps mirrored, in other colours, blurred."""
    width, height = image.size
    box = crop_box(width, height, random)
    bilinear = optional_module("PIL.Image").Resampling.BILINEAR
    image = image.resize((size, size), bilinear, box=box)
    if random.random() < 0.5:
        image = optional_module("PIL.ImageOps").mirror(image)
    if random.random() < _JITTER_CHANCE:
        image = _jittered(image, random)
    if random.random() < _GREY_CHANCE:
        image = image.convert("L").convert("RGB")
    blur = optional_module("PIL.ImageFilter").GaussianBlur(random.uniform(*_BLUR))
    return image.filter(blur)


def crop_box(
    width: int, height: int, random: np.random.Generator
) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of a random part of an image."""
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


def _jittered(image: Image, random: np.random.Generator) -> Image:
    enhance = optional_module("PIL.ImageEnhance")
    kinds = (enhance.Brightness, enhance.Contrast, enhance.Color)
    factors = random.uniform(1 - _JITTER, 1 + _JITTER, size=3)
    turn = random.uniform(-_HUE_JITTER, _HUE_JITTER)
    for i in random.permutation(4):  # colours one after the other, hue among them
        if i == 3:
            image = turned_hue(image, turn)
        else:
            image = kinds[i](image).enhance(factors[i])
    return image


def turned_hue(image: Image, turn: float) -> Image:
    """All hues moved by a part of a full turn."""
    hue, *rest = image.convert("HSV").split()
    shift = round(turn * 256)
    moved = hue.point([(value + shift) % 256 for value in range(256)])
    merge = optional_module("PIL.Image").merge
    return merge("HSV", (moved, *rest)).convert("RGB")
