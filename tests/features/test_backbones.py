"""Names of backbones, right and wrong."""

import pytest

from sagl.features.backbones import KNOWN, load_backbone, parse_name

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
            ("HF:a/b", "no source 'HF'; write hf:a/b"),
            ("huggingface:a/b", "no source 'huggingface'; write hf:a/b"),
            ("numpy:x.npy", "write npy:x.npy"),
            ("hf:dinov2-s", "is a short name; write it without hf:, or hf:facebook/"),
            ("clip-b32#sound", "'sound' follows the #; expected #image or #text"),
            ("timm:resnet50#text", "timm has models of images alone"),
            ("my/code.py:encode", "name the module: my.code:encode"),
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
        with pytest.raises(ValueError, match=f"write hf:./{name} for this directory"):
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
