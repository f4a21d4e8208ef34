"""One panel per setting of a sweep, one point per trial."""

import numpy as np
import pytest

from sagl.report.figures import draw_sweep
from sagl.report.saving import words
from tests.report.figures.looked_at import check


def trials(n=40, seed=0):
    rng = np.random.default_rng(seed)
    settings = [
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
    return settings, rng.uniform(0.4, 0.8, n)


def test_points_are_the_trials(tmp_path):
    tried, scores = trials()
    axes = draw_sweep(tried, scores, measure="agreement")
    names = [ax.get_xlabel() for ax in axes]
    assert names == ["learning_rate", "gamma", "gate", "batch_size", "self_loops"]
    rate = axes[0].collections[0].get_offsets()
    np.testing.assert_allclose(rate[:, 0], [t["learning_rate"] for t in tried])
    np.testing.assert_allclose(rate[:, 1], scores)
    assert axes[0].get_xscale() == axes[3].get_xscale() == "log"
    assert axes[1].get_xscale() == "linear"
    ticks = [text.get_text() for text in axes[2].get_xticklabels()]
    places = axes[2].collections[0].get_offsets()[:, 0]
    assert [ticks[int(p)] for p in places] == [t["gate"] for t in tried]
    best = int(np.argmax(scores))
    ring = axes[1].collections[1].get_offsets()
    np.testing.assert_allclose(ring, [[tried[best]["gamma"], scores[best]]])
    assert f"gate = {tried[best]['gate']}" in words(axes[0]).caption
    assert [bool(ax.get_ylabel()) for ax in axes] == [True, False, False, True, False]
    check(axes[0], tmp_path, unnamed=("y",))  # the first panel of a row names it


def test_failed_trials_and_missing_settings():
    tried, scores = trials(6)
    scores[2] = np.nan
    del tried[3]["gate"]
    check(draw_sweep(tried, scores)[0], unnamed=("y",))


def test_one_setting():
    [ax] = draw_sweep([{"k": 2}, {"k": 3}], [0.1, 0.2])
    check(ax)


def test_bad_sweeps_are_refused():
    with pytest.raises(ValueError, match="one score per trial"):
        draw_sweep([{"a": 1}], [1.0, 2.0])
    with pytest.raises(ValueError, match="at least one that is a number"):
        draw_sweep([{"a": 1}], [np.nan])
