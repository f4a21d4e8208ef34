"""DINOv3's pictures without torchvision."""

import numpy as np
import pytest
import torch

from sagl.features.model_io import DINOv3Processor
from tests.features.models import DINOV3_PICTURES, pictures


@pytest.mark.parametrize(("resample", "method"), [(2, "BILINEAR"), (3, "BICUBIC")])
@pytest.mark.parametrize("size", [(12, 20), (32, 32), (64, 48)])
def test_dinov3_resizes_in_floating_point(resample, method, size):
    """Pillow resizes single channels of floats by the same smooth filters."""
    Image = pytest.importorskip("PIL.Image")
    settings = {
        **DINOV3_PICTURES,
        "resample": resample,
        "size": {"height": size[0], "width": size[1]},
    }
    picture = pictures(1, size=(37, 51))[0]
    found = DINOv3Processor(settings)(picture)["pixel_values"].numpy()
    assert found.shape == (3, *size)
    for channel in range(3):
        values = np.asarray(picture)[..., channel].astype(np.float32) / 255
        whole = Image.fromarray(values, mode="F")
        expected = np.asarray(
            whole.resize((size[1], size[0]), getattr(Image.Resampling, method))
        )
        mean = DINOV3_PICTURES["image_mean"][channel]
        deviation = DINOV3_PICTURES["image_std"][channel]
        # torch's cubic has another parameter than Pillow's, unless it is antialiased
        assert np.allclose(found[channel], (expected - mean) / deviation, atol=2e-4)


def test_dinov3_in_steps():
    picture = pictures(1)[0]
    pixels = torch.from_numpy(np.array(picture)).permute(2, 0, 1).float()
    off = {"do_resize": False, "do_normalize": False}
    scaled = DINOv3Processor({**DINOV3_PICTURES, **off})(picture)["pixel_values"]
    assert torch.allclose(scaled, pixels / 255)
    plain = DINOv3Processor({**DINOV3_PICTURES, **off, "do_rescale": False})(picture)
    assert torch.equal(plain["pixel_values"], pixels)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": {"shortest_edge": 224}}, "prepared by size"),
        ({"do_center_crop": True}, "and a crop"),
        ({"resample": 1}, "method 1"),
    ],
)
def test_dinov3_refuses_what_it_does_not_do(change, message):
    with pytest.raises(ValueError, match=message):
        DINOv3Processor({**DINOV3_PICTURES, **change})
