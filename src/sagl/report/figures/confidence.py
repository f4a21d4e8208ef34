"""How sure the model is of its clusters."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sagl.report import style
from sagl.report.saving import describe

_BINS = 40


@style.styled
def draw_confidence(confidence: ArrayLike, ax: style.Axes | None = None) -> style.Axes:
    """Histogram of the probability of each sample's cluster, between 0 and 1."""
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
    ax = style.axes_or_new(ax, 2.8)
    counts, edges = np.histogram(values.clip(0, 1), bins=_BINS, range=(0, 1))
    width = np.diff(edges)
    ax.bar(edges[:-1], counts, width=width, align="edge", color=style.PALETTE[0])
    median = float(np.median(values))
    style.mark(ax, median, f"median {median:.2f}", left=median > 0.5)
    ax.set_xlim(0, 1)
    style.name_axes(ax, "confidence: probability of the sample's cluster", "samples")
    ax.yaxis.set_major_formatter("{x:,.4g}")
    style.grid(ax)
    doubtful = float((values < 0.5).mean())
    return describe(
        ax,
        alt=f"Histogram of the confidence of {len(values):,} samples: median "
        f"{median:.2f}, {doubtful:.1%} below 0.5.",
        caption=f"How sure the model is: {doubtful:.1%} of the samples are more "
        "likely to belong elsewhere than to their cluster (confidence below 0.5).",
    )
