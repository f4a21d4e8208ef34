"""Small pictures of samples, and first words of texts, for a page."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sagl.features.samples import Unreadable
from sagl.report.style import load

SIDE = 80  # pixels of the longer side
_PIXELATED = 40  # pictures up to this size are kept pixel by pixel
_PNG_MODES = ("1", "L", "LA", "P", "RGB", "RGBA")
_QUALITY = 72
_TEXT = 400  # characters of a text that are shown


@dataclass(frozen=True)
class Thumbnails:
    """Encoded pictures by row.

    Attributes
    ----------
    pictures : dict of int to bytes
        WebP or JPEG, or PNG for pictures of a few pixels.
    pixelated : bool
        Whether they are so small that pixels should stay squares when enlarged.
    unreadable : int
        How many rows could not be read.
    """

    pictures: dict[int, bytes]
    pixelated: bool
    unreadable: int


def make_thumbnails(
    rows: Iterable[int],
    sample: Callable[[int], Any],
    progress: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> Thumbnails:
    """Thumbnails of the given rows; what cannot be read is left out and counted."""
    pictures: dict[int, bytes] = {}
    unreadable = 0
    pixelated = True
    for row in progress(rows):
        try:
            image = sample(row)
        except Unreadable:
            unreadable += 1
            continue
        small = max(image.size) <= _PIXELATED
        pixelated &= small
        pictures[row] = _png(image) if small else _small(image)
    return Thumbnails(pictures, pixelated and bool(pictures), unreadable)


def data_address(picture: bytes) -> str:
    """The picture as an address that needs no network."""
    kinds = {b"\x89PNG": "png", b"\xff\xd8": "jpeg", b"RIFF": "webp"}
    kind = next(name for start, name in kinds.items() if picture.startswith(start))
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode()}"


def first_words(text: str, limit: int = _TEXT) -> str:
    """The beginning of a text, marked when it goes on.

    Examples
    --------
    >>> first_words("a long story", 6)
    'a long…'
    """
    return text if len(text) <= limit else text[:limit].rstrip() + "…"


def _png(image: Any) -> bytes:
    if image.mode not in _PNG_MODES:
        image = image.convert("RGB")
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


def _small(image: Any) -> bytes:
    image = image.convert("RGB")  # a copy: thumbnail() works in place
    image.thumbnail((SIDE, SIDE))
    file = io.BytesIO()
    webp = load("PIL.features").check("webp")
    image.save(file, "WEBP" if webp else "JPEG", quality=_QUALITY)
    return file.getvalue()
