"""The paper's figures as they are printed there."""

import pytest

from sagl.experiments.published import published_combination, published_figures


def test_figures_of_the_paper():
    pets = published_figures("Pets")
    assert pets["sagl-paper"].acc == pytest.approx(0.9757)
    assert pets["sagl-paper"].ari == pytest.approx(0.9535)
    assert pets["cpp"].nmi == pytest.approx(0.8099)
    assert published_figures("imagenet1k_dino")["linear-probe"].acc == 0.8704
    assert published_figures("KITTI")["srlf"].only_published
    assert not published_figures("KITTI")["turtle"].only_published


@pytest.mark.parametrize("name", ["", "views", "handwritten", "my_pets"])
def test_other_data_sets_have_none(name):
    assert published_figures(name) == {}


def test_every_data_set_has_every_method():
    names = ("Pets", "KITTI", "Flowers", "Caltech101", "EuroSAT", "SUN397", "Food101")
    for name in (*names, "ImageNet-1K"):
        figures = published_figures(name)
        assert len(figures) == 10
        assert all(0 < figure.acc <= 1 for figure in figures.values())


@pytest.mark.parametrize(
    ("views", "acc"),
    [
        (["convnextv2-l", "dinov3-l"], 0.9463),
        (["ConvNeXtV2", "siglip2-l-384"], 0.9319),
        (["siglip2-l-384", "dinov3-l", "convnextv2-l"], 0.9079),
        (["dinov3", "clipvitL14", "siglip2"], 0.9231),
        (["siglip2-l-384", "dinov3-l"], 0.9757),
        (["siglip2-l-384", "dinov3-l", "dinov3-s"], None),  # two of a family
        (["dinov3-l"], None),
        (["dinov3-l", "clip-b16"], None),  # not the paper's CLIP
        (["dinov3-l", "pixels"], None),
    ],
)
def test_combinations_of_views(views, acc):
    found = published_combination("pets_mine", views)
    assert (found and found.acc) == acc


def test_combinations_agree_with_the_main_table():
    names = ("Pets", "KITTI", "Flowers", "Caltech101", "EuroSAT", "SUN397", "Food101")
    for name in (*names, "ImageNet-1K"):
        pair = published_combination(name, ["dinov3", "siglip2"])
        main = published_figures(name)["sagl-paper"]
        assert (pair.acc, pair.nmi, pair.ari) == (main.acc, main.nmi, main.ari)
    assert published_combination("food101", ["convnextv2", "siglip2"]).ari == 0.9672
    assert published_combination("my_photos", ["dinov3", "siglip2"]) is None
