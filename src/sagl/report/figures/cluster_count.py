"""How many clusters: a score against the number of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sagl.report.saving import describe
from sagl.report.style import (
    PALETTE,
    SMALL,
    axes_or_new,
    grid,
    ink,
    name_axes,
    name_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDE_RANGE = 20
_APART = 0.06  # of the axis, between two numbers


def draw_cluster_count(
    candidates: Sequence[int],
    scores: ArrayLike,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
    *,
    chosen: int | None = None,
    measure: str = "score",
    ax: Axes | None = None,
) -> Axes:
    """A curve over candidate numbers of clusters with a band of uncertainty.

    Parameters
    ----------
    candidates : sequence of int
        The numbers tried, rising.
    scores : array-like of the same length
        The score of each.
    low, high : array-likes of the same length, optional
        Ends of the interval around each score.
    chosen : int, optional
        The candidate that was chosen, marked.
    measure : str, default="score"
        What the score is.
    ax : Axes, optional
        Where to draw; by default a new figure.
    """
    counts = np.asarray(candidates)
    values = np.asarray(scores, dtype=np.float64)
    band = None if low is None or high is None else np.stack([low, high])
    if not len(counts) or values.shape != counts.shape:
        raise ValueError(f"{values.size} scores for {counts.size} numbers of clusters")
    if (np.diff(counts) <= 0).any() or counts[0] < 1:
        raise ValueError(f"numbers of clusters must rise from 1; got {counts.tolist()}")
    if band is not None and not (band[0] <= values).all() & (values <= band[1]).all():
        raise ValueError("an interval does not hold its score; give low and high ends")
    if chosen is not None and chosen not in counts:
        raise ValueError(f"{chosen} clusters are not among {counts.tolist()}")
    ax = axes_or_new(ax, height=3.0)
    if band is not None:
        ax.fill_between(counts, *band, color=PALETTE[0], alpha=0.25, linewidth=0)
    ax.plot(counts, values, color=PALETTE[0], marker="o", markersize=4, linewidth=1.6)
    if chosen is not None:
        at = float(values[list(counts).index(chosen)])
        ax.axvline(chosen, color=ink(ax), linewidth=0.9, linestyle="--")
        right = list(counts).index(chosen) > len(counts) / 2
        ax.annotate(
            f"{chosen} chosen",
            (chosen, 1),
            xycoords=("data", "axes fraction"),
            xytext=(-4 if right else 4, -2),
            textcoords="offset points",
            ha="right" if right else "left",
            va="top",
            fontsize=SMALL,
            color=ink(ax),
        )
    if counts[-1] / counts[0] >= _WIDE_RANGE:
        ax.set_xscale("log")
        ax.minorticks_off()
    _tick_candidates(ax, counts.tolist())
    name_axes(ax, "number of clusters", measure)
    grid(ax)
    best = int(counts[np.argmax(values)])
    mark = "" if chosen is None else f"; {chosen} was chosen, scoring {at:.3g}"
    describe(
        ax,
        alt=f"Curve of {measure} over {counts[0]:,} to {counts[-1]:,} clusters, "
        f"highest at {best:,}{mark}.",
        caption=f"How many clusters: {measure} of each candidate"
        + ("." if band is None else ", with its interval."),
    )
    return ax


def _tick_candidates(ax: Axes, counts: list[int]) -> None:
    """The candidates themselves, as many as fit beside each other."""
    scale = np.log if ax.get_xscale() == "log" else np.asarray
    at = scale(np.array(counts, dtype=float))
    apart = _APART * (at[-1] - at[0])
    shown: list[int] = []
    for i in range(len(counts)):
        if not shown or at[i] - at[shown[-1]] >= apart:
            shown.append(i)
    name_ticks(ax.xaxis, [counts[i] for i in shown], [f"{counts[i]:,}" for i in shown])
