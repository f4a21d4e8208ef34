"""From the bytes of a picture file to an upright RGB image, or the reason why not.

- Pictures are turned as their EXIF tag says; of an animation the first frame is taken.
- Transparent pixels are laid over white: what is hidden below them is arbitrary.
- 16-bit greys are scaled to 8 bits (65,535 becomes 255), floats in 0 .. 1 likewise.
- More than ``MAX_PIXELS`` are refused: such a file may be a decompression bomb.
- Formats that run other programs to be read (EPS) are not opened at all.
"""

from __future__ import annotations

import io
import stat
import warnings
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sagl.features.samples import Unreadable

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

MAX_PIXELS = 89_478_485  # Pillow warns from here on: a quarter of a gigabyte as RGB

IMAGE_SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".gif", ".webp", ".bmp"}
    | {".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".pnm", ".jp2", ".avif"}
    | {".heic", ".heif"}  # not readable as yet, but pictures: said so one by one
)

_FORMATS = (
    *("JPEG", "MPO", "PNG", "GIF", "WEBP", "BMP", "DIB", "TIFF", "PPM"),
    *("JPEG2000", "AVIF", "HEIF"),  # where Pillow or a plugin has them
)
_HEIC_BRANDS = {b"heic", b"heix", b"heim", b"heis", b"hevc", b"mif1", b"msf1"}
_ORIENTATION = 0x0112  # the EXIF tag


def is_image_name(name: str) -> bool:
    """Whether a file name ends like that of a picture.

    >>> is_image_name("holiday/IMG_1.JPG"), is_image_name("notes.txt")
    (True, False)
    """
    _, dot, suffix = name.rpartition(".")
    return bool(dot) and f".{suffix.lower()}" in IMAGE_SUFFIXES


def require_pillow() -> None:
    """Say what to install, before thousands of pictures fail one by one."""
    try:
        import PIL.Image  # noqa: F401
    except ImportError:
        raise ValueError(
            'reading pictures needs Pillow: pip install "sagl[backbones]"'
        ) from None


def image_from_file(path: Path) -> Picture:
    """The picture in a file, upright and in mode RGB.

    Raises
    ------
    Unreadable
        When there is none; the message says why.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise Unreadable("not a regular file")
        with path.open("rb") as file:
            return _decode(file)
    except FileNotFoundError:
        raise Unreadable("no such file") from None
    except PermissionError:
        raise Unreadable("permission denied") from None
    except OSError as error:
        raise Unreadable(f"cannot be opened ({error.strerror or error})") from None


def image_from_bytes(data: bytes) -> Picture:
    """The picture in the bytes of a file, upright and in mode RGB.

    Raises
    ------
    Unreadable
        When there is none; the message says why.
    """
    return _decode(io.BytesIO(data))


def _decode(stream: IO[bytes]) -> Picture:
    from PIL import Image, UnidentifiedImageError

    with warnings.catch_warnings():
        # Pillow warns of odd metadata; here a picture is either decoded or refused.
        warnings.simplefilter("ignore")
        try:
            with Image.open(stream, formats=_formats()) as image:
                _check_size(image)
                image.load()
                return _to_rgb(_upright(image))
        except Unreadable:
            raise
        except UnidentifiedImageError:
            raise Unreadable(_why_not_identified(stream)) from None
        except Image.DecompressionBombError as error:
            raise Unreadable(f"may be a decompression bomb ({error})") from None
        # Broken bytes make Pillow raise nearly anything: OSError, SyntaxError,
        # struct.error, IndexError, ... and one broken file must not end the run.
        except Exception as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise Unreadable(f"broken or cut short ({reason[:120]})") from None


@cache
def _formats() -> tuple[str, ...]:
    """Those of ``_FORMATS`` that this Pillow reads."""
    from PIL import Image

    Image.init()
    return tuple(name for name in _FORMATS if name in Image.OPEN)


def _why_not_identified(stream: IO[bytes]) -> str:
    stream.seek(0)
    start = stream.read(12)
    if not start:
        return "empty file (0 bytes)"
    if start[4:8] == b"ftyp" and start[8:12] in _HEIC_BRANDS:
        return "HEIC picture, which Pillow does not read; convert it to JPEG or PNG"
    return "not a picture, or its start is damaged"


def _check_size(image: Picture) -> None:
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise Unreadable(
            f"{width} x {height} pixels, more than {MAX_PIXELS:,}: may be a "
            "decompression bomb; shrink it"
        )
    if width * height == 0:
        raise Unreadable(f"{width} x {height} pixels: nothing to see")


def _upright(image: Picture) -> Picture:
    """Turned as the EXIF tag says; a tag that cannot be read says nothing."""
    from PIL.Image import Transpose

    turns = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    try:
        orientation: Any = image.getexif().get(_ORIENTATION)
        turn = turns.get(orientation)
    except Exception:  # damaged metadata around intact pixels
        return image
    return image if turn is None else image.transpose(turn)


def _to_rgb(image: Picture) -> Picture:
    from PIL import Image

    if image.mode == "F" or image.mode.startswith("I"):
        image = Image.fromarray(_eight_bits(np.asarray(image)))
    if image.mode in ("LA", "PA", "RGBA", "RGBa") or "transparency" in image.info:
        page = Image.new("RGBA", image.size, "white")
        page.alpha_composite(image.convert("RGBA"))
        image = page
    rgb = image.convert("RGB")
    rgb.info = {}  # so that nobody turns it a second time
    return rgb


def _eight_bits(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """Greys of 16 bits, or floats in 0 .. 1, as 8 bits. (height, width)"""
    low, high = pixels.min(), pixels.max()
    if pixels.dtype.kind == "f" and low >= 0 and high <= 1:
        return np.asarray(np.rint(pixels * 255), dtype=np.uint8)
    if pixels.dtype.kind != "f" and low >= 0 and high <= 65_535:
        rounded = (pixels.astype(np.uint32) + 128) // 257
        return np.asarray(rounded, dtype=np.uint8)
    raise Unreadable(
        f"greys from {low:g} to {high:g} have no known black and white; save it with "
        "8 or 16 bits"
    )
