"""Colours that can be told apart on any page, and labels that stay labels."""

import sys
from itertools import combinations

import matplotlib as mpl
import numpy as np
import pytest

from sagl.report import style
from sagl.report.style import (
    PALETTE,
    cluster_colours,
    name_legend,
    name_ticks,
    panels,
    plain,
    styled,
)

# Machado, Oliveira and Fernandes (2009), severity 1.0, on linear RGB.
DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}


def linear(colour):
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIE Lab of linear RGB, white D65."""
    to_xyz = np.array(
        [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ]
    )
    x, y, z = np.cbrt(to_xyz @ rgb.clip(0, 1) / [0.95047, 1, 1.08883])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(a, b):
    lights = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (a, b))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_hues_can_be_told_apart(deficiency):
    for n, least in ((8, 15), (24, 12)):  # a just noticeable difference is 2.3
        colours = cluster_colours(n)
        seen = [lab(DEFICIENCIES[deficiency] @ linear(colour)) for colour in colours]
        assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > least


@pytest.mark.parametrize("colour", PALETTE)
def test_hues_stand_out_from_light_and_dark_pages(colour):
    assert contrast(colour, "#ffffff") > 2.1
    assert contrast(colour, "#15171c") > 2.5


@pytest.mark.parametrize("colour", cluster_colours(24))
def test_no_cluster_vanishes_on_either_page(colour):
    assert min(contrast(colour, page) for page in ("#ffffff", "#15171c")) > 1.6


@pytest.mark.parametrize("n", [0, 1, 2, 8, 9, 24, 25, 1000])
def test_a_colour_for_each_cluster(n):
    colours = cluster_colours(n)
    assert len(colours) == n
    assert len(set(colours)) == min(n, 24)
    assert colours == cluster_colours(1000)[:n]  # a cluster keeps its colour


def test_text_on_colours_is_readable():
    for colour in cluster_colours(24):
        text = {"black": "#000000", "white": "#ffffff"}[style.text_on(colour)]
        assert contrast(colour, text) >= 4.5


def test_nothing_global_changes_and_no_window_opens():
    before = dict(mpl.rcParams)
    from sagl.report.figures import draw_cluster_sizes

    draw_cluster_sizes([0, 1, 1]).figure.canvas.draw()
    assert dict(mpl.rcParams) == before
    if "matplotlib.pyplot" in sys.modules:
        assert not sys.modules["matplotlib.pyplot"].get_fignums()


def test_given_axes_keep_their_ink():
    from matplotlib.figure import Figure

    from sagl.report.figures import draw_confidence, draw_losses

    top, bottom = Figure().subplots(2)
    top.xaxis.label.set_color("white")
    draw_confidence([0.2, 0.9], top)
    assert top.texts[0].get_color() == top.lines[0].get_color() == "white"
    history = [{"step": 1, "loss": 1.0, "diversity": 0.5}]
    draw_losses(history, axes=np.array([top, bottom]))
    assert bottom.get_legend().get_texts()[0].get_color() == "white"


def test_names_from_data_are_shown_as_they_are():
    names = ["_hidden", "$x^2$ & <b>", "a\nb\x00c"]

    @styled
    def draw():
        [ax] = panels()
        lines = [ax.plot([0, 1], [i, i])[0] for i in range(3)]
        name_legend(ax, lines, names)
        name_ticks(ax.xaxis, range(3), names)
        return ax

    ax = draw()
    ax.figure.canvas.draw()
    shown = ["_hidden", "$x^2$ & <b>", "a b c"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == shown
    assert [text.get_text() for text in ax.get_xticklabels()] == shown
    assert not any(text.get_parse_math() for text in ax.get_xticklabels())
    # The axes' ticks are still plain after they were drawn anew.
    assert not any(text.get_parse_math() for text in ax.get_legend().get_texts())


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("short", "short"),
        (7, "7"),
        ("  two   words ", "two words"),
        ("x" * 30, "x" * 9 + "…"),
        ("קטן", "קטן"),
        ("👩\u200d🔬 lab", "👩\u200d🔬 lab"),
        ("tab\there", "tab here"),
    ],
)
def test_plain(label, expected):
    assert plain(label, 10) == expected


def test_a_missing_package_is_one_line_with_the_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ValueError, match=r'needs matplotlib: pip install "sagl\[repo'):
        panels()
