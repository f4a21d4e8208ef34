"""The methods' scores, those that are told about the classes set apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sagl.report.rows import Kind, MethodRow, kind
from sagl.report.saving import describe
from sagl.report.style import (
    PALETTE,
    SMALL,
    axes_or_new,
    grid,
    ink,
    legend,
    load,
    name_axes,
    name_ticks,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NUMBERS = 1.04  # where the scores stand, right of all bars and marks
_LEGEND_INCHES = 0.64  # the legend's distance from the axes: room for the axis' name
_LOOKS: dict[Kind, tuple[str, str]] = {
    "without labels": (PALETTE[0], ""),
    "with class names": (PALETTE[1], "//"),
    "with labels": (PALETTE[6], ".."),
}


def draw_accuracy(
    rows: Sequence[MethodRow],
    *,
    measure: str = "acc",
    data: str | None = None,
    published_as: str = "published, other features",
    ax: Axes | None = None,
) -> Axes:
    """Bars of a score by method, best first within what the methods are told.

    Parameters
    ----------
    rows : sequence of rows
        As ``sagl compare`` makes them. Rows without a score are left out.
    measure : {"acc", "nmi", "ari", "ami"}, default="acc"
        The score. Published figures (diamonds) exist for ACC.
    data : str, optional
        The data set's name, for the title.
    published_as : str
        What the legend calls published figures.
    ax : Axes, optional
        Where to draw; by default a new figure.
    """
    scored = [row for row in rows if measure in row.mean]
    if not scored:
        raise ValueError(f"no method has a score {measure!r}")
    kinds = list(_LOOKS)
    scored.sort(key=lambda row: (kinds.index(kind(row)), -row.mean[measure]))
    ax = axes_or_new(ax, height=float(np.clip(1.1 + 0.26 * len(scored), 2.2, 8)))
    patches = load("matplotlib.patches")
    for place, row in enumerate(scored):
        colour, hatch = _LOOKS[kind(row)]
        value, spread = row.mean[measure], row.sd.get(measure, 0.0)
        ax.barh(
            place,
            value,
            height=0.72,
            xerr=spread or None,
            color=colour,
            hatch=hatch,
            edgecolor="white",
            linewidth=0,
            error_kw={"ecolor": ink(ax), "elinewidth": 1, "capsize": 2},
        )
        ax.annotate(
            f"{value:.3f}",
            (_NUMBERS, place),
            va="center",
            annotation_clip=False,
            fontsize=SMALL,
            color=ink(ax),
        )
    handles = [
        patches.Patch(facecolor=_LOOKS[k][0], hatch=_LOOKS[k][1], edgecolor="white")
        for k in kinds
        if any(kind(row) == k for row in scored)
    ]
    names: list[str] = [k for k in kinds if any(kind(row) == k for row in scored)]
    published = [
        (row.published_acc, place)
        for place, row in enumerate(scored)
        if measure == "acc" and row.published_acc is not None
    ]
    if published:
        handles += ax.plot(
            *zip(*published, strict=True),
            marker="D",
            linestyle="",
            markersize=5,
            markerfacecolor="none",
            markeredgecolor=ink(ax),
        )
        names.append(published_as)
    name_ticks(ax.yaxis, range(len(scored)), [row.title for row in scored])
    ax.set_ylim(len(scored) - 0.4, -0.6)
    ax.set_xlim(min(0.0, *(row.mean[measure] for row in scored)), 1.12)
    ax.set_xticks(np.linspace(0, 1, 6))
    name_axes(ax, measure.upper(), "method", data)
    below = (0.4, -_LEGEND_INCHES * ax.figure.dpi / ax.figure.bbox.height)
    legend(ax, handles, names, loc="upper center", bbox_to_anchor=below, ncols=4)
    grid(ax, "x")
    said = ", ".join(
        f"{plain(row.title, 30)} ({kind(row)}) {row.mean[measure]:.3f}"
        for row in scored
    )
    describe(
        ax,
        alt=f"Bars of {measure.upper()} by method: {said}.",
        caption=f"{measure.upper()} of the methods; those that use class names or "
        "labels are set apart. Bars of error are standard deviations over seeds.",
    )
    return ax
