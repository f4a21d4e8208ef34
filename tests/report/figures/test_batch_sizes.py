"""Scores over batch sizes."""

import numpy as np
import pytest

from sagl.report.figures import draw_batch_sizes
from tests.report.figures.looked_at import check


def test_curves_are_the_scores(tmp_path):
    sizes = [100, 500, 1000, 5000]
    scores = {"γ = 5": [0.7, 0.72, 0.71, 0.7], "γ = 10": [0.69, 0.7, np.nan, 0.72]}
    sd = {"γ = 5": [0.01] * 4, "γ = 10": [0.02] * 4}
    ax = draw_batch_sizes(sizes, scores, sd=sd, measure="ACC")
    curves = [container[0] for container in ax.containers]
    for line, ys in zip(curves, scores.values(), strict=True):
        assert line.get_xdata().tolist() == sizes
        np.testing.assert_array_equal(line.get_ydata(), ys)
    assert [t.get_text() for t in ax.get_xticklabels()] == [f"{s:,}" for s in sizes]
    assert ax.get_ylabel() == "ACC"
    bars = ax.containers[0][2][0].get_segments()
    np.testing.assert_allclose(bars[0][:, 1], [0.69, 0.71])
    check(ax, tmp_path)


def test_bad_curves_are_refused():
    with pytest.raises(ValueError, match=r"each of 2 batch sizes; got a \(3,\)"):
        draw_batch_sizes([100, 200], {"a": [1, 2, 3]})
    with pytest.raises(ValueError, match="no curves"):
        draw_batch_sizes([100, 200], {})
    with pytest.raises(ValueError, match=r"rising; got \[200, 100\]"):
        draw_batch_sizes([200, 100], {"a": [1, 2]})
