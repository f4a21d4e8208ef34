"""The paper's figures as they are printed there."""

import pytest

from sagl.experiments.published import published_figures


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
