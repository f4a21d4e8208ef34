"""Rows and the forms in which they are written."""

import pytest

from sagl.experiments.table import (
    Row,
    _time_to,
    cells,
    markdown_table,
    published_combination,
    published_figures,
    shown,
)

ROWS = (
    Row("a", "A", False, 2, {"acc": 0.5, "nmi": 0.6, "ari": 0.4, "ami": 0.5},
        {"acc": 0.01, "nmi": 0.0, "ari": 0.0, "ami": 0.0}, 0.49, 3.0, 12.0, 300.0,
        None, 5.0, 0.9),
    Row("b", "B", False, 0, note="ValueError: no"),
    Row("c", "C", True, 1, {"acc": 0.9, "nmi": 0.9, "ari": 0.9, "ami": 0.9},
        {"acc": 0.0, "nmi": 0.0, "ari": 0.0, "ami": 0.0}, 0.9, 3.0, 1.0, 10.0),
)  # fmt: skip


def test_bold_is_for_the_best_without_labels():
    first, second, third = cells(ROWS)
    assert first["ACC"] == "**0.500 ± 0.010**"
    assert third["method"] == "C (with labels)"
    assert third["ACC"] == "0.900"
    assert second["ACC"] == ""
    assert second[""] == "ValueError: no"
    assert first["to k-means+10"] == "—"  # never reached
    assert first["to TURTLE"] == "5"
    assert second["to k-means+10"] == ""


def test_markdown():
    columns = ["method", "ACC"]
    lines = [[line[c] for c in columns] for line in cells(ROWS)]
    assert markdown_table(columns, lines).splitlines() == [
        "| method | ACC |",
        "| --- | --- |",
        "| A | **0.500 ± 0.010** |",
        "| B |  |",
        "| C (with labels) | 0.900 |",
    ]


def test_records_have_the_same_names():
    first, second, third = (row.record() for row in ROWS)
    assert list(first) == list(second) == list(third)
    assert (first["name"], first["acc_mean"], first["to_turtle"]) == ("a", 0.5, 5.0)
    assert second["acc_mean"] is None
    assert second["label_free_total"] is None


def test_time_to_a_mark():
    def run(*curve):
        return {"curve": list(curve)}

    slow, fast = run((1, 0.2), (9, 0.8)), run((1, 0.6), (2, 0.9))
    never = run((1, 0.1), (9, 0.2))
    assert _time_to([slow, fast, fast], 0.6) == 1
    assert _time_to([slow, slow, fast], 0.7) == 9
    assert _time_to([never, never, fast], 0.7) is None
    assert _time_to([fast], None) is None


def test_values_of_settings():
    assert [shown(v) for v in (None, 0.5, 3, "none")] == ["", "0.5", "3", "none"]


def test_figures_of_the_paper():
    pets = published_figures("Pets")
    assert pets["sagl-paper"] == {"acc": 0.9757, "nmi": 0.9733, "ari": 0.9535}
    assert pets["cpp"]["nmi"] == 0.8099
    assert published_figures("imagenet1k_dino")["linear-probe"] == {"acc": 0.8704}


@pytest.mark.parametrize("name", ["", "views", "handwritten", "my_pets"])
def test_other_data_sets_have_none(name):
    assert published_figures(name) == {}


def test_every_data_set_has_every_method():
    names = ("Pets", "KITTI", "Flowers", "Caltech101", "EuroSAT", "SUN397", "Food101")
    for name in (*names, "ImageNet-1K"):
        figures = published_figures(name)
        assert len(figures) == 10
        assert all(0 < figure["acc"] <= 1 for figure in figures.values())


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
    assert published_combination("pets_mine", views).get("acc") == acc


def test_combinations_agree_with_the_main_table():
    names = ("Pets", "KITTI", "Flowers", "Caltech101", "EuroSAT", "SUN397", "Food101")
    for name in (*names, "ImageNet-1K"):
        pair = published_combination(name, ["dinov3", "siglip2"])
        assert pair == published_figures(name)["sagl-paper"]
    food = published_combination("food101", ["convnextv2", "siglip2"])
    assert food["ari"] == 0.9672
    assert published_combination("my_photos", ["dinov3", "siglip2"]) == {}
