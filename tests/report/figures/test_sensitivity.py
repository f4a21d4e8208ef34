"""Scores over γ × β and over batch sizes."""

import numpy as np
import pytest

from sagl.report.figures import draw_batch_sizes, draw_sensitivity
from sagl.report.saving import words
from tests.report.figures.looked_at import check

GAMMAS, BETAS = [5.0, 10.0, 20.0], [0.1, 0.2, 0.5, 1.0]


def test_cells_are_the_scores(tmp_path):
    scores = np.random.default_rng(0).uniform(0.6, 0.8, (3, 4))
    ax = draw_sensitivity(GAMMAS, BETAS, scores, measure="NMI")
    np.testing.assert_array_equal(ax.images[0].get_array(), scores)
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0.1", "0.2", "0.5", "1"]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["5", "10", "20"]
    i, j = np.unravel_index(scores.argmax(), scores.shape)
    best = f"best {scores.max():.3f} at γ = {GAMMAS[i]:g}, β = {BETAS[j]:g}"
    assert best in words(ax).caption
    check(ax, tmp_path)


def test_missing_runs_leave_gaps_and_large_grids_are_images():
    scores = np.random.default_rng(0).uniform(size=(3, 4))
    scores[1, 2] = np.nan
    assert len(draw_sensitivity(GAMMAS, BETAS, scores).texts) == 11
    wide = np.random.default_rng(0).uniform(size=(13, 13))
    ax = draw_sensitivity(range(1, 14), range(1, 14), wide)
    assert not ax.texts
    check(ax)


def test_bad_grids_are_refused():
    with pytest.raises(ValueError, match=r"shape \(2, 2\) for 3 values of γ and 4"):
        draw_sensitivity(GAMMAS, BETAS, np.zeros((2, 2)))
    with pytest.raises(ValueError, match="no pair of γ and β has a score"):
        draw_sensitivity(GAMMAS, BETAS, np.full((3, 4), np.nan))


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
