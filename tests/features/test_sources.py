"""Names of backbones, and what their views are called."""

import pytest

from sagl.features.backbones import parse_backbones


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
        ([], "Give --backbone"),
        (["x="], "nothing after the '='"),
        (["hf:a/b", "timm:b"], "there is a view 'b' already"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        parse_backbones(options)
