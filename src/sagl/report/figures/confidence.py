"""How sure the model is of its clusters."""

from __future__ import annotations

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
    tick_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BINS = 40


def draw_confidence(confidence: ArrayLike, ax: Axes | None = None) -> Axes:
    """Histogram of the probability of each sample's cluster.

    Parameters
    ----------
    confidence : array-like of shape (n,)
        Between 0 and 1.
    ax : Axes, optional
        Where to draw; by default a new figure.
    """
    values = np.asarray(confidence, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"expected one confidence per sample; got {values.shape}")
    wrong = ~((values >= 0) & (values <= 1 + 1e-6))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"confidence of sample {row} is {values[row]}; probabilities lie between "
            "0 and 1"
        )
    ax = axes_or_new(ax, height=2.8)
    counts, edges = np.histogram(values.clip(0, 1), bins=_BINS, range=(0, 1))
    ax.bar(edges[:-1], counts, width=np.diff(edges), align="edge", color=PALETTE[0])
    median = float(np.median(values))
    ax.axvline(median, color=ink(ax), linewidth=0.9, linestyle="--")
    left = median > 0.5
    ax.annotate(
        f"median {median:.2f}",
        (median, 1),
        xycoords=("data", "axes fraction"),
        xytext=(-4 if left else 4, -2),
        textcoords="offset points",
        ha="right" if left else "left",
        va="top",
        fontsize=SMALL,
        color=ink(ax),
    )
    ax.set_xlim(0, 1)
    name_axes(ax, "confidence: probability of the sample's cluster", "samples")
    tick_numbers(ax.yaxis, "{:,.4g}")
    grid(ax)
    doubtful = float((values < 0.5).mean())
    describe(
        ax,
        alt=f"Histogram of the confidence of {len(values):,} samples: median "
        f"{median:.2f}, {doubtful:.1%} below 0.5.",
        caption=f"How sure the model is: {doubtful:.1%} of the samples are more "
        "likely to belong elsewhere than to their cluster (confidence below 0.5).",
    )
    return ax
