"""Bands between two partitions: as wide as what they stand for, and in order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.patches import PathPatch

from sagl.report.figures import draw_flow
from sagl.report.saving import words
from tests.report.pages import HOSTILE


def bands(ax):
    return [patch for patch in ax.patches if isinstance(patch, PathPatch)]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 6), st.integers(1, 6))
def test_bands_are_as_wide_as_what_they_stand_for(seed, C, D):
    flow = np.random.default_rng(seed).integers(0, 4, (C, D))
    flow[0, 0] += 1
    ax = draw_flow(flow, [f"a{k}" for k in range(C)], [f"b{k}" for k in range(D)])
    drawn = bands(ax)
    assert len(drawn) == (flow > 0).sum()
    widths = sorted(
        np.abs(p.get_path().vertices[0, 1] - p.get_path().vertices[7, 1]) for p in drawn
    )
    expected = np.sort(flow[flow > 0])
    np.testing.assert_allclose(np.array(widths) / widths[0], expected / expected[0])


def test_what_moved_stands_out_and_is_counted():
    ax = draw_flow([[8, 2], [0, 5]], ["x", "y"], ["u", "v"], match={0: 0, 1: 1})
    alphas = [band.get_alpha() for band in bands(ax)]
    assert sorted(alphas)[-1] > 2 * sorted(alphas)[0]
    assert alphas.count(max(alphas)) == 1
    assert "2 moved" in words(ax).caption
    # A counterpart has the colour of its cluster, the other one a colour of its own.
    bars = [p.get_facecolor() for p in ax.patches if not isinstance(p, PathPatch)]
    assert len(set(bars)) == 2


def test_names_are_text_and_bad_shapes_are_refused():
    ax = draw_flow([[1, 2]], [HOSTILE[0]], HOSTILE[1:3], titles=("$x$", HOSTILE[4]))
    shown = [text.get_text() for text in ax.texts]
    assert any("script" in text for text in shown)
    assert "$x$" in shown
    with pytest.raises(ValueError, match="shape"):
        draw_flow([[1, 2]], ["x"], ["u"])
    with pytest.raises(ValueError, match="counts no sample"):
        draw_flow([[0]], ["x"], ["u"])
