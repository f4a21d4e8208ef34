"""Small pictures to read, of known colours."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def noise(size: tuple[int, int] = (40, 30), seed: int = 0) -> Image.Image:
    """Pixels that no format can make small: cutting the file loses some of them."""
    width, height = size
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    return Image.fromarray(pixels)


def encoded(image: Image.Image, form: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, form, **options)
    return stream.getvalue()


def save_picture(path: Path, colour: tuple[int, int, int] = RED) -> Path:
    """A plain picture; the format is that of the suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 6), colour).save(path)
    return path


def colour_of(image: Image.Image) -> tuple[int, ...]:
    """The colour of a plain picture, rounded as far as JPEG spoils it."""
    assert image.mode == "RGB"
    mean = np.asarray(image, dtype=float).mean(axis=(0, 1))
    return tuple(int(round(value / 15) * 15) for value in mean)
