"""A score against the batch size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from sagl.report import style
from sagl.report.saving import describe


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
    ax = style.axes_or_new(ax, height=3.0)
    drawn = [
        ax.errorbar(
            sizes,
            ys,
            yerr=None if sd is None else np.asarray(sd[name], dtype=np.float64),
            marker=style.MARKERS[i % len(style.MARKERS)],
            markersize=5,
            capsize=3,
            **style.line(i),
        )
        for i, (name, ys) in enumerate(curves.items())
    ]
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
    return describe(
        ax,
        alt=f"Curves of {measure} over batch sizes {sizes[0]:,} to {sizes[-1]:,}: "
        f"{ranges}.",
        caption=f"{measure} against the batch size.",
    )
