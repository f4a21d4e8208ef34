"""Bars of the methods: scores and training times, from rows of a comparison."""

import numpy as np
import pytest

from sagl.experiments.table import Row
from sagl.report.figures import draw_accuracy, draw_training_times
from sagl.report.saving import words
from tests.report.figures.looked_at import check


def row(name, title, acc, seconds, *, supervised=False, published=None, sd=0.01):
    measures = ("acc", "nmi", "ari", "ami")
    return Row(
        name=name,
        title=title,
        supervised=supervised,
        runs=3,
        mean=dict.fromkeys(measures, acc),
        sd=dict.fromkeys(measures, sd),
        seconds=seconds,
        published_acc=published,
    )


ROWS = [
    row("kmeans", "k-means", 0.501, 0.4),
    row("sagl", "SAGL", 0.721, 31.5, published=0.9757),
    row("turtle", "TURTLE", 0.621, 412.0, published=0.9605),
    row("sagl-b", "SAGL_b (dense graph)", 0.666, 60.0, sd=0.04),
    row("zero-shot", "zero-shot", 0.88, 0.1, supervised=True, sd=0.0),
    row("lafter", "LaFTer (classifier)", 0.9, 12.0, supervised=True),
    row("linear-probe", "linear probe", 0.925, 3.0, supervised=True, published=0.97),
    Row("srlf", "SRLF", False, 0, published_acc=0.9545, note="published, not run"),
    Row("temi", "TEMI", False, 0, note="seed 0: out of memory"),
]


def test_bars_are_the_means_in_three_groups(tmp_path):
    ax = draw_accuracy(ROWS, data="pets")
    titles = [text.get_text() for text in ax.get_yticklabels()]
    assert titles == [
        *("SAGL", "SAGL_b (dense graph)", "TURTLE", "k-means"),
        *("LaFTer (classifier)", "zero-shot", "linear probe"),
    ]
    by_title = {r.title: r for r in ROWS}
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == [by_title[title].mean["acc"] for title in titles]
    colours = [bar.get_facecolor() for bar in ax.patches]
    assert len(set(colours[:4])) == len(set(colours[4:6])) == 1
    assert len(set(colours)) == 3
    [published] = [line for line in ax.lines if line.get_marker() == "D"]
    assert dict(zip(published.get_ydata(), published.get_xdata(), strict=True)) == {
        0: 0.9757,
        2: 0.9605,
        6: 0.97,
    }
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == [
        *("without labels", "with class names", "with labels"),
        "published, other features",
    ]
    assert "linear probe (with labels) 0.925" in words(ax).alt
    check(ax, tmp_path)


def test_other_measures_have_no_published_marks():
    ax = draw_accuracy(ROWS, measure="nmi")
    assert ax.get_xlabel() == "NMI"
    assert not [line for line in ax.lines if line.get_marker() == "D"]
    check(ax)


def test_a_single_method_below_chance():
    check(draw_accuracy([row("x", "X", -0.05, 1.0)], measure="ari"))


def test_times_are_the_seconds(tmp_path):
    ax = draw_training_times({"pets": ROWS})
    titles = [text.get_text() for text in ax.get_yticklabels()]
    times = {r.title: r.seconds for r in ROWS if r.seconds is not None}
    assert titles == list(times)
    assert [bar.get_width() for bar in ax.patches] == list(times.values())
    assert ax.get_xscale() == "log"
    assert ax.get_legend() is None
    check(ax, tmp_path)


def test_times_of_several_data_sets():
    half = [row(r.name, r.title, 0.5, r.seconds / 2) for r in ROWS[:3]]
    ax = draw_training_times({"pets": ROWS[:4], "flowers": half})
    first, second = ax.containers
    assert [bar.get_width() for bar in first] == [0.4, 31.5, 412.0, 60.0]
    assert [bar.get_width() for bar in second] == [0.2, 15.75, 206.0]
    # Bars of one method lie beside each other, around its name.
    for a, b, place in zip(first, second, range(3), strict=False):
        assert a.get_y() + a.get_height() <= b.get_y() + 1e-9
        assert a.get_y() < place < b.get_y() + b.get_height()
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["pets", "flowers"]
    check(ax)


def test_eight_data_sets():
    rng = np.random.default_rng(0)
    rows = {
        f"set {i}": [
            row(t.lower(), t, 0.5, float(10 ** rng.uniform(0, 4)))
            for t in ("SAGL", "MSRL", "TURTLE")
        ]
        for i in range(8)
    }
    check(draw_training_times(rows))


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="no method has a score 'acc'"):
        draw_accuracy(ROWS[-2:])
    with pytest.raises(ValueError, match="no method has a training time"):
        draw_training_times({"pets": ROWS[-2:]})
    with pytest.raises(ValueError, match=r"above 0 seconds; got 0\.0"):
        draw_training_times({"pets": [row("a", "A", 0.5, 0.0)]})
