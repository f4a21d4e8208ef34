"""A score over γ × β."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sagl.report.heat_map import draw_cells
from sagl.report.saving import describe
from sagl.report.style import axes_or_new, colour_bar, name_axes, name_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_sensitivity(
    gammas: Sequence[float],
    betas: Sequence[float],
    scores: ArrayLike,
    *,
    measure: str = "ACC",
    ax: Axes | None = None,
) -> Axes:
    """Heat map of a score for every pair of γ and β; NaN leaves a cell empty.

    Parameters
    ----------
    gammas, betas : sequences of float
        The values tried, in order.
    scores : array-like of shape (len(gammas), len(betas))
        The score of each pair.
    measure : str, default="ACC"
        What the score is.
    ax : Axes, optional
        Where to draw; by default a new figure.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (len(gammas), len(betas)) or not values.size:
        raise ValueError(
            f"scores of shape {values.shape} for {len(gammas)} values of γ and "
            f"{len(betas)} of β"
        )
    known = values[np.isfinite(values)]
    if not known.size:
        raise ValueError("no pair of γ and β has a score")
    ax = axes_or_new(ax, height=float(np.clip(1.3 + 0.45 * len(gammas), 2.4, 5)))
    image = draw_cells(ax, values, float(known.min()), float(known.max()), "{:.3f}")
    name_ticks(ax.xaxis, range(len(betas)), [f"{beta:g}" for beta in betas])
    name_ticks(ax.yaxis, range(len(gammas)), [f"{gamma:g}" for gamma in gammas])
    name_axes(ax, "β, weight of alignment", "γ, weight of diversity")
    colour_bar(ax, image, measure)
    i, j = divmod(int(np.nanargmax(values)), len(betas))
    best = f"{known.max():.3f} at γ = {gammas[i]:g}, β = {betas[j]:g}"
    describe(
        ax,
        alt=f"Heat map of {measure} over {len(gammas)} values of γ and {len(betas)} of "
        f"β: from {known.min():.3f} to {best}.",
        caption=f"{measure} over γ and β: best {best}.",
    )
    return ax
