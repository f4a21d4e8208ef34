"""Folders of pictures."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from sagl.features.images import (
    MAX_PIXELS,
    find_images,
    image_from_bytes,
    image_from_file,
    is_image_name,
)
from sagl.features.readers import open_samples
from sagl.features.samples import Unreadable
from tests.features.image_files import (
    BLUE,
    GREEN,
    RED,
    WHITE,
    colour_of,
    encoded,
    noise,
    save_picture,
)
from tests.features.small_files import refusal

checked = settings(max_examples=25, deadline=None, derandomize=True, database=None)
often = settings(max_examples=100, deadline=None, derandomize=True, database=None)


def test_class_folders(tmp_path):
    save_picture(tmp_path / "dog/b.png", GREEN)
    save_picture(tmp_path / "cat/a.png", RED)
    save_picture(tmp_path / "dog/young/c.JPG", BLUE)
    samples = open_samples(tmp_path)
    assert samples.kind == "image"
    assert samples.ids == ["cat/a.png", "dog/b.png", "dog/young/c.JPG"]
    assert samples.labels == ["cat", "dog", "dog"]
    assert [colour_of(samples[row]) for row in range(3)] == [RED, GREEN, BLUE]
    assert samples.describe() == {
        "reader": "folder of pictures",
        "source": str(tmp_path),
        "options": {},
        "kind": "image",
        "samples": 3,
        "labelled": True,
        "ignored": 0,
    }


def test_a_flat_or_mixed_folder_has_no_labels(tmp_path):
    save_picture(tmp_path / "a.png")
    assert open_samples(tmp_path).labels is None
    save_picture(tmp_path / "more/b.png")
    assert open_samples(tmp_path).labels is None


def test_a_single_sub_folder_tells_nothing_apart(tmp_path):
    save_picture(tmp_path / "images/a.png")
    save_picture(tmp_path / "images/b.png")
    assert open_samples(tmp_path).labels is None


def test_broken_pictures_are_samples_and_other_files_are_not(tmp_path):
    save_picture(tmp_path / "good.png")
    (tmp_path / "broken.jpg").write_bytes(b"not a picture")
    (tmp_path / "empty.gif").touch()
    for name in ("README.txt", ".DS_Store", "Thumbs.db", "._good.png"):
        (tmp_path / name).write_bytes(b"x")
    save_picture(tmp_path / ".trash/old.png")
    samples = open_samples(tmp_path)
    assert samples.ids == ["broken.jpg", "empty.gif", "good.png"]
    assert samples.ignored == 4
    assert samples.describe()["ignored"] == 4
    with pytest.raises(Unreadable, match="not a picture"):
        samples[0]
    with pytest.raises(Unreadable, match="not a picture"):
        samples[1]
    assert colour_of(samples[2]) == RED


def test_names_with_spaces_quotes_and_other_letters(tmp_path):
    names = [
        "a b.png",
        "quo\"te'.png",
        "zoë/日本.png",
        "new\nline.png",
        "[x]{1..2}.png",
    ]
    for name in names:
        save_picture(tmp_path / name)
    samples = open_samples(tmp_path)
    assert samples.ids == sorted(names)
    assert all(colour_of(samples[row]) == RED for row in range(len(names)))


def test_names_that_are_not_utf8_are_written_out(tmp_path):
    try:
        save_picture(tmp_path / "x.png").rename(tmp_path / os.fsdecode(b"caf\xe9.png"))
    except OSError:
        pytest.skip("this file system takes UTF-8 alone")
    save_picture(tmp_path / "a.png", GREEN)
    samples = pickle.loads(pickle.dumps(open_samples(tmp_path)))
    assert samples.ids == ["a.png", "caf\\xe9.png"]
    assert colour_of(samples[1]) == RED


@checked
@given(
    st.sets(
        st.text(
            st.characters(exclude_characters="/\0.", exclude_categories=["Cs"]),
            min_size=1,
            max_size=20,
        ),
        min_size=1,
        max_size=8,
    )
)
def test_any_names_are_found_sorted_by_code_point(tmp_path_factory, names):
    root = tmp_path_factory.mktemp("any")
    made = set()
    for name in names:
        try:
            (root / f"{name}.png").touch()
        except OSError:  # longer than the file system allows
            continue
        made.add(f"{name}.png")
    assert find_images(root)[0] == sorted(made)


def test_links_are_followed_but_not_in_circles(tmp_path):
    save_picture(tmp_path / "elsewhere/far.png", GREEN)
    root = tmp_path / "root"
    save_picture(root / "deep/a.png")
    (root / "deep/up").symlink_to(root)
    (root / "deep/here").symlink_to(root / "deep")
    (root / "other").symlink_to(tmp_path / "elsewhere")
    (root / "link.png").symlink_to(tmp_path / "elsewhere/far.png")
    samples = open_samples(root)
    assert samples.ids == ["deep/a.png", "link.png", "other/far.png"]
    assert colour_of(samples[1]) == colour_of(samples[2]) == GREEN


def test_broken_links_are_recorded_as_unreadable(tmp_path):
    save_picture(tmp_path / "a.png")
    (tmp_path / "gone.png").symlink_to(tmp_path / "nowhere.png")
    (tmp_path / "loop.png").symlink_to(tmp_path / "loop.png")
    samples = open_samples(tmp_path)
    assert samples.ids == ["a.png", "gone.png", "loop.png"]
    with pytest.raises(Unreadable, match="no such file"):
        samples[1]
    with pytest.raises(Unreadable, match="cannot be opened"):
        samples[2]


def test_pipes_are_not_waited_for(tmp_path):
    save_picture(tmp_path / "a.png")
    os.mkfifo(tmp_path / "pipe.png")
    samples = open_samples(tmp_path)
    with pytest.raises(Unreadable, match="not a regular file"):
        samples[1]


def test_a_folder_that_may_not_be_read(tmp_path):
    save_picture(tmp_path / "a.png")
    secret = tmp_path / "secret"
    secret.mkdir(mode=0)
    if os.access(secret, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(ValueError, match="permission denied") as caught:
        open_samples(tmp_path)
    assert str(caught.value).startswith(f"{secret}")


def test_empty_folder(tmp_path):
    (tmp_path / "notes.md").touch()
    assert refusal(open_samples, tmp_path).startswith(
        "holds no picture such as .jpg (1 other files)"
    )


def test_a_split_is_a_sub_folder(tmp_path):
    for part, colour in (("train", RED), ("test", GREEN)):
        for label in ("cat", "dog"):
            save_picture(tmp_path / part / label / "x.png", colour)
    message = refusal(open_samples, tmp_path)
    assert message.startswith("is divided into test, train; choose one")
    samples = open_samples(tmp_path, split="test")
    assert samples.ids == ["cat/x.png", "dog/x.png"]
    assert samples.labels == ["cat", "dog"]
    assert colour_of(samples[0]) == GREEN
    with pytest.raises(ValueError, match="has no sub-folder 'dev'"):
        open_samples(tmp_path, split="dev")


@pytest.mark.parametrize(
    "option",
    [{"column": "x"}, {"id_column": "x"}, {"label_column": "x"}, {"kind": "text"}],
)
def test_options_without_effect_are_refused(tmp_path: Path, option: dict[str, str]):
    save_picture(tmp_path / "a.png")
    with pytest.raises(ValueError, match="a folder of pictures takes no --"):
        open_samples(tmp_path, **option)


def test_one_picture_is_no_folder(tmp_path):
    path = save_picture(tmp_path / "a.png")
    assert refusal(open_samples, path).startswith("cannot be read as samples")


FORMATS = ["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM"]


def reason(data: bytes) -> str:
    with pytest.raises(Unreadable) as caught:
        image_from_bytes(data)
    message = str(caught.value)
    assert message
    assert "\n" not in message
    return message


@pytest.mark.parametrize("form", ["PNG", "BMP", "TIFF", "PPM"])
def test_exact_formats_keep_every_pixel(form):
    image = image_from_bytes(encoded(noise(), form))
    assert image.mode == "RGB"
    np.testing.assert_array_equal(np.asarray(image), np.asarray(noise()))


def test_a_file_is_read_like_its_bytes(tmp_path):
    path = tmp_path / "photo.jpg"
    path.write_bytes(encoded(noise(), "JPEG"))
    np.testing.assert_array_equal(
        np.asarray(image_from_file(path)),
        np.asarray(image_from_bytes(path.read_bytes())),
    )


def test_the_suffix_does_not_matter_but_the_content(tmp_path):
    path = tmp_path / "photo.jpg"
    path.write_bytes(encoded(noise(), "PNG"))
    np.testing.assert_array_equal(
        np.asarray(image_from_file(path)), np.asarray(noise())
    )


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_truncated(form, share):
    data = encoded(noise(), form)
    assert image_from_bytes(data).size == (40, 30)
    assert reason(data[: int(len(data) * share)])


def test_truncated_says_so():
    data = encoded(noise(), "JPEG")
    assert reason(data[: len(data) // 2]).startswith("broken or cut short (")


@pytest.mark.parametrize("form", ["PNG", "TIFF"])
def test_damaged_in_the_middle(form):
    data = bytearray(
        encoded(
            noise(), form, **({"compression": "tiff_lzw"} if form == "TIFF" else {})
        )
    )
    data[len(data) // 2 : len(data) // 2 + 200] = bytes(200)
    assert reason(bytes(data)).startswith("broken or cut short (")


def test_zero_bytes(tmp_path):
    (tmp_path / "empty.png").touch()
    with pytest.raises(Unreadable, match="not a picture"):
        image_from_file(tmp_path / "empty.png")


@pytest.mark.parametrize(
    "data", [b"GIF", b"<html>404</html>", b"\0" * 1000, b"%!PS-Adobe-3.0 EPSF-3.0\n"]
)
def test_not_a_picture(data):
    assert reason(data).startswith("not a picture that Pillow reads")


def test_heic_is_named():
    data = struct.pack(">I", 24) + b"ftypheic" + bytes(100)
    assert "HEIC" in reason(data)
    assert "convert it to JPEG" in reason(data)


@often
@given(st.binary(max_size=300), st.sampled_from(FORMATS))
def test_no_bytes_raise_anything_else(tail, form):
    start = encoded(noise((5, 4)), form)[:40]
    with contextlib.suppress(Unreadable):
        assert image_from_bytes(start + tail).mode == "RGB"


def test_files_that_cannot_be_opened(tmp_path):
    with pytest.raises(Unreadable, match=r"^cannot be opened: no such file"):
        image_from_file(tmp_path / "missing.jpg")
    with pytest.raises(Unreadable, match=r"^not a regular file$"):
        image_from_file(tmp_path)
    os.mkfifo(tmp_path / "pipe.jpg")
    with pytest.raises(Unreadable, match=r"^not a regular file$"):
        image_from_file(tmp_path / "pipe.jpg")
    (tmp_path / "self.jpg").symlink_to("self.jpg")
    with pytest.raises(Unreadable, match="cannot be opened"):
        image_from_file(tmp_path / "self.jpg")


def test_permission_denied(tmp_path):
    path = tmp_path / "secret.png"
    path.write_bytes(encoded(noise(), "PNG"))
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(Unreadable, match=r"^cannot be opened: permission denied$"):
        image_from_file(path)


def test_cmyk():
    for form in ("JPEG", "TIFF"):
        data = encoded(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), form)
        red, green, blue = image_from_bytes(data).getpixel((4, 4))
        assert red > 230
        assert max(green, blue) < 40


@pytest.mark.parametrize("form", ["PNG", "TIFF"])
def test_16_bit_greys_are_scaled_and_not_clipped(form):
    greys = np.array([[0, 127, 128, 257], [300, 32_768, 65_406, 65_535]], np.uint16)
    image = image_from_bytes(encoded(Image.fromarray(greys), form))
    expected = np.rint(greys / 257).astype(np.uint8)
    assert expected.max() == 255
    for channel in range(3):
        np.testing.assert_array_equal(np.asarray(image)[..., channel], expected)


def test_16_bit_pgm():
    greys = np.array([[0, 32_768], [51_400, 65_535]], ">u2")
    image = image_from_bytes(b"P5 2 2 65535\n" + greys.tobytes())
    assert np.asarray(image)[..., 0].tolist() == [[0, 128], [200, 255]]


def png(size: tuple[int, int], depth: int, colour: int, rows: bytes) -> bytes:
    """A PNG by hand, for what Pillow does not write."""

    def chunk(name: bytes, body: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(name + body))
        return struct.pack(">I", len(body)) + name + body + checksum

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", *size, depth, colour, 0, 0, 0))
    data = chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + header + data + chunk(b"IEND", b"")


def test_16_bit_colours():
    pixels = struct.pack(">6H", 65_535, 0, 32_896, 0, 65_535, 0)
    image = image_from_bytes(png((2, 1), 16, 2, b"\0" + pixels))
    assert np.asarray(image).tolist() == [[[255, 0, 128], [0, 255, 0]]]


def test_float_greys():
    unit = Image.fromarray(np.array([[0.0, 0.5, 1.0]], np.float32))
    image = image_from_bytes(encoded(unit, "TIFF"))
    assert np.asarray(image)[0, :, 0].tolist() == [0, 128, 255]
    kelvin = Image.fromarray(np.array([[250.0, 310.5]], np.float32))
    assert reason(encoded(kelvin, "TIFF")) == (
        "greys from 250 to 310.5 have no known black and white; save it with 8 or 16 "
        "bits"
    )


def test_32_bit_greys_beyond_16_bits_are_refused():
    image = Image.fromarray(np.array([[-5, 70_000]], np.int32))
    assert reason(encoded(image, "TIFF")).startswith("greys from -5 to 70000")


@pytest.mark.parametrize("form", ["GIF", "WEBP", "PNG", "TIFF"])
def test_of_an_animation_the_first_frame(form):
    frames = [Image.new("RGB", (8, 8), colour) for colour in (RED, GREEN, BLUE)]
    options = {"lossless": True} if form == "WEBP" else {}
    data = encoded(frames[0], form, save_all=True, append_images=frames[1:], **options)
    assert Image.open(io.BytesIO(data)).n_frames == 3
    assert image_from_bytes(data).getpixel((4, 4)) == RED


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_exif_rotation(orientation, form):
    """The picture as stored for each tag, made from the upright one by hand."""
    upright = np.zeros((24, 16, 3), np.uint8)
    upright[:8, :8] = RED
    upright[16:, 8:] = GREEN
    stored = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.transpose(1, 0, 2),
        6: np.rot90(upright, 1),  # to be turned clockwise
        7: upright[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(upright, -1),
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"quality": 95, "subsampling": 0} if form == "JPEG" else {}
    if form == "WEBP":
        options = {"lossless": True}
    picture = Image.fromarray(np.ascontiguousarray(stored))
    image = image_from_bytes(encoded(picture, form, exif=exif, **options))
    assert image.size == (16, 24)
    assert np.abs(np.asarray(image, int) - upright).mean() < 3
    assert image.getexif().get(0x0112) is None  # nobody turns it again


# To be turned, with a width that is a word: Pillow reads it, and fails to write it.
WORD_FOR_A_WIDTH = bytes.fromhex(
    "4578696600004d4d002a00000008000201000002000000060000002601120003000000010006"
    "00000000000068656c6c6f00"
)


@pytest.mark.parametrize(
    "exif", [b"Exif\0\0II*\0\xff\xff\xff\xff garbage", WORD_FOR_A_WIDTH]
)
def test_damaged_exif_leaves_the_pixels(exif):
    data = encoded(noise(), "JPEG", exif=exif)
    assert image_from_bytes(data).size == (40, 30)


def test_transparent_pixels_are_laid_over_white():
    for mode, form in (("RGBA", "PNG"), ("LA", "PNG"), ("RGBA", "WEBP")):
        clear = Image.new("RGBA", (4, 4), (0, 0, 0, 0)).convert(mode)
        assert image_from_bytes(encoded(clear, form)).getpixel((0, 0)) == WHITE
    half = Image.new("RGBA", (4, 4), (255, 0, 0, 128))
    assert image_from_bytes(encoded(half, "PNG")).getpixel((0, 0)) == (255, 127, 127)


@pytest.mark.parametrize("form", ["PNG", "GIF"])
def test_palettes_with_and_without_transparency(form):
    image = Image.new("P", (4, 4))
    image.putpalette([255, 0, 0, 0, 255, 0])
    image.putpixel((1, 1), 1)
    opaque = image_from_bytes(encoded(image, form))
    assert opaque.getpixel((0, 0)) == RED
    assert opaque.getpixel((1, 1)) == GREEN
    see_through = image_from_bytes(encoded(image, form, transparency=0))
    assert see_through.getpixel((0, 0)) == WHITE
    assert see_through.getpixel((1, 1)) == GREEN


def test_a_colour_that_stands_for_transparency():
    image = Image.new("RGB", (4, 4), BLUE)
    image.putpixel((0, 0), RED)
    read = image_from_bytes(encoded(image, "PNG", transparency=BLUE))
    assert read.getpixel((0, 0)) == RED
    assert read.getpixel((1, 1)) == WHITE


@pytest.mark.parametrize("mode", ["1", "L"])
def test_grey_and_black_and_white(mode):
    image = Image.new(mode, (4, 4), 1 if mode == "1" else 77)
    grey = 255 if mode == "1" else 77
    assert image_from_bytes(encoded(image, "PNG")).getpixel((0, 0)) == (grey,) * 3


# Pillow would warn of the first and refuse the second.
@pytest.mark.parametrize("size", [(MAX_PIXELS + 1, 1), (30_000, 30_000)])
def test_decompression_bombs_are_refused(size):
    bomb = png(size, 1, 0, bytes(100))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a refusal, no warning beside it
        assert "decompression bomb" in reason(bomb)


def test_as_many_pixels_as_allowed_are_no_bomb():
    """All the same, this one has no rows in it."""
    assert reason(png((MAX_PIXELS, 1), 1, 0, b"")).startswith("broken or cut short")


def test_a_bomb_that_unpacks_is_refused_before_it_does():
    data = encoded(Image.new("1", (9_460, 9_460)), "TIFF", compression="group4")
    assert len(data) < 100_000
    assert reason(data) == (
        "9460 x 9460 pixels, more than 89,478,485: may be a decompression bomb; "
        "shrink it"
    )


def test_the_limit_does_not_depend_on_what_others_set(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    assert "decompression bomb" in reason(png((30_000, 30_000), 1, 0, b""))


def test_what_is_returned_is_whole_and_picklable():
    image = image_from_bytes(encoded(noise(), "PNG"))
    assert type(image) is Image.Image
    again = pickle.loads(pickle.dumps(image))
    np.testing.assert_array_equal(np.asarray(again), np.asarray(noise()))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.jpg", True),
        ("A.JPEG", True),
        ("folder.png/a", False),
        ("jpg", False),
        ("a.jpg.txt", False),
        ("ä b'.WebP", True),
        ("a.svg", False),
    ],
)
def test_names_of_pictures(name, expected):
    assert is_image_name(name) is expected
