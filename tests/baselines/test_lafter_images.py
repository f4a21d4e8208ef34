"""Images for LaFTer: read, cropped, distorted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sagl.baselines.lafter_images import (
    as_tensor,
    check_images,
    crop_box,
    distorted,
    plain_crop,
    read_image,
    turned_hue,
)

Image = pytest.importorskip("PIL.Image")


def noise(height, width, seed=0):
    random = np.random.default_rng(seed)
    return random.integers(0, 256, size=(height, width, 3), dtype=np.uint8)


class TestReading:
    def test_files_and_arrays_are_the_same(self, tmp_path):
        array = noise(5, 7)
        Image.fromarray(array).save(tmp_path / "a.png")
        for image in (tmp_path / "a.png", str(tmp_path / "a.png"), array):
            check_images([image], 1)
            assert read_image(image).size == (7, 5)
            assert np.array_equal(np.asarray(read_image(image)), array)
        check_images(array[None], 1)

    def test_files_are_read_as_extraction_reads_them(self, tmp_path):
        """In three colours, and upright."""
        grey = Image.new("L", (3, 2), 100)
        exif = Image.Exif()
        exif[0x0112] = 6  # turned by a quarter
        grey.save(tmp_path / "grey.png", exif=exif)
        upright = read_image(tmp_path / "grey.png")
        assert (upright.mode, upright.size) == ("RGB", (2, 3))
        assert (np.asarray(upright) == 100).all()

    def test_says_what_is_wrong(self, tmp_path):
        (tmp_path / "text.png").write_text("no picture")
        for name in ("text.png", "nothing.png"):
            with pytest.raises(ValueError, match=f"{name}: cannot be read as a pic"):
                read_image(tmp_path / name)
        with pytest.raises(ValueError, match="image 1 is an array of float64 of shape"):
            check_images([noise(2, 2), np.zeros((2, 2, 3))], 2)
        with pytest.raises(ValueError, match=r"shape \(2, 2\); expected a path"):
            check_images(np.zeros((3, 2, 2), dtype=np.uint8), 3)


def test_colours_are_scaled_as_clip_wants_them():
    array = noise(2, 3)
    tensor = as_tensor([Image.fromarray(array)])
    assert tensor.shape == (1, 3, 2, 3)
    mean = (0.48145466, 0.4578275, 0.40821073)
    deviation = (0.26862954, 0.26130258, 0.27577711)
    for y in range(2):
        for x in range(3):
            for c in range(3):
                expected = (array[y, x, c] / 255 - mean[c]) / deviation[c]
                assert abs(float(tensor[0, c, y, x]) - expected) < 1e-5


class TestPlainCrop:
    @pytest.mark.parametrize(("height", "width"), [(8, 20), (20, 8), (8, 8), (8, 9)])
    def test_is_the_middle(self, height, width):
        """No resizing is needed here: the shorter side has the right size."""
        array = noise(height, width)
        crop = np.asarray(plain_crop(Image.fromarray(array), 8))
        top, left = round((height - 8) / 2), round((width - 8) / 2)
        assert np.array_equal(crop, array[top : top + 8, left : left + 8])

    @given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 40))
    def test_has_the_size(self, height, width, size):
        crop = plain_crop(Image.new("RGB", (width, height), (9, 8, 7)), size)
        assert crop.size == (size, size)
        assert (np.asarray(crop) == (9, 8, 7)).all()

    def test_resizes_the_shorter_side(self):
        left = np.zeros((20, 60, 3), dtype=np.uint8)
        left[:, :30] = 255  # the edge is in the middle, and stays there
        crop = np.asarray(plain_crop(Image.fromarray(left), 10))
        assert (crop[:, :4] > 250).all()
        assert (crop[:, 6:] < 5).all()


class TestDistorted:
    @given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 1 << 32))
    def test_the_box_is_inside_and_large_enough(self, width, height, seed):
        left, top, right, bottom = crop_box(width, height, np.random.default_rng(seed))
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
        area = (right - left) * (bottom - top)
        whole = (right - left, bottom - top) == (width, height)
        slack = (right - left) + (bottom - top)  # both sides are rounded
        assert whole or area >= 0.2 * width * height - slack

    def test_boxes_differ(self):
        random = np.random.default_rng(0)
        boxes = np.array([crop_box(100, 100, random) for _ in range(300)])
        areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]) / 1e4
        assert areas.min() < 0.3
        assert areas.max() > 0.85
        ratios = (boxes[:, 2] - boxes[:, 0]) / (boxes[:, 3] - boxes[:, 1])
        assert ratios.min() < 0.85
        assert ratios.max() > 1.18

    def test_the_generator_decides_alone(self):
        picture = Image.fromarray(noise(30, 40))
        first = distorted(picture, 16, np.random.default_rng(3))
        np.random.seed(1)  # the global state must not matter
        again = distorted(picture, 16, np.random.default_rng(3))
        other = distorted(picture, 16, np.random.default_rng(4))
        assert first.size == (16, 16)
        assert np.array_equal(np.asarray(first), np.asarray(again))
        assert not np.array_equal(np.asarray(first), np.asarray(other))

    def test_what_happens_how_often(self):
        """Left dark red, right bright red: mirrored, grey and recoloured at times."""
        array = np.zeros((32, 32, 3), dtype=np.uint8)
        array[:, :16, 0], array[:, 16:, 0] = 90, 200
        random = np.random.default_rng(0)
        mirrored = grey = other_hue = 0
        times = 300
        for _ in range(times):
            out = np.asarray(distorted(Image.fromarray(array), 16, random)).astype(int)
            brightness = out.sum(axis=(0, 2))
            mirrored += brightness[0] > brightness[-1]
            is_grey = np.ptp(out, axis=2).max() == 0
            grey += is_grey
            other_hue += not is_grey and (out[..., 1:].max() > 40)
        assert 0.35 < mirrored / times < 0.6
        assert 0.12 < grey / times < 0.28
        assert 0.2 < other_hue / times < 0.8

    def test_pictures_are_blurred(self):
        """Neighbours of random pixels differ less when half of them are blurred."""
        random = np.random.default_rng(0)
        steps = []
        for _ in range(100):
            out = distorted(Image.fromarray(noise(32, 32)), 32, random)
            grey = np.asarray(out).mean(axis=2)
            steps.append(np.abs(np.diff(grey, axis=1)).mean() / grey.std())
        assert np.median(steps) < 0.45  # 0.8 without
        assert max(steps) > 0.6  # not always much


def test_hues_turn():
    red = Image.new("RGB", (1, 1), (255, 0, 0))
    for turn, colour in ((0, 0), (1 / 3, 1), (-1 / 3, 2), (2 / 3, 2), (1, 0)):
        pixel = np.asarray(turned_hue(red, turn))[0, 0]
        assert pixel.argmax() == colour
        assert np.sort(pixel)[1] < 10
    assert np.asarray(turned_hue(Image.new("RGB", (1, 1), (7, 7, 7)), 0.3)).max() == 7
