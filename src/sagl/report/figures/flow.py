"""From the clusters of one partition to those of another: who went where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sagl.report import style

_GAP = 0.012  # between two clusters, as a share of the height
_BAR = 0.025  # width of a cluster's bar, as a share of the way
_INCHES = 0.3  # of height for each cluster
_LEAST_APART = 0.02  # between two names
_MOST_NAMED = 60


@style.styled
def draw_flow(
    flow: ArrayLike,
    here: Sequence[str],
    there: Sequence[str],
    *,
    titles: tuple[str, str] = ("here", "there"),
    match: dict[int, int] | None = None,
    ax: style.Axes | None = None,
) -> style.Axes:
    """Bands between the clusters of two partitions of the same samples.

    Parameters
    ----------
    flow : array-like of shape (C, C')
        How many samples are in cluster i of the one and j of the other.
    here, there : sequences of str
        What the clusters are called.
    titles : pair of str
        What the partitions are called.
    match : dict of int to int, optional
        Which cluster there is the counterpart of one here. Bands to others stand out.

    Examples
    --------
    >>> from sagl.report.figures import draw_flow
    >>> ax = draw_flow([[8, 2], [0, 5]], ["cats", "dogs"], ["0", "1"])
    >>> ax.get_title()
    ''
    """
    counts = np.asarray(flow, dtype=np.float64)
    if counts.shape != (len(here), len(there)) or counts.sum() <= 0:
        raise ValueError(
            f"flow has shape {counts.shape} for {len(here)} and {len(there)} clusters, "
            "or counts no sample"
        )
    match = match or {}
    left = np.argsort(-counts.sum(axis=1), kind="stable")
    left = left[counts.sum(axis=1)[left] > 0]
    right = _beside(counts, left, match)
    ax = style.axes_or_new(ax, float(np.clip(_INCHES * len(left), 2.6, 11)))
    colours = _colours(len(here), len(there), match)
    tops = [
        _bars(ax, counts.sum(axis=axis)[order], order, at, names, own)
        for axis, order, at, names, own in (
            (1, left, 0.0, here, colours[0]),
            (0, right, 1.0, there, colours[1]),
        )
    ]
    _bands(ax, counts, left, right, tops, match)
    ax.set(xlim=(-0.01, 1.01), ylim=(1.005, -0.06), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    for at, title, side in ((0.0, titles[0], "left"), (1.0, titles[1], "right")):
        ax.text(at, -0.02, style.plain(title, 40), ha=side, weight="bold")
    stayed = sum(counts[i, j] for i, j in match.items())
    moved = f" {counts.sum() - stayed:,.0f} moved." if match else ""
    return style.describe(
        ax,
        alt=f"Bands between {len(left)} clusters of {style.plain(titles[0], 40)} and "
        f"{len(right)} of {style.plain(titles[1], 40)}, {counts.sum():,.0f} "
        f"samples.{moved}",
        caption="Each band is as wide as the samples that two clusters share; those "
        f"of clusters that are not counterparts stand out.{moved}",
    )


def _beside(
    counts: NDArray[np.float64], left: NDArray[np.int64], match: dict[int, int]
) -> NDArray[np.int64]:
    """Clusters there, each near those that it has its samples from."""
    height = np.empty(len(counts))
    height[left] = np.arange(len(left))
    totals = counts.sum(axis=0)
    mean = counts[left].T @ height[left] / np.where(totals > 0, totals, 1)
    for i, j in match.items():
        if counts[i].sum() > 0:
            mean[j] = height[i]
    order: NDArray[np.int64] = np.argsort(mean, kind="stable")
    filled: NDArray[np.int64] = order[totals[order] > 0]
    return filled


def _colours(
    n_here: int, n_there: int, match: dict[int, int]
) -> tuple[list[str], list[str]]:
    """A colour per cluster of each side: there its counterpart's, or one of its own."""
    palette = style.cluster_colours(n_here + n_there)
    partner = {there: here for here, there in match.items()}
    own = iter(palette[n_here:])
    others = [
        palette[partner[k]] if k in partner else next(own) for k in range(n_there)
    ]
    return palette[:n_here], others


def _bars(
    ax: style.Axes,
    sizes: NDArray[np.float64],
    order: NDArray[np.int64],
    at: float,
    names: Sequence[str],
    colours: Sequence[str],
) -> dict[int, float]:
    """A column of bars with names; the top of each cluster's bar."""
    gap = min(_GAP, 0.3 / max(1, len(order)))
    heights = sizes / sizes.sum() * (1 - gap * (len(order) - 1))
    starts = np.cumsum(heights + gap) - heights - gap
    inner = at == 0
    ax.bar(
        np.full(len(order), at + (_BAR / 2 if inner else -_BAR / 2)),
        heights,
        _BAR,
        starts,
        color=[colours[k] for k in order],
    )
    last = -1.0
    for place, (k, start, height) in enumerate(
        zip(order.tolist(), starts, heights, strict=True)
    ):
        middle = start + height / 2
        if middle - last < _LEAST_APART or place >= _MOST_NAMED:
            continue
        last = middle
        where: Any = {"ha": "right" if inner else "left", "va": "center"}
        name = style.plain(names[k], 28)
        ax.text(at + (-0.012 if inner else 0.012), middle, name, **where)
    return dict(zip(order.tolist(), starts.tolist(), strict=True))


def _bands(
    ax: style.Axes,
    counts: NDArray[np.float64],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    tops: Sequence[dict[int, float]],
    match: dict[int, int],
) -> None:
    path, patch = style.load("matplotlib.path"), style.load("matplotlib.patches")
    unit = [
        (1 - min(_GAP, 0.3 / max(1, len(order))) * (len(order) - 1)) / counts.sum()
        for order in (left, right)
    ]
    begun = [dict(top) for top in tops]
    palette = style.cluster_colours(len(counts))
    x0, x1 = _BAR, 1 - _BAR
    for i in left.tolist():
        for j in right.tolist():
            if counts[i, j] == 0:
                continue
            a, b = begun[0][i], begun[1][j]
            c, d = a + counts[i, j] * unit[0], b + counts[i, j] * unit[1]
            begun[0][i], begun[1][j] = c, d
            middle = (x0 + x1) / 2
            corners = [
                *((x0, a), (middle, a), (middle, b), (x1, b)),
                *((x1, d), (middle, d), (middle, c), (x0, c), (x0, a)),
            ]
            codes = [1, 4, 4, 4, 2, 4, 4, 4, 79]
            stands_out = match.get(i) != j
            look: Any = {"linewidth": 0, "alpha": 0.28}
            if stands_out:  # a single sample, too, is to be seen
                look = {"linewidth": 0.8, "alpha": 0.75, "edgecolor": palette[i]}
            band = path.Path(corners, codes)
            ax.add_patch(patch.PathPatch(band, facecolor=palette[i], **look))
