"""Images in files: found below folders, and decoded to upright RGB or refused.

- Images are turned as their EXIF tag says; of an animation the first frame is taken.
- Transparent pixels are laid over white: what is hidden below them is arbitrary.
- 16-bit greys are scaled to 8 bits (65,535 becomes 255), floats in 0 .. 1 likewise.
- More than ``MAX_PIXELS`` are refused: such a file may be a decompression bomb. The
  limit is Pillow's default, kept here because other libraries switch Pillow's off.
- Formats that run other programs to be read (EPS) are not opened at all.
"""

from __future__ import annotations

import io
import os
import stat
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sagl.environment import optional_module
from sagl.features.samples import ListedSamples, Unreadable, file_error, pack, unpack

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage

__all__ = ["image_from_bytes", "image_from_file", "is_image_name"]

MAX_PIXELS = 89_478_485  # a quarter of a gigabyte as RGB
IMAGE_SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".gif", ".webp", ".bmp"}
    | {".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".pnm", ".jp2", ".avif"}
    | {".heic", ".heif"}  # not readable as yet, but images: said so one by one
)
_FORMATS = (
    *("JPEG", "MPO", "PNG", "GIF", "WEBP", "BMP", "DIB", "TIFF", "PPM"),
    *("JPEG2000", "AVIF", "HEIF"),  # where Pillow or a plugin has them
)
# First-level folders of these names divide the data; they are no classes.
_SPLITS = {"train", "training", "val", "valid", "validation", "dev", "test", "testing"}


def read_images(root: Path, paths: Iterable[str]) -> Callable[[int], PILImage]:
    """What gives the images at ``paths`` below ``root`` by their rows."""
    optional_module("PIL.Image")  # before thousands of images fail one by one
    return partial(_read_image, root, pack(paths))


def _read_image(root: Path, paths: Any, row: int) -> PILImage:
    if not (path := unpack(paths, row)):
        raise Unreadable("the path is missing")
    return image_from_file(root / path)


def open_folder(source: str, split: str | None = None) -> ListedSamples:
    """Every file below a folder whose name ends like an image's, sorted by path.

    When all of them lie in two or more sub-folders, the first-level folder is the
    label. ``split`` names a sub-folder to read instead.
    """
    folder = Path(source).expanduser()
    root = folder if split is None else folder / split
    if not root.is_dir():
        raise file_error(
            folder, f"has no sub-folder {split!r} to take as the split; leave it out"
        )
    paths, ignored = find_images(root)
    if not paths:
        raise file_error(root, f"holds no picture such as .jpg ({ignored} other files)")
    labels = None
    if all("/" in path for path in paths):
        labels = [printable(path.partition("/")[0]) for path in paths]
        if len(set(labels)) == 1:
            labels = None
        elif {label.lower() for label in labels} <= _SPLITS:
            raise file_error(
                root,
                f"is divided into {', '.join(sorted(set(labels)))}; choose one of them "
                "(--split), or give its path",
            )
    ids = list(map(printable, paths))
    return ListedSamples("image", ids, labels, read_images(root, paths), ignored)


def find_images(root: Path) -> tuple[list[str], int]:
    """Paths of images below ``root``, and how many files are none.

    Hidden files and folders are left out. Links are followed, except to a folder that
    one is already in.
    """

    def refuse(error: OSError) -> None:
        raise file_error(Path(error.filename), f"cannot be read: {error.strerror}")

    paths, ignored = [], 0
    for folder, folders, files in os.walk(root, onerror=refuse, followlinks=True):
        here = Path(folder)
        way = {above.resolve() for above in (here, *here.parents)}
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".") and (here / name).resolve() not in way
        ]
        images = [name for name in files if is_image_name(name) and name[0] != "."]
        ignored += len(files) - len(images)
        prefix = f"{here.relative_to(root).as_posix()}/".removeprefix("./")
        paths += [prefix + name for name in images]
    # By code point: the same on every machine and in every language.
    return sorted(paths), ignored


def printable(path: str) -> str:
    """Bytes of a file name that are not UTF-8, written as \\xNN."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def is_image_name(name: str) -> bool:
    """Whether a file name ends like that of an image.

    >>> is_image_name("holiday/IMG_1.JPG"), is_image_name("notes.txt")
    (True, False)
    """
    _, dot, suffix = name.rpartition(".")
    return bool(dot) and f".{suffix.lower()}" in IMAGE_SUFFIXES


def image_from_file(path: Path) -> PILImage:
    """The image in a file, upright and in mode RGB.

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
    except OSError as error:
        reason = (error.strerror or f"{error}").lower()
        raise Unreadable(f"cannot be opened: {reason}") from None
    except ValueError as error:  # of characters that no path may have
        if isinstance(error, Unreadable):
            raise
        raise Unreadable(f"cannot be opened: {error}") from None


def image_from_bytes(data: bytes) -> PILImage:
    """The image in the bytes of a file; see ``image_from_file``."""
    return _decode(io.BytesIO(data))


def _decode(stream: IO[bytes]) -> PILImage:
    from PIL import Image, ImageOps, UnidentifiedImageError

    with warnings.catch_warnings():
        # Pillow warns of odd metadata; here an image is either decoded or refused.
        warnings.simplefilter("ignore")
        try:
            with Image.open(stream, formats=_formats()) as image:
                width, height = image.size
                if width * height > MAX_PIXELS:
                    raise Unreadable(
                        f"{width} x {height} pixels, more than {MAX_PIXELS:,}: may be "
                        "a decompression bomb; shrink it"
                    )
                image.load()
                upright = None
                with suppress(Exception):  # damaged metadata around intact pixels
                    upright = ImageOps.exif_transpose(image)
                return _to_rgb(upright or image)
        except Unreadable:
            raise
        except UnidentifiedImageError:
            raise Unreadable(
                "not a picture that Pillow reads (HEIC: convert it to JPEG), or damaged"
            ) from None
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


def _to_rgb(image: PILImage) -> PILImage:
    from PIL import Image

    if image.mode == "F" or image.mode.startswith("I"):
        image = Image.fromarray(_eight_bits(np.asarray(image)))
    if image.has_transparency_data:
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
