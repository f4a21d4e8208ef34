"""How alike the views are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from sagl.evaluation.cka import judge_views
from sagl.report import style


@style.styled
def draw_cka(
    cka: ArrayLike, names: Sequence[str], ax: style.Axes | None = None
) -> style.Axes:
    """Heat map of CKA between every pair of the named views.

    ``cka`` is a matrix from :func:`sagl.evaluation.cka.cka_matrix`.
    """
    pairs = judge_views(cka, names)  # refuses a matrix of another shape
    ax = style.axes_or_new(ax, float(np.clip(1.6 + 0.55 * len(names), 3, 6)))
    matrix = np.asarray(cka, dtype=np.float64)
    style.cells(ax, matrix, names, names, label="CKA, debiased")
    style.name_axes(ax, "view", "view")
    verdicts = " ".join(pair.in_words() for pair in pairs[:10])
    return style.describe(
        ax,
        alt=f"Heat map of CKA between {len(names)} views. {verdicts}".strip(),
        caption="How alike the views are: CKA of 1 means the same similarities "
        "between samples, 0 nothing in common.",
    )
