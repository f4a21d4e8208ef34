"""Bars of cluster sizes, histogram of confidence."""

import numpy as np
import pytest

from sagl.report.figures import draw_cluster_sizes, draw_confidence
from sagl.report.saving import words
from tests.report.figures.looked_at import check


@pytest.mark.parametrize("n_clusters", [2, 10, 40, 41, 1000])
def test_bars_are_the_sizes_largest_first(n_clusters):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, n_clusters, 20 * n_clusters)
    ax = draw_cluster_sizes(labels, n_clusters)
    sizes = np.bincount(labels, minlength=n_clusters)
    if n_clusters > 40:
        [skyline] = ax.patches
        assert skyline.get_data().values.tolist() == sorted(sizes, reverse=True)
    else:
        heights = [bar.get_height() for bar in ax.patches]
        assert heights == sorted(sizes, reverse=True)
        numbers = [int(text.get_text()) for text in ax.get_xticklabels()]
        assert sizes[numbers].tolist() == heights
    assert ax.lines[0].get_ydata()[0] == 20  # the even share
    check(ax)


def test_names_follow_their_bars(tmp_path):
    ax = draw_cluster_sizes([0, 1, 1, 2, 2, 2], names=["few", "$some$", "many"])
    shown = [text.get_text() for text in ax.get_xticklabels()]
    assert shown == ["many", "$some$", "few"]
    check(ax, tmp_path)


def test_empty_clusters_are_counted():
    assert words(draw_cluster_sizes([0, 0], 3)).caption.endswith("2 are empty.")


@pytest.mark.parametrize(
    ("labels", "n_clusters", "message"),
    [
        ([], None, "one whole number per sample"),
        ([0.5, 1.0], None, "one whole number per sample"),
        ([[0], [1]], None, "one whole number per sample"),
        ([0, -1], None, "label 1 is -1; clusters are counted from 0"),
        ([0, 3], 3, "label 1 is 3; clusters are counted from 0 and below 3"),
    ],
)
def test_bad_labels_are_refused(labels, n_clusters, message):
    with pytest.raises(ValueError, match=message):
        draw_cluster_sizes(labels, n_clusters)


def test_as_many_names_as_clusters():
    with pytest.raises(ValueError, match="1 names for 2 clusters"):
        draw_cluster_sizes([0, 1], names=["a"])


def test_counts_and_median(tmp_path):
    values = np.random.default_rng(0).beta(5, 2, 3000)
    ax = draw_confidence(values)
    expected, _ = np.histogram(values, bins=40, range=(0, 1))
    assert [bar.get_height() for bar in ax.patches] == expected.tolist()
    assert ax.lines[0].get_xdata()[0] == np.median(values)
    assert f"{np.mean(values < 0.5):.1%}" in words(ax).caption
    check(ax, tmp_path)


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_all_the_same(value):
    ax = draw_confidence(np.full(10, value))
    assert sum(bar.get_height() for bar in ax.patches) == 10
    check(ax)


@pytest.mark.parametrize("bad", [np.nan, -0.1, 1.1])
def test_other_numbers_are_refused(bad):
    with pytest.raises(ValueError, match="confidence of sample 1 is"):
        draw_confidence([0.5, bad])
    with pytest.raises(ValueError, match="one confidence per sample"):
        draw_confidence([])
