"""Figures of choices made without labels: sweeps and the number of clusters."""

import numpy as np
import pytest

from sagl.report.figures import draw_cluster_count, draw_sweep
from sagl.report.saving import words
from tests.report.figures.looked_at import check


def trials(n=40, seed=0):
    rng = np.random.default_rng(seed)
    found = [
        {
            "learning_rate": float(10 ** rng.uniform(-4, -2)),
            "gamma": float(rng.choice([5.0, 10.0, 20.0])),
            "gate": str(rng.choice(["none", "shrink", "sharpen"])),
            "batch_size": int(rng.choice([100, 500, 1000, 5000])),
            "self_loops": bool(rng.random() < 0.5),
            "alpha": 1.5,
        }
        for _ in range(n)
    ]
    return found, rng.uniform(0.4, 0.8, n)


def test_points_are_the_trials(tmp_path):
    found, scores = trials()
    axes = draw_sweep(found, scores, measure="agreement")
    names = [ax.get_xlabel() for ax in axes]
    assert names == ["learning_rate", "gamma", "gate", "batch_size", "self_loops"]
    rate = axes[0].collections[0].get_offsets()
    np.testing.assert_allclose(rate[:, 0], [t["learning_rate"] for t in found])
    np.testing.assert_allclose(rate[:, 1], scores)
    assert axes[0].get_xscale() == axes[3].get_xscale() == "log"
    assert axes[1].get_xscale() == "linear"
    kinds = [text.get_text() for text in axes[2].get_xticklabels()]
    places = axes[2].collections[0].get_offsets()[:, 0]
    assert [kinds[int(p)] for p in places] == [t["gate"] for t in found]
    best = int(np.argmax(scores))
    ring = axes[1].collections[1].get_offsets()
    np.testing.assert_allclose(ring, [[found[best]["gamma"], scores[best]]])
    assert f"gate = {found[best]['gate']}" in words(axes[0]).caption
    assert [bool(ax.get_ylabel()) for ax in axes] == [True, False, False, True, False]
    check(axes[0], tmp_path, unnamed=("y",))  # the first panel of a row names it


def test_failed_trials_and_missing_settings():
    found, scores = trials(6)
    scores[2] = np.nan
    del found[3]["gate"]
    check(draw_sweep(found, scores)[0], unnamed=("y",))


def test_one_setting():
    [ax] = draw_sweep([{"k": 2}, {"k": 3}], [0.1, 0.2])
    check(ax)


def test_bad_sweeps_are_refused():
    with pytest.raises(ValueError, match="one score per trial"):
        draw_sweep([{"a": 1}], [1.0, 2.0])
    with pytest.raises(ValueError, match="at least one that is a number"):
        draw_sweep([{"a": 1}], [np.nan])


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
