"""Images for LaFTer: read, cropped or distorted, and the CLIP encoder it tunes on them.

The distortions and their strengths are the usual ones of self-supervised learning.
Pillow does the work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sagl.baselines.base import State
from sagl.features.pretrained import load_model, optional_module

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

_CLASSES = {
    "clip": "CLIPVisionModelWithProjection",
    "clip_vision_model": "CLIPVisionModelWithProjection",
}
_NORM = "norm."


class ImageList:
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

    def __getitem__(self, i: int) -> Image:
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


def as_tensor(images: Sequence[Image]) -> Tensor:
    """Images of one size as (n, 3, height, width), scaled as CLIP wants them."""
    pixels = torch.from_numpy(np.stack([np.asarray(image) for image in images]))
    scaled = (pixels / 255 - torch.tensor(_MEAN)) / torch.tensor(_DEVIATION)
    return scaled.permute(0, 3, 1, 2).contiguous()


def plain_crop(image: Image, size: int) -> Image:
    """The central square, after the shorter side was brought to ``size``."""
    width, height = image.size
    scale = size / min(width, height)
    width, height = max(size, int(width * scale)), max(size, int(height * scale))
    resized = image.resize((width, height), _filter("BICUBIC"))
    left, top = round((width - size) / 2), round((height - size) / 2)
    return resized.crop((left, top, left + size, top + size))


def distorted(image: Image, size: int, random: np.random.Generator) -> Image:
    """A random crop, perhaps mirrored, in other colours, blurred."""
    image = _random_crop(image, size, random)
    if random.random() < 0.5:
        image = optional_module("PIL.ImageOps").mirror(image)
    if random.random() < _JITTER_CHANCE:
        image = _jittered(image, random)
    if random.random() < _GREY_CHANCE:
        image = image.convert("L").convert("RGB")
    blur = optional_module("PIL.ImageFilter").GaussianBlur(random.uniform(*_BLUR))
    return image.filter(blur)


def _random_crop(image: Image, size: int, random: np.random.Generator) -> Image:
    width, height = image.size
    box = crop_box(width, height, random)
    return image.resize((size, size), _filter("BILINEAR"), box=box)


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
    changes: list[Callable[[Image], Image]] = [
        lambda p: enhance.Brightness(p).enhance(factors[0]),
        lambda p: enhance.Contrast(p).enhance(factors[1]),
        lambda p: enhance.Color(p).enhance(factors[2]),
        lambda p: turned_hue(p, turn),
    ]
    factors = random.uniform(1 - _JITTER, 1 + _JITTER, size=3)
    turn = random.uniform(-_HUE_JITTER, _HUE_JITTER)
    for i in random.permutation(len(changes)):
        image = changes[i](image)
    return image


def turned_hue(image: Image, turn: float) -> Image:
    """All hues moved by a part of a full turn."""
    hue, *rest = image.convert("HSV").split()
    shift = round(turn * 256)
    moved = hue.point([(value + shift) % 256 for value in range(256)])
    merge = optional_module("PIL.Image").merge
    return merge("HSV", (moved, *rest)).convert("RGB")


def _filter(name: str) -> Any:
    return getattr(optional_module("PIL.Image").Resampling, name)


class PromptedEncoder(nn.Module):
    """A vision transformer that also attends to ``prompts``, (tokens, hidden width).

    The prompts stand between the class token and the patches. They and the scales and
    shifts of the layer norms can be learned; all else is frozen.
    """

    def __init__(self, transformer: Any, n_prompts: int, generator: torch.Generator):
        super().__init__()
        self.transformer = transformer.requires_grad_(False)
        config = transformer.config
        self.size: int = config.image_size
        bound = math.sqrt(6 / (3 * config.patch_size**2 + config.hidden_size))
        prompts = torch.empty(n_prompts, config.hidden_size)
        self.prompts = nn.Parameter(
            prompts.uniform_(-bound, bound, generator=generator)
        )
        for norm in self._norms().values():
            norm.requires_grad_(True)
        self._prompting = False
        # Positions have been added when the first norm is done, and no layer has run.
        _first_norm(transformer).register_forward_hook(self._insert)

    def forward(self, pixels: Tensor, prompted: bool = True) -> Tensor:
        """Image features, (n, width), not normalised."""
        self._prompting = prompted
        features: Tensor = self.transformer(pixel_values=pixels).image_embeds
        return features

    def _insert(self, module: nn.Module, inputs: Any, tokens: Tensor) -> Tensor:
        if not self._prompting:
            return tokens
        prompts = self.prompts.expand(len(tokens), -1, -1)
        return torch.cat([tokens[:, :1], prompts, tokens[:, 1:]], dim=1)

    def learned(self) -> State:
        """What tuning changes, on the CPU."""
        tensors = {"prompts": self.prompts}
        tensors |= {_NORM + name: p for name, p in self._norms().items()}
        return {name: t.detach().cpu() for name, t in tensors.items()}

    @torch.no_grad()
    def adopt(self, state: State) -> None:
        """Take over what ``learned`` gave."""
        self.prompts.copy_(state["prompts"])
        for name, parameter in self._norms().items():
            parameter.copy_(state[_NORM + name])

    def _norms(self) -> dict[str, nn.Parameter]:
        return {
            f"{name}.{which}": parameter
            for name, module in self.transformer.named_modules()
            if isinstance(module, nn.LayerNorm)
            for which, parameter in module.named_parameters()
        }

    @torch.no_grad()
    def encode(self, images: ImageList) -> NDArray[np.float32]:
        """Features of images, one at a time: the same bits in any company."""
        device = self.prompts.device
        rows = [
            self(as_tensor([plain_crop(images[i], self.size)]).to(device))
            for i in range(len(images))
        ]
        encoded: NDArray[np.float32] = torch.cat(rows).cpu().numpy()
        return encoded


def load_encoder(
    source: str | Path,
    width: int,
    n_prompts: int,
    generator: torch.Generator,
    device: torch.device,
) -> PromptedEncoder:
    """A CLIP vision transformer with fresh prompts, its features of that width."""
    transformer = load_model(source, _CLASSES)
    if transformer.config.projection_dim != width:
        raise ValueError(
            f"{source} makes image features of width "
            f"{transformer.config.projection_dim}, the texts have {width}; both must "
            "come from the same model"
        )
    return PromptedEncoder(transformer, n_prompts, generator).to(device)


def _first_norm(transformer: nn.Module) -> nn.Module:
    """The norm between the embeddings and the layers."""
    for name, module in transformer.named_modules():
        # transformers spells it pre_layrnorm
        if isinstance(module, nn.LayerNorm) and name.split(".")[-1].startswith("pre_"):
            return module
    raise ValueError(
        "the image encoder has no layer norm before its layers, as CLIP has"
    )
