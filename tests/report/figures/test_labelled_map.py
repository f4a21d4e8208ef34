"""The labelled map: every name where there is room, none over another."""

import numpy as np
import pytest

from sagl.report.figures import draw_map
from sagl.report.saving import save, words
from tests.report.pages import HOSTILE


def crowded(n_clusters, spread):
    rng = np.random.default_rng(0)
    labels = np.arange(40 * n_clusters) % n_clusters
    centres = rng.normal(size=(n_clusters, 2)) * spread
    return centres[labels] + rng.normal(size=(len(labels), 2)), labels


def boxes(ax):
    ax.figure.draw_without_rendering()
    return [text.get_window_extent() for text in ax.texts]


@pytest.mark.parametrize(("n_clusters", "spread"), [(3, 9), (20, 4), (40, 0)])
def test_no_name_lies_over_another_or_outside(n_clusters, spread):
    points, labels = crowded(n_clusters, spread)
    names = [f"cluster number {k}" for k in range(n_clusters)]
    ax = draw_map(points, labels, names=names)
    found = boxes(ax)
    for i, box in enumerate(found):
        assert not any(box.overlaps(other) for other in found[:i])
        assert ax.bbox.x0 <= box.x0
        assert box.x1 <= ax.bbox.x1
    shown = {text.get_text() for text in ax.texts}
    assert shown <= set(names)
    missing = n_clusters - len(shown)
    assert missing == 0 or f"{missing} have no room" in words(ax).caption
    assert missing == 0 or n_clusters == 40


def test_the_same_holds_in_every_file(tmp_path):
    points, labels = crowded(12, 3)
    ax = draw_map(points, labels)
    for name in ("map.svg", "map.png", "map.pdf"):
        save(ax, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 5_000
    found = boxes(ax)
    for i, box in enumerate(found):
        assert not any(box.overlaps(other) for other in found[:i])


def test_empty_clusters_have_no_name_and_names_are_text():
    points = np.array([[0.0, 0], [1, 1], [2, 0]])
    ax = draw_map(points, [0, 2, 2], names=["$x^2$", "nobody", HOSTILE[0]])
    shown = [text.get_text() for text in ax.texts]
    assert "$x^2$" in shown
    assert "nobody" not in shown
    assert len(shown) == 2


@pytest.mark.parametrize(
    ("points", "labels", "names", "error"),
    [
        ([[0.0, 0]], [0, 1], None, "place in the plane per label"),
        ([[0.0, np.nan]], [0], None, "finite"),
        ([[0.0, 0]], [-1], None, "counted from 0"),
        ([[0.0, 0]], [1], ["one"], "1 names for 2 clusters"),
    ],
)
def test_bad_input_is_refused(points, labels, names, error):
    with pytest.raises(ValueError, match=error):
        draw_map(points, labels, names=names)
