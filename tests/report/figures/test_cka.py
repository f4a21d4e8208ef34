"""Heat map of CKA."""

import numpy as np
import pytest

from sagl.report.figures import draw_cka
from tests.report.figures.looked_at import check


def matrix(n):
    values = np.random.default_rng(0).uniform(0, 1, (n, n))
    values = (values + values.T) / 2
    np.fill_diagonal(values, 1)
    return values


@pytest.mark.parametrize("n", [2, 3, 6, 12, 16])
def test_values_and_names_are_there(n):
    values = matrix(n)
    names = [f"a-rather-long-name-{i}" for i in range(n)]
    ax = draw_cka(values, names)
    np.testing.assert_array_equal(ax.images[0].get_array(), values)
    assert ax.images[0].get_clim() == (0, 1)
    if n <= 12:
        shown = [text.get_text() for text in ax.texts]
        assert shown == [f"{value:.2f}" for value in values.ravel()]
    assert [t.get_text()[:10] for t in ax.get_yticklabels()] == ["a-rather-l"] * n
    check(ax)


def test_given_axes_are_used_and_a_new_figure_is_saved(tmp_path):
    from matplotlib.figure import Figure

    mine = Figure().subplots()
    assert draw_cka(matrix(2), ["a", "b"], mine) is mine
    check(draw_cka(matrix(2), ["a", "b"]), tmp_path)


def test_other_shapes_are_refused():
    with pytest.raises(ValueError, match="3 names for CKA of shape"):
        draw_cka(matrix(2), ["a", "b", "c"])
