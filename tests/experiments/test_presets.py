"""The presets say what the paper and its released code say."""

import pytest

from sagl import SAGL
from sagl.experiments.presets import BACKBONES, PRESETS, find_preset
from sagl.experiments.published import published_figures
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
