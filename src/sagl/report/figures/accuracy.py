"""The methods' scores, those that are told about the classes set apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from sagl.report import style
from sagl.report.saving import describe

_NUMBERS = 1.04  # where the scores stand, right of all bars and marks
_LEGEND_INCHES = 0.64  # the legend's distance from the axes: room for the axis' name
_LOOKS = {  # by what a method is told about the classes
    "without labels": (style.PALETTE[0], ""),
    "with class names": (style.PALETTE[1], "//"),
    "with labels": (style.PALETTE[6], ".."),
}
# Of the supervised methods, those that use names of classes and no labels.
_CLASS_NAMES = ("zero-shot", "lafter")


class MethodRow(Protocol):
    """The part of a row of ``sagl compare`` that is drawn."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def supervised(self) -> bool: ...
    @property
    def mean(self) -> Mapping[str, float]: ...
    @property
    def sd(self) -> Mapping[str, float]: ...
    @property
    def seconds(self) -> float | None: ...
    @property
    def published_acc(self) -> float | None: ...


def draw_accuracy(
    rows: Sequence[MethodRow],
    *,
    measure: str = "acc",
    data: str | None = None,
    published_as: str = "published, other features",
    ax: style.Axes | None = None,
) -> style.Axes:
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
    """
    scored = [row for row in rows if measure in row.mean]
    if not scored:
        raise ValueError(f"no method has a score {measure!r}")
    order = list(_LOOKS)
    scored.sort(key=lambda row: (order.index(_informed(row)), -row.mean[measure]))
    values = [row.mean[measure] for row in scored]
    informed = [_informed(row) for row in scored]
    ax = style.axes_or_new(ax, height=float(np.clip(1.1 + 0.26 * len(scored), 2.2, 8)))
    sd = [row.sd.get(measure, 0.0) for row in scored]
    style.bars(ax, values, sd, [_LOOKS[group] for group in informed], _NUMBERS)
    names = [group for group in order if group in informed]
    patch = style.load("matplotlib.patches").Patch
    handles = [
        patch(facecolor=_LOOKS[group][0], hatch=_LOOKS[group][1], edgecolor="white")
        for group in names
    ]
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
            markeredgecolor=style.ink(ax),
        )
        names.append(published_as)
    style.name_ticks(ax.yaxis, range(len(scored)), [row.title for row in scored])
    ax.set_xlim(min(0.0, *values), 1.12)
    ax.set_xticks(np.linspace(0, 1, 6))
    style.name_axes(ax, measure.upper(), "method", data)
    below = (0.4, -_LEGEND_INCHES * ax.figure.dpi / ax.figure.bbox.height)
    style.legend(ax, handles, names, loc="upper center", bbox_to_anchor=below, ncols=4)
    listed = ", ".join(
        f"{style.plain(row.title, 30)} ({group}) {value:.3f}"
        for row, group, value in zip(scored, informed, values, strict=True)
    )
    return describe(
        ax,
        alt=f"Bars of {measure.upper()} by method: {listed}.",
        caption=f"{measure.upper()} of the methods; those that use class names or "
        "labels are set apart. Bars of error are standard deviations over seeds.",
    )


def _informed(row: MethodRow) -> str:
    """What a method is told about the classes."""
    if not row.supervised:
        return "without labels"
    return "with class names" if row.name in _CLASS_NAMES else "with labels"
