"""What a score depends on: γ × β, and the batch size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from sagl.report import style


@style.styled
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
    ax = style.axes_or_new(ax, float(np.clip(1.3 + 0.45 * len(gammas), 2.4, 5)))
    style.cells(ax, values, low, high, measure, form="{:.3f}")
    style.name_ticks(ax.xaxis, range(len(betas)), [f"{beta:g}" for beta in betas])
    style.name_ticks(ax.yaxis, range(len(gammas)), [f"{gamma:g}" for gamma in gammas])
    style.name_axes(ax, "β, weight of alignment", "γ, weight of diversity")
    i, j = divmod(int(np.nanargmax(values)), len(betas))
    best = f"{high:.3f} at γ = {gammas[i]:g}, β = {betas[j]:g}"
    return style.describe(
        ax,
        alt=f"Heat map of {measure} over {len(gammas)} values of γ and {len(betas)} of "
        f"β: from {low:.3f} to {best}.",
        caption=f"{measure} over γ and β: best {best}.",
    )


@style.styled
def draw_batch_sizes(
    sizes: Sequence[int],
    scores: Mapping[str, ArrayLike],
    *,
    sd: Mapping[str, ArrayLike] | None = None,
    measure: str = "score",
    ax: style.Axes | None = None,
) -> style.Axes:
    """One curve per entry of ``scores``: measures, or values of γ.

    Parameters
    ----------
    sizes : sequence of int
        The batch sizes tried, rising.
    scores : mapping of a name to an array-like of shape (len(sizes),)
        The curves; NaN is a gap.
    sd : mapping of the same names, optional
        Standard deviations, drawn as bars.
    measure : str, default="score"
        The name of the y axis.
    """
    curves = {name: np.asarray(ys, dtype=np.float64) for name, ys in scores.items()}
    if not curves or any(ys.shape != (len(sizes),) for ys in curves.values()):
        raise ValueError(
            f"each curve needs one score for each of {len(sizes)} batch sizes; got "
            + (", ".join(f"{k} {v.shape}" for k, v in curves.items()) or "no curves")
        )
    if min(sizes) < 1 or list(sizes) != sorted(set(sizes)):
        raise ValueError(f"batch sizes must be positive and rising; got {list(sizes)}")
    ax = style.axes_or_new(ax, 3.0)
    drawn = []
    for i, (name, ys) in enumerate(curves.items()):
        spread = None if sd is None else np.asarray(sd[name], dtype=np.float64)
        look = style.line(i, style.MARKERS[i % len(style.MARKERS)])
        drawn.append(ax.errorbar(sizes, ys, yerr=spread, capsize=3, **look))
    ax.set_xscale("log")
    ax.minorticks_off()
    style.name_ticks(ax.xaxis, list(sizes), [f"{size:,}" for size in sizes])
    style.name_axes(ax, "batch size", measure)
    style.legend(ax, drawn, list(curves), loc="best")
    style.grid(ax)
    ranges = "; ".join(
        f"{style.plain(name, 24)} from {np.nanmin(ys):.3f} to {np.nanmax(ys):.3f}"
        for name, ys in curves.items()
    )
    return style.describe(
        ax,
        alt=f"Curves of {measure} over batch sizes {sizes[0]:,} to {sizes[-1]:,}: "
        f"{ranges}.",
        caption=f"{measure} against the batch size.",
    )
