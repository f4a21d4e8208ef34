"""Models of timm.

timm asks for torchvision, whose builds fit one build of torch each, so timm is not
among what the tests install. Where it is missing, a stand-in with the few functions
that are called takes its place; where it is there, the real one is used as well.
"""

import json
import pickle
import sys
import types
import warnings

import numpy as np
import pytest
import torch

from sagl.features.backbones import load_backbone
from tests.baselines.shared_space import seeded
from tests.features.models import pictures

TAUGHT = "tiny_net.fcmae_ft_in22k_in1k"
UNTAUGHT = "tiny_net.dino"


class Scale:
    """A transform of pictures, as timm.data makes one."""

    def __call__(self, picture):
        small = picture.resize((8, 8))
        return torch.from_numpy(np.array(small)).permute(2, 0, 1) / 255


def create_model(name, pretrained, num_classes):
    assert pretrained
    assert num_classes == 0  # pooled features and no classifier
    if name == "tiny_net.not_here":
        raise OSError("cannot reach the hub")
    if name not in (TAUGHT, UNTAUGHT):
        raise RuntimeError(f"Unknown model ({name})")
    conv = seeded(lambda: torch.nn.Conv2d(3, 4, 2))
    model = torch.nn.Sequential(conv, torch.nn.Dropout(0.5), torch.nn.Flatten())
    tag = name.partition(".")[2]
    classes = 1000 if name == TAUGHT else 0
    model.pretrained_cfg = {"tag": tag, "num_classes": classes, "license": "mit"}
    return model


@pytest.fixture
def stand_in(monkeypatch):
    timm, data = types.ModuleType("timm"), types.ModuleType("timm.data")
    timm.__version__ = "1.0"
    timm.create_model = create_model
    timm.list_models = lambda pretrained: [TAUGHT, UNTAUGHT]
    data.resolve_model_data_config = lambda model: {"input_size": (3, 8, 8)}
    data.create_transform = lambda is_training, input_size: Scale()
    timm.data = data
    monkeypatch.setitem(sys.modules, "timm", timm)
    monkeypatch.setitem(sys.modules, "timm.data", data)


@pytest.mark.usefixtures("stand_in")
class TestTimm:
    def test_features(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            backbone = load_backbone(f"timm:{UNTAUGHT}", device="cpu")
        model = create_model(UNTAUGHT, True, 0).eval()
        samples = pictures()
        features = backbone.embed([backbone.prepare(p) for p in samples])
        with torch.no_grad():
            expected = model(torch.stack([Scale()(p) for p in samples]))
        assert torch.equal(features, expected)
        assert (backbone.kind, backbone.dim) == ("image", expected.shape[1])

    def test_description(self):
        about = load_backbone(f"timm:{UNTAUGHT}", device="cpu").describe()
        assert about == load_backbone(f"timm:{UNTAUGHT}", device="cpu").describe()
        assert about == json.loads(json.dumps(about))
        assert (about["model"], about["licence"]) == (UNTAUGHT, "mit")
        assert about["preprocessing"] == {"input_size": [3, 8, 8]}
        assert len(about["revision"]) == 64

    def test_workers_get_no_weights(self):
        backbone = load_backbone(f"timm:{UNTAUGHT}", device="cpu")
        there = pickle.loads(pickle.dumps(backbone))
        picture = pictures(1)[0]
        assert torch.equal(there.prepare(picture), backbone.prepare(picture))
        assert there.describe() == backbone.describe()
        with pytest.raises(RuntimeError, match="without the weights"):
            there.embed([there.prepare(picture)])

    def test_labels(self):
        message = r"with labels \(ImageNet-22k and ImageNet-1k\)"
        with pytest.warns(UserWarning, match=message):
            load_backbone(f"timm:{TAUGHT}", device="cpu")

    def test_unknown_names(self):
        with pytest.raises(ValueError, match=r"timm cannot make this model"):
            load_backbone("timm:tinynet.dino", device="cpu")

    def test_no_network(self):
        with pytest.raises(ValueError, match=r"weights cannot be had .*HF_HOME"):
            load_backbone("timm:tiny_net.not_here", device="cpu")


def test_the_extra_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ValueError, match=r'^this needs timm: .*"sagl\[timm\]"'):
        load_backbone("timm:resnet18.a1_in1k", device="cpu")


def test_the_functions_that_are_called_exist():
    """What the stand-in has, the real one has too."""
    timm = pytest.importorskip(
        "timm", reason="timm is not installed", exc_type=ImportError
    )
    for name in ("create_model", "list_models", "__version__"):
        assert hasattr(timm, name)
    for name in ("resolve_model_data_config", "create_transform"):
        assert hasattr(timm.data, name)
