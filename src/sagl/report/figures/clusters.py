"""What clusters hold: how many samples, and how surely."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sagl.report import style

_MOST_BARS = 40  # more are a falling skyline
_BINS = 40  # of the histogram


@style.styled
def draw_cluster_sizes(
    labels: ArrayLike,
    n_clusters: int | None = None,
    *,
    names: Sequence[str] | None = None,
    ax: style.Axes | None = None,
) -> style.Axes:
    """Bars of the clusters' sizes, largest first.

    As many as fit have their number or name below. Labels count from 0, to
    ``n_clusters`` where some are empty.
    """
    codes = np.asarray(labels)
    if codes.ndim != 1 or not len(codes) or codes.dtype.kind not in "iu":
        raise ValueError(
            "labels must be one whole number per sample; got "
            f"{codes.dtype} of shape {codes.shape}"
        )
    bad = (codes < 0) | (codes >= (np.inf if n_clusters is None else n_clusters))
    if bad.any():
        row = int(np.argmax(bad))
        most = "" if n_clusters is None else f" and below {n_clusters}"
        raise ValueError(
            f"label {row} is {codes[row]}; clusters are counted from 0{most}"
        )
    sizes = np.bincount(codes, minlength=n_clusters or 0)
    names = [str(k) for k in range(len(sizes))] if names is None else names
    if len(names) != len(sizes):
        raise ValueError(f"{len(names)} names for {len(sizes)} clusters")
    order = np.argsort(-sizes, kind="stable")
    even = float(sizes.sum()) / len(sizes)
    ax = style.axes_or_new(ax, 3.0)
    ax.set_xlim(-0.6, len(sizes) - 0.4)
    if len(sizes) <= _MOST_BARS:
        ax.bar(np.arange(len(sizes)), sizes[order], color=style.PALETTE[0])
    else:
        edges = np.arange(len(sizes) + 1) - 0.5
        ax.stairs(sizes[order], edges, fill=True, color=style.PALETTE[0])
    style.name_ticks(ax.xaxis, range(len(sizes)), [names[i] for i in order], 18)
    style.name_axes(ax, f"{len(sizes):,} clusters, largest first", "samples")
    ax.axhline(even, color=style.ink(ax), linewidth=0.8, linestyle="--")
    where: Any = {"ha": "right", "va": "bottom", "transform": ax.get_yaxis_transform()}
    ax.text(0.995, even, f"even share {even:,.4g}", **where)
    ax.yaxis.set_major_formatter("{x:,.4g}")
    style.grid(ax)
    n_empty = int((sizes == 0).sum())
    empty = f" {n_empty} are empty." if n_empty else ""
    return style.describe(
        ax,
        alt=f"Bars of the sizes of {len(sizes):,} clusters, from {sizes.min():,} to "
        f"{sizes.max():,} samples; an even share is {even:,.4g}.{empty}",
        caption=f"Samples per cluster, largest first.{empty}",
    )


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
    ax.hist(values.clip(0, 1), bins=_BINS, range=(0, 1), color=style.PALETTE[0])
    median = float(np.median(values))
    style.mark(ax, median, f"median {median:.2f}", left=median > 0.5)
    ax.set_xlim(0, 1)
    style.name_axes(ax, "confidence: probability of the sample's cluster", "samples")
    ax.yaxis.set_major_formatter("{x:,.4g}")
    style.grid(ax)
    doubtful = float((values < 0.5).mean())
    return style.describe(
        ax,
        alt=f"Histogram of the confidence of {len(values):,} samples: median "
        f"{median:.2f}, {doubtful:.1%} below 0.5.",
        caption=f"How sure the model is: {doubtful:.1%} of the samples are more "
        "likely to belong elsewhere than to their cluster (confidence below 0.5).",
    )
