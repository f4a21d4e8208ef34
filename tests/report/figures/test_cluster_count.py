"""The curve behind a number of clusters that was chosen without labels."""

import numpy as np
import pytest

from sagl.report.figures import draw_cluster_count
from sagl.report.saving import words
from tests.report.figures.looked_at import check


def test_curve_band_and_choice(tmp_path):
    counts = [2, 5, 8, 10, 12, 15, 20, 30]
    scores = np.array([0.2, 0.5, 0.8, 0.9, 0.85, 0.8, 0.7, 0.6])
    ax = draw_cluster_count(
        counts, scores, scores - 0.1, scores + 0.05, chosen=10, measure="stability"
    )
    curve, chosen = ax.lines
    assert curve.get_xdata().tolist() == counts
    assert curve.get_ydata().tolist() == scores.tolist()
    assert chosen.get_xdata()[0] == 10
    [band] = ax.collections
    corners = band.get_paths()[0].vertices
    for count, score in zip(counts, scores, strict=True):
        at = corners[corners[:, 0] == count][:, 1]
        assert at.min() == pytest.approx(score - 0.1)
        assert at.max() == pytest.approx(score + 0.05)
    assert "highest at 10; 10 was chosen" in words(ax).alt
    check(ax, tmp_path)


@pytest.mark.parametrize(
    "counts", [[7], list(range(2, 60)), [2, 5, 10, 50, 100, 1000], [10, 11]]
)
def test_ticks_fit(counts):
    ax = draw_cluster_count(counts, np.linspace(0.1, 0.9, len(counts)))
    shown = {int(t.get_text().replace(",", "")) for t in ax.get_xticklabels()}
    assert shown <= set(counts)
    check(ax)


def test_bad_curves_are_refused():
    with pytest.raises(ValueError, match="1 scores for 2 numbers of clusters"):
        draw_cluster_count([2, 3], [0.1])
    with pytest.raises(ValueError, match=r"rise from 1; got \[3, 2\]"):
        draw_cluster_count([3, 2], [0.1, 0.2])
    with pytest.raises(ValueError, match="does not hold its score"):
        draw_cluster_count([2, 3], [0.1, 0.2], [0.2, 0.3], [0.3, 0.4])
    with pytest.raises(ValueError, match="4 clusters are not among"):
        draw_cluster_count([2, 3], [0.1, 0.2], chosen=4)
