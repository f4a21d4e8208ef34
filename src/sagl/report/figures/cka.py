"""How alike the views are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sagl.evaluation.cka import judge_views
from sagl.report.heat_map import draw_cells
from sagl.report.saving import describe
from sagl.report.style import axes_or_new, colour_bar, name_axes, name_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_cka(cka: ArrayLike, names: Sequence[str], ax: Axes | None = None) -> Axes:
    """Heat map of CKA between every pair of views.

    Parameters
    ----------
    cka : array-like of shape (L, L)
        From :func:`sagl.evaluation.cka.cka_matrix`.
    names : sequence of str
        The views' names.
    ax : Axes, optional
        Where to draw; by default a new figure.
    """
    pairs = judge_views(cka, names)  # refuses a matrix of another shape
    matrix = np.asarray(cka, dtype=np.float64)
    side = float(np.clip(1.6 + 0.55 * len(names), 3.0, 6.0))
    ax = axes_or_new(ax, height=side)
    image = draw_cells(ax, matrix, 0, 1, "{:.2f}")
    places = range(len(names))
    name_ticks(ax.xaxis, places, names, limit=16)
    name_ticks(ax.yaxis, places, names, limit=20)
    if max(len(name) for name in names) * len(names) > 60:
        ax.tick_params(axis="x", rotation=40)
        for text in ax.get_xticklabels():
            text.set(ha="right", rotation_mode="anchor")
    name_axes(ax, "view", "view")
    colour_bar(ax, image, "CKA, debiased")
    said = " ".join(pair.in_words() for pair in pairs[:10])
    describe(
        ax,
        alt=f"Heat map of CKA between {len(names)} views. {said}".strip(),
        caption="How alike the views are: CKA of 1 means the same similarities "
        "between samples, 0 nothing in common.",
    )
    return ax
