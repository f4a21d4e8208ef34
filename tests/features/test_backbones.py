"""Names of backbones, right and wrong; those that are known; those of views."""

import pytest
import torch

from sagl.features.backbones import KNOWN, load_backbone, parse_backbones, parse_name
from tests.baselines.shared_space import quiet_transformers

CLIP = "openai/clip-vit-base-patch32"


class TestNames:
    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("clip-b32", ("hf", CLIP, None, None)),
            ("clip-b32#text", ("hf", CLIP, "text", None)),
            (f"hf:{CLIP}", ("hf", CLIP, None, None)),
            (f"hf:{CLIP}@0123abc#image", ("hf", CLIP, "image", "0123abc")),
            (
                "timm:convnextv2_tiny.fcmae",
                ("timm", "convnextv2_tiny.fcmae", None, None),
            ),
            ("npy:a#b.npz::c", ("npy", "a#b.npz::c", None, None)),
            ("my.module:encode#text", ("python", "my.module:encode", "text", None)),
        ],
    )
    def test_right(self, name, expected):
        assert tuple(parse_name(name))[1:] == expected
        assert parse_name(name).text == name

    def test_directories(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        for name in ("model", "a#text", "b@c"):
            (tmp_path / name).mkdir()
            for path in (f"./{name}", str(tmp_path / name)):
                assert tuple(parse_name(f"hf:{path}"))[1:] == ("hf", path, None, None)
        assert parse_name("hf:./a#text#image").side == "image"

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("dinov2s", "no backbone 'dinov2s'; did you mean dinov2-s"),
            ("clip-L14", "did you mean clip-l14"),
            ("facebook/dinov2-small", "write hf:facebook/dinov2-small for a model on"),
            ("features.npy", "write npy:features.npy for saved features"),
            ("xyzzy", "a backbone is hf:ID, timm:NAME, npy:FILE, module:function"),
            ("", "a backbone is hf:ID"),
            ("hf:", "nothing follows hf:"),
            ("clip-b32#sound", "'sound' follows the #; expected #image or #text"),
            ("timm:resnet50#text", "timm has models of images alone"),
            ("some where:encode", "no source 'some where'"),
            ("tfhub:a/b", "no source 'tfhub'; a backbone is"),
        ],
    )
    def test_wrong(self, name, message):
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            parse_name(name)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_a_directory_that_could_be_a_hub_name(self, tmp_path, monkeypatch):
        (tmp_path / "facebook" / "dinov2-small").mkdir(parents=True)
        monkeypatch.chdir(tmp_path)
        name = "facebook/dinov2-small"
        with pytest.raises(ValueError, match=f"write hf:./{name} for the directory"):
            parse_name(f"hf:{name}")
        with pytest.raises(ValueError, match=f"write hf:./{name} for a directory"):
            parse_name(name)

    def test_no_such_directory(self):
        pytest.importorskip("transformers")
        with pytest.raises(ValueError, match=r"^\./nothing: no such directory"):
            load_backbone("hf:./nothing")

    def test_a_device_that_is_not_there(self):
        with pytest.raises(ValueError, match="device 'nonsense' cannot be used"):
            load_backbone("dinov2-s", device="nonsense")


def test_short_names_are_the_papers_and_small_ones():
    paper = {name for name, known in KNOWN.items() if known.paper}
    assert paper == {"dinov3-l", "siglip2-l-384", "clip-l14", "convnextv2-l"}
    for kind in ("image", "text"):
        assert min(k.millions for k in KNOWN.values() if k.kind == kind) < 25


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


@pytest.mark.parametrize(
    ("option", "name", "backbone"),
    [
        ("dinov3-l", "dinov3-l", "dinov3-l"),
        ("hf:facebook/dinov2-small", "dinov2-small", "hf:facebook/dinov2-small"),
        ("hf:a/model.v1.5", "model.v1.5", "hf:a/model.v1.5"),
        ("hf:a/b@main#text", "b", "hf:a/b@main#text"),
        ("hf:./models/dino/", "dino", "hf:./models/dino/"),
        ("npy:saved/clip.npy", "clip", "npy:saved/clip.npy"),
        ("npy:all.npz::train", "all", "npy:all.npz::train"),
        ("my.module:embed#image", "embed", "my.module:embed#image"),
        ("x=hf:a/b", "x", "hf:a/b"),
        ("x=npy:run=3/a.npy", "x", "npy:run=3/a.npy"),
        ("npy:run=3/a.npy", "a", "npy:run=3/a.npy"),
        ("hf:a/b c!", "b-c", "hf:a/b c!"),
    ],
)
def test_a_view_is_named_after_its_backbone(option, name, backbone):
    assert parse_backbones([option]) == {name: backbone}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give --backbone"),
        (["x="], "nothing after the '='"),
        (["hf:a/b", "timm:b"], "there is a view 'b' already"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        parse_backbones(options)
