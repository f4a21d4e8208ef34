"""What the paper and its released code say: settings and figures."""

import pytest

from sagl import SAGL
from sagl.experiments.paper import (
    BACKBONES,
    PRESETS,
    find_preset,
    published_combination,
    published_figures,
)
from sagl.features.backbones import KNOWN
from sagl.features.readers import DATASETS

# train, test, C, learning rate, batch size, γ, β, dropout
SETTINGS = {
    "Pets": (3_680, 3_669, 37, 1e-3, 100, 5, 0.5, 0.1),
    "KITTI": (5_985, 1_496, 4, 5e-4, 100, 10, 0.5, 0.1),
    "Flowers": (2_040, 6_149, 102, 5e-4, 500, 5, 1.0, 0.0),
    "Caltech101": (3_060, 6_084, 102, 1e-3, 200, 5, 1.0, 0.2),
    "EuroSAT": (10_000, 5_000, 10, 1e-3, 500, 10, 0.1, 0.0),
    "SUN397": (19_850, 19_850, 397, 1e-3, 5_000, 10, 0.2, 0.1),
    "Food101": (75_750, 25_250, 101, 5e-4, 5_000, 20, 0.1, 0.1),
    "ImageNet-1K": (1_281_167, 50_000, 1_000, 5e-4, 10_000, 5, 0.2, 0.3),
}


def test_all_eight_are_there_and_have_a_reader():
    assert list(PRESETS) == list(DATASETS)
    assert [preset.title for preset in PRESETS.values()] == list(SETTINGS)


@pytest.mark.parametrize("title", SETTINGS)
def test_settings(title):
    preset = find_preset(title)
    assert SETTINGS[title] == (
        *(preset.n_train, preset.n_test, preset.n_classes),
        *(preset.learning_rate, preset.batch_size),
        *(preset.gamma, preset.beta, preset.dropout),
    )
    assert preset.epochs == 600
    assert "sagl-paper" in published_figures(preset.title)


@pytest.mark.parametrize("preset", PRESETS.values(), ids=list(PRESETS))
def test_sagl_takes_the_settings(preset):
    model = SAGL(preset.n_classes, random_state=0, **preset.settings())
    settings = model.resolved(preset.n_train)
    assert settings.gamma == preset.gamma
    assert settings.batch_size == preset.batch_size
    assert settings.pseudo_label == "log"  # the paper's equations
    assert not settings.refine
    per_epoch = settings.steps / 600
    assert per_epoch == pytest.approx(preset.n_train / preset.batch_size, abs=1)
    short = SAGL(preset.n_classes, random_state=0, **preset.settings(3))
    assert short.resolved(preset.n_train).steps == 3 * per_epoch


def test_where_the_released_code_differs_is_noted():
    assert "1e-3" in PRESETS["kitti"].note
    noted = {name for name, preset in PRESETS.items() if preset.note}
    assert noted == {"kitti", "caltech101", "eurosat", "food101"}


@pytest.mark.parametrize("name", ["imagenet", "ImageNet-1K", "IMAGENET1K"])
def test_names_may_be_written_as_the_paper_does(name):
    assert find_preset(name) is PRESETS["imagenet"]


def test_an_unknown_name_is_answered_with_the_eight():
    with pytest.raises(ValueError, match="no data set 'cifar10'") as error:
        find_preset("cifar10")
    assert all(name in str(error.value) for name in PRESETS)


def test_the_default_backbones_are_known_as_the_papers():
    assert all(KNOWN[name].paper for name in BACKBONES)


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
