"""The table of short names, against models of these sizes (without memory)."""

import pytest
import torch

from sagl.features.backbones import KNOWN
from tests.baselines.shared_space import quiet_transformers


def vit(hidden, layers, heads, **more):
    return {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * hidden,
        **more,
    }


# As the config.json of each on the hub has it.
CONFIGS = {
    "dinov3-l": ("DINOv3ViT", vit(1024, 24, 16, num_register_tokens=4)),
    "dinov3-b": ("DINOv3ViT", vit(768, 12, 12, num_register_tokens=4)),
    "dinov3-s": ("DINOv3ViT", vit(384, 12, 6, num_register_tokens=4)),
    "dinov2-g": ("Dinov2", vit(1536, 40, 24, use_swiglu_ffn=True)),
    "dinov2-l": ("Dinov2", vit(1024, 24, 16)),
    "dinov2-b": ("Dinov2", vit(768, 12, 12)),
    "dinov2-s": ("Dinov2", vit(384, 12, 6)),
    "siglip2-l-384": ("SiglipVision", vit(1024, 24, 16, image_size=384)),
    "siglip2-b": ("SiglipVision", vit(768, 12, 12, image_size=224)),
    "clip-l14": ("CLIPVision", vit(1024, 24, 16, patch_size=14, projection_dim=768)),
    "clip-b16": ("CLIPVision", vit(768, 12, 12, patch_size=16, projection_dim=512)),
    "clip-b32": ("CLIPVision", vit(768, 12, 12, patch_size=32, projection_dim=512)),
    "convnextv2-l": (
        "ConvNextV2",
        {"hidden_sizes": [192, 384, 768, 1536], "depths": [3, 3, 27, 3]},
    ),
    "convnextv2-t": (
        "ConvNextV2",
        {"hidden_sizes": [96, 192, 384, 768], "depths": [3, 3, 9, 3]},
    ),
    "convnextv2-atto": (
        "ConvNextV2",
        {"hidden_sizes": [40, 80, 160, 320], "depths": [2, 2, 6, 2]},
    ),
    "mpnet": (
        "MPNet",
        vit(768, 12, 12, vocab_size=30527, max_position_embeddings=514),
    ),
    "e5-base": ("Bert", vit(768, 12, 12)),
    "e5-small": ("Bert", vit(384, 12, 12)),
    "bge-small": ("Bert", vit(384, 12, 12)),
    "minilm": ("Bert", vit(384, 6, 12)),
}
IMAGE_SIZES = {"Dinov2": {"image_size": 518, "patch_size": 14}}


def test_every_name_is_checked():
    assert set(CONFIGS) == set(KNOWN)


@pytest.mark.parametrize("name", CONFIGS)
def test_sizes(name):
    transformers = quiet_transformers()
    family, settings = CONFIGS[name]
    settings = {**IMAGE_SIZES.get(family, {}), **settings}
    config = getattr(transformers, f"{family}Config")(**settings)
    projected = "WithProjection" if family == "CLIPVision" else ""
    with torch.device("meta"):
        model = getattr(transformers, f"{family}Model{projected}")(config)
    millions = sum(p.numel() for p in model.parameters()) / 1e6
    known = KNOWN[name]
    assert round(millions, 1) == known.millions
    width = getattr(config, "projection_dim", None) if projected else None
    if family == "ConvNextV2":
        width = config.hidden_sizes[-1]
    assert (width or config.hidden_size) == known.dim


def test_labels_and_terms():
    taught = {name for name, known in KNOWN.items() if known.labels}
    assert taught == {name for name in KNOWN if name.startswith("convnextv2")}
    gated = {name for name, known in KNOWN.items() if known.gated}
    assert gated == {name for name in KNOWN if name.startswith("dinov3")}
    for known in KNOWN.values():
        assert known.model.count("/") == 1
        assert known.licence
        assert known.as_json()["backbone"] == f"hf:{known.model}"
