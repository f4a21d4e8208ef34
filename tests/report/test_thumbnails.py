"""Thumbnails: small, readable by others, and never in the way of a report."""

import base64
import io

import pytest
from PIL import Image

from sagl.report.thumbnails import SIDE, data_address, first_words, make_thumbnails
from tests.report.pages import Pictures


def test_large_pictures_shrink_and_keep_their_shape():
    samples = Pictures("abc", size=(800, 400))
    found = make_thumbnails([0, 2], samples.__getitem__)
    assert list(found.pictures) == [0, 2]
    assert not found.pixelated
    for content in found.pictures.values():
        assert Image.open(io.BytesIO(content)).size == (SIDE, SIDE // 2)
        assert len(content) < 5_000


def test_tiny_pictures_are_kept_to_the_pixel():
    samples = Pictures("abc", size=(8, 8))
    found = make_thumbnails([1], samples.__getitem__)
    assert found.pixelated
    kept = Image.open(io.BytesIO(found.pictures[1]))
    assert kept.tobytes() == samples[1].tobytes()


def test_unreadable_pictures_are_counted():
    samples = Pictures("abc", broken=1)
    found = make_thumbnails(range(3), samples.__getitem__)
    assert list(found.pictures) == [0, 2]
    assert found.unreadable == 1


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P", "CMYK", "1", "I;16"])
def test_all_modes_can_be_shown(mode):
    for size in ((200, 100), (8, 8)):
        image = Image.new("RGB", size, "red")
        image = Image.new(mode, size) if mode == "I;16" else image.convert(mode)
        found = make_thumbnails([0], lambda row, image=image: image)
        address = data_address(found.pictures[0])
        kind, _, content = address.partition(";base64,")
        shown = Image.open(io.BytesIO(base64.b64decode(content)))
        assert kind == f"data:image/{shown.format.lower()}"


def test_first_words():
    assert first_words("short") == "short"
    assert first_words("x" * 500) == "x" * 400 + "…"
