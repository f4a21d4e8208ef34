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
    """Heat map of a score, γ by β; NaN leaves a cell empty."""
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (len(gammas), len(betas)) or not values.size:
        raise ValueError(
            f"scores of shape {values.shape} for {len(gammas)} values of γ and "
            f"{len(betas)} of β"
        )
    if not np.isfinite(values).any():
        raise ValueError("no pair of γ and β has a score")
    limits = float(np.nanmin(values)), float(np.nanmax(values))
    ax = style.axes_or_new(ax, float(np.clip(1.3 + 0.45 * len(gammas), 2.4, 5)))
    rows, columns = ([f"{value:g}" for value in tried] for tried in (gammas, betas))
    style.cells(ax, values, rows, columns, label=measure, limits=limits, form="{:.3f}")
    style.name_axes(ax, "β, weight of alignment", "γ, weight of diversity")
    i, j = divmod(int(np.nanargmax(values)), len(betas))
    best = f"{limits[1]:.3f} at γ = {gammas[i]:g}, β = {betas[j]:g}"
    return style.describe(
        ax,
        alt=f"Heat map of {measure} over {len(gammas)} values of γ and {len(betas)} of "
        f"β: from {limits[0]:.3f} to {best}.",
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
    """A curve over rising batch sizes for each of the ``scores``, which have names.

    NaN is a gap; ``sd`` holds standard deviations under the same names.
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
    spreads = None if sd is None else [sd[name] for name in curves]
    style.curves(ax, sizes, [*curves.values()], [*curves], sd=spreads, loc="best")
    ax.set_xscale("log")
    ax.minorticks_off()
    style.name_ticks(ax.xaxis, sizes, [f"{size:,}" for size in sizes])
    style.name_axes(ax, "batch size", measure)
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
