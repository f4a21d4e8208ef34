"""Candidates with their label-free score and, beside it, the score with labels."""

import numpy as np
import pytest

from sagl.report.figures import draw_candidates
from sagl.report.saving import words
from tests.report.figures.looked_at import check


def candidates(n, seed=0):
    rng = np.random.default_rng(seed)
    names = [f"view{i} + a-longer-view-name" for i in range(n)]
    return names, rng.uniform(0.5, 3, n), rng.uniform(0.2, 0.95, n)


def test_bars_are_the_scores_best_first(tmp_path):
    names, scores, truth = candidates(9)
    best = int(np.argmax(scores))
    sd = np.full(9, 0.05)
    left, right = draw_candidates(
        names, scores, sd=sd, truth=truth, truth_sd=sd, chosen=best, measure="nats"
    )
    order = np.argsort(-scores)
    assert [bar.get_width() for bar in left.patches] == scores[order].tolist()
    assert [bar.get_width() for bar in right.patches] == truth[order].tolist()
    shown = [text.get_text() for text in left.get_yticklabels()]
    assert shown == [names[i] for i in order]
    hatched = [bool(bar.get_hatch()) for bar in left.patches]
    assert hatched == [True] + [False] * 8
    assert f"Chosen, hatched: {names[best]}" in words(left).caption
    assert right.get_xlabel() == "ACC, not used"
    check(left, tmp_path, unnamed=("y",))


def test_the_score_alone():
    names, scores, _ = candidates(4)
    [ax] = draw_candidates(names, scores, what="variant")
    assert ax.get_ylabel() == "variant"
    check(ax)


@pytest.mark.parametrize("n", [1, 2, 40, 64])
def test_many(n):
    names, scores, truth = candidates(n)
    left, _ = draw_candidates(names, scores, truth=truth)
    assert len(left.patches) == min(n, 40)
    assert ("The best 40 are shown" in words(left).caption) == (n > 40)
    check(left, unnamed=("y",))


def test_scores_of_zero_and_below():
    check(draw_candidates(["a", "b"], [0.0, 0.0])[0])
    check(draw_candidates(["a", "b"], [0.2, -0.1])[0])


def test_other_lengths_are_refused():
    with pytest.raises(ValueError, match=r"truth of shape \(1,\) for 2 names"):
        draw_candidates(["a", "b"], [1.0, 2.0], truth=[0.5])
    with pytest.raises(ValueError, match=r"scores of shape \(0,\) for 0 names"):
        draw_candidates([], [])
