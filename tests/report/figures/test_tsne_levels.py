"""Scatters at three levels."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

from sagl.report.figures import draw_tsne_levels
from sagl.report.style import cluster_colours
from tests.report.figures.looked_at import check


def levels(n, n_clusters, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % n_clusters
    centers = 30 * rng.normal(size=(n_clusters, 2))
    noise = rng.normal(size=(3, n, 2))
    points = {
        "original features": 30 * noise[0],
        "linear features": centers[labels] + 15 * noise[1],
        "representations": centers[labels] + 2 * noise[2],
    }
    return points, labels


def test_points_have_their_places_and_colours(tmp_path):
    places, labels = levels(500, 10)
    axes = draw_tsne_levels(places, labels, name="dino")
    colours = cluster_colours(10)
    for ax, (name, xy) in zip(axes, places.items(), strict=True):
        assert ax.get_title() == name
        [points] = ax.collections
        shown = {
            (*at, to_hex(colour))
            for at, colour in zip(
                points.get_offsets().tolist(), points.get_facecolor(), strict=True
            )
        }
        assert shown == {(*xy[i], colours[labels[i]]) for i in range(500)}
    check(axes[0], tmp_path, unnamed=("y",))  # the first panel's holds for all


def test_numbers_of_clusters_do_not_collide():
    points, labels = levels(4000, 200)
    axes = draw_tsne_levels(points, labels)
    texts = axes[-1].texts
    assert 10 < len(texts) <= 24
    figure = axes[0].figure
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in texts]
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            assert not a.overlaps(b)
    check(axes[0], unnamed=("y",))


def test_each_number_is_at_its_cluster():
    points, labels = levels(300, 3)
    axes = draw_tsne_levels(points, labels)
    for text in axes[-1].texts:
        cluster = int(text.get_text())
        expected = np.median(points["representations"][labels == cluster], axis=0)
        np.testing.assert_allclose(text.get_position(), expected)


def test_many_points_are_pixels_and_the_file_stays_small(tmp_path):
    from sagl.report import save

    points, labels = levels(5000, 10)
    axes = draw_tsne_levels(points, labels)
    assert axes[0].collections[0].get_rasterized()
    save(axes[0], tmp_path / "tsne.svg")
    assert (tmp_path / "tsne.svg").stat().st_size < 600e3


def test_one_level_and_given_axes():
    from matplotlib.figure import Figure

    points, labels = levels(50, 2)
    mine = Figure().subplots()
    one = {"representations": points["representations"]}
    assert draw_tsne_levels(one, labels, axes=[mine]) == [mine]
    check(draw_tsne_levels(one, labels)[0])


def test_bad_input_is_refused():
    points, labels = levels(50, 2)
    with pytest.raises(ValueError, match="original features: expected 49 finite"):
        draw_tsne_levels(points, labels[1:])
    with pytest.raises(ValueError, match="no levels given"):
        draw_tsne_levels({}, labels)
    with pytest.raises(ValueError, match="1 axes for 3 levels"):
        draw_tsne_levels(points, labels, axes=[None])
    points["linear features"][3] = np.nan
    with pytest.raises(ValueError, match="linear features: expected 50 finite"):
        draw_tsne_levels(points, labels)
