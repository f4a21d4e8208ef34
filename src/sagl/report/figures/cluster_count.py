"""How many clusters: a score against the number of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from sagl.report import style

_WIDE_RANGE = 20  # last over first candidate, from which the scale is logarithmic
_APART = 0.055  # of the axis, between two numbers


@style.styled
def draw_cluster_count(
    candidates: Sequence[int],
    scores: ArrayLike,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
    *,
    chosen: int | None = None,
    measure: str = "score",
    ax: style.Axes | None = None,
) -> style.Axes:
    """A curve of a ``measure`` over rising numbers of clusters.

    ``low`` and ``high`` are the ends of the interval around each score, drawn as a
    band; the ``chosen`` number of clusters is marked.
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
    ax = style.axes_or_new(ax, 3.0)
    if band is not None:
        ax.fill_between(counts, *band, color=style.PALETTE[0], alpha=0.25, linewidth=0)
    style.curves(ax, counts, [values])
    marked = ""
    if chosen is not None:
        place = counts.tolist().index(chosen)
        style.mark(ax, chosen, f"{chosen} chosen", left=place > len(counts) / 2)
        marked = f"; {chosen} was chosen, scoring {values[place]:.3g}"
    if counts[-1] / counts[0] >= _WIDE_RANGE:
        ax.set_xscale("log")
        ax.minorticks_off()
    # The candidates themselves, as many as fit beside each other.
    style.name_ticks(ax.xaxis, counts, [f"{count:,}" for count in counts], apart=_APART)
    style.name_axes(ax, "number of clusters", measure)
    return style.describe(
        ax,
        alt=f"Curve of {measure} over {counts[0]:,} to {counts[-1]:,} clusters, "
        f"highest at {counts[np.argmax(values)]:,}{marked}.",
        caption=f"How many clusters: {measure} of each candidate"
        + ("." if band is None else ", with its interval."),
    )
