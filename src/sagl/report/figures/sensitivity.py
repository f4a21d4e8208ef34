"""A score over γ × β."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from sagl.report import style
from sagl.report.saving import describe


def draw_sensitivity(
    gammas: Sequence[float],
    betas: Sequence[float],
    scores: ArrayLike,
    *,
    measure: str = "ACC",
    ax: style.Axes | None = None,
) -> style.Axes:
    """Heat map of a score for every pair of γ and β; NaN leaves a cell empty.

    Parameters
    ----------
    gammas, betas : sequences of float
        The values tried, in order.
    scores : array-like of shape (len(gammas), len(betas))
        The score of each pair.
    measure : str, default="ACC"
        What the score is.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (len(gammas), len(betas)) or not values.size:
        raise ValueError(
            f"scores of shape {values.shape} for {len(gammas)} values of γ and "
            f"{len(betas)} of β"
        )
    if not np.isfinite(values).any():
        raise ValueError("no pair of γ and β has a score")
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    ax = style.axes_or_new(ax, height=float(np.clip(1.3 + 0.45 * len(gammas), 2.4, 5)))
    style.cells(ax, values, low, high, measure, form="{:.3f}")
    style.name_ticks(ax.xaxis, range(len(betas)), [f"{beta:g}" for beta in betas])
    style.name_ticks(ax.yaxis, range(len(gammas)), [f"{gamma:g}" for gamma in gammas])
    style.name_axes(ax, "β, weight of alignment", "γ, weight of diversity")
    i, j = divmod(int(np.nanargmax(values)), len(betas))
    best = f"{high:.3f} at γ = {gammas[i]:g}, β = {betas[j]:g}"
    return describe(
        ax,
        alt=f"Heat map of {measure} over {len(gammas)} values of γ and {len(betas)} of "
        f"β: from {low:.3f} to {best}.",
        caption=f"{measure} over γ and β: best {best}.",
    )
