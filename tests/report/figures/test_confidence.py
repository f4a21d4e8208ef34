"""Histogram of confidence."""

import numpy as np
import pytest

from sagl.report.figures import draw_confidence
from sagl.report.saving import words
from tests.report.figures.looked_at import check


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
