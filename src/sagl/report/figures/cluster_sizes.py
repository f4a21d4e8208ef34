"""How many samples each cluster holds."""

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
    plain,
    tick_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NAMES = 40
_MOST_LETTERS = 75  # in a line below the bars


def draw_cluster_sizes(
    labels: ArrayLike,
    n_clusters: int | None = None,
    *,
    names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Bars of the clusters' sizes, largest first.

    Up to 40 clusters have their number or name below; more are a falling skyline.

    Parameters
    ----------
    labels : array-like of shape (n,)
        The cluster of each sample, from 0.
    n_clusters : int, optional
        How many there are, empty ones included.
    names : sequence of str, optional
        Names of the clusters.
    ax : Axes, optional
        Where to draw; by default a new figure.
    """
    sizes = count_clusters(labels, n_clusters)
    if names is not None and len(names) != len(sizes):
        raise ValueError(f"{len(names)} names for {len(sizes)} clusters")
    order = np.argsort(-sizes, kind="stable")
    even = len(np.asarray(labels)) / len(sizes)
    ax = axes_or_new(ax, height=3.0)
    few = len(sizes) <= _MOST_NAMES
    if few:
        ax.bar(np.arange(len(sizes)), sizes[order], color=PALETTE[0])
    else:
        edges = np.arange(len(sizes) + 1) - 0.5
        ax.stairs(sizes[order], edges, fill=True, color=PALETTE[0])
    ax.axhline(even, color=ink(ax), linewidth=0.8, linestyle="--")
    ax.annotate(
        f"even share {even:,.4g}",
        (1, even),
        xycoords=("axes fraction", "data"),
        xytext=(-2, 3),
        textcoords="offset points",
        ha="right",
        fontsize=SMALL,
        color=ink(ax),
    )
    if few:
        shown = [str(i) for i in order] if names is None else [names[i] for i in order]
        name_ticks(ax.xaxis, range(len(sizes)), shown, limit=18)
        if sum(len(plain(name, 18)) + 1 for name in shown) > _MOST_LETTERS:
            ax.tick_params(axis="x", rotation=90)
        name_axes(ax, "cluster, largest first", "samples")
    else:
        name_axes(ax, f"rank of the cluster among {len(sizes):,}", "samples")
        tick_numbers(ax.xaxis)
    ax.set_xlim(-0.6, len(sizes) - 0.4)
    tick_numbers(ax.yaxis, "{:,.4g}")
    grid(ax)
    empty = int((sizes == 0).sum())
    gone = f" {empty} are empty." if empty else ""
    describe(
        ax,
        alt=f"Bars of the sizes of {len(sizes):,} clusters, from {sizes.min():,} to "
        f"{sizes.max():,} samples; an even share is {even:,.4g}.{gone}",
        caption=f"Samples per cluster, largest first.{gone}",
    )
    return ax


def count_clusters(
    labels: ArrayLike, n_clusters: int | None = None
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The number of samples in clusters 0, 1, 2 and so on."""
    found = np.asarray(labels)
    if found.ndim != 1 or not len(found) or found.dtype.kind not in "iu":
        raise ValueError(
            "labels must be one whole number per sample; got "
            f"{found.dtype} of shape {found.shape}"
        )
    if found.min() < 0 or (n_clusters is not None and found.max() >= n_clusters):
        bad = int(np.argmax((found < 0) | (found >= (n_clusters or np.inf))))
        most = "" if n_clusters is None else f" and below {n_clusters}"
        raise ValueError(
            f"label {bad} is {found[bad]}; clusters are counted from 0{most}"
        )
    sizes: np.ndarray[tuple[int], np.dtype[np.int64]] = np.bincount(
        found, minlength=n_clusters or 0
    )
    return sizes
