"""How alike the views are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sagl.evaluation.cka import judge_views
from sagl.report import style


@style.styled
def draw_cka(
    cka: ArrayLike, names: Sequence[str], ax: style.Axes | None = None
) -> style.Axes:
    """Heat map of CKA between every pair of views.

    Parameters
    ----------
    cka : array-like of shape (L, L)
        From :func:`sagl.evaluation.cka.cka_matrix`.
    names : sequence of str
        The views' names.
    """
    pairs = judge_views(cka, names)  # refuses a matrix of another shape
    matrix = np.asarray(cka, dtype=np.float64)
    ax = style.axes_or_new(ax, float(np.clip(1.6 + 0.55 * len(names), 3, 6)))
    style.cells(ax, matrix, 0, 1, "CKA, debiased")
    tilted: dict[str, Any] = {}
    if max(len(name) for name in names) * len(names) > 60:
        tilted = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
    style.name_ticks(ax.xaxis, range(len(names)), names, 16, **tilted)
    style.name_ticks(ax.yaxis, range(len(names)), names, 20)
    style.name_axes(ax, "view", "view")
    verdicts = " ".join(pair.in_words() for pair in pairs[:10])
    return style.describe(
        ax,
        alt=f"Heat map of CKA between {len(names)} views. {verdicts}".strip(),
        caption="How alike the views are: CKA of 1 means the same similarities "
        "between samples, 0 nothing in common.",
    )
