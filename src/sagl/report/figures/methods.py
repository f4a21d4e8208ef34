"""Methods beside each other: their scores and how long they train.

Rows are those of ``sagl compare`` (:class:`sagl.experiments.table.Row`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sagl.report import style

_NUMBERS = 1.04  # where the scores stand, right of all bars and marks
_LEGEND_INCHES = 0.64  # the legend's distance from the axes: room for the axis' name
_LOOKS = {  # by what a method is told about the classes
    "without labels": (style.PALETTE[0], ""),
    "with class names": (style.PALETTE[1], "//"),
    "with labels": (style.PALETTE[6], ".."),
}
# Of the supervised methods, those that use names of classes and no labels.
_CLASS_NAMES = ("zero-shot", "lafter")
_HATCHES = ("", "//", "..", "xx", "\\\\", "oo", "--", "++")


@style.styled
def draw_accuracy(
    rows: Sequence[Any],
    *,
    measure: str = "acc",
    data: str | None = None,
    published_as: str = "published, other features",
    ax: style.Axes | None = None,
) -> style.Axes:
    """Bars of a score by method, best first within what the methods are told.

    The measure is "acc", "nmi", "ari" or "ami"; published figures (diamonds, named
    ``published_as``) exist for ACC. Rows without a score are left out. ``data`` is the
    title.
    """
    order = list(_LOOKS)
    scored = [(_informed(row), row) for row in rows if measure in row.mean]
    if not scored:
        raise ValueError(f"no method has a score {measure!r}")
    scored.sort(key=lambda pair: (order.index(pair[0]), -pair[1].mean[measure]))
    values = [row.mean[measure] for _, row in scored]
    ax = style.axes_or_new(ax, float(np.clip(1.1 + 0.26 * len(scored), 2.2, 8)))
    sd = [row.sd.get(measure, 0.0) for _, row in scored]
    style.bars(ax, values, sd, [_LOOKS[group] for group, _ in scored], _NUMBERS)
    names = [group for group in order if group in dict(scored)]
    patch = style.load("matplotlib.patches").Patch
    handles = [patch(**style.area(*_LOOKS[group])) for group in names]
    published = {place: row.published_acc for place, (_, row) in enumerate(scored)}
    published = {place: acc for place, acc in published.items() if acc is not None}
    if published and measure == "acc":
        look = {"mfc": "none", "mec": style.ink(ax), "ls": "", "ms": 5}
        handles += ax.plot([*published.values()], [*published], marker="D", **look)
        names.append(published_as)
    titles = [style.plain(row.title, 24) for _, row in scored]
    style.name_ticks(ax.yaxis, range(len(scored)), titles)
    ax.set_xlim(min(0.0, *values), 1.12)
    ax.set_xticks(np.linspace(0, 1, 6))
    style.name_axes(ax, measure.upper(), "method", data)
    below = (0.4, -_LEGEND_INCHES * ax.figure.dpi / ax.figure.bbox.height)
    place = {"loc": "upper center", "bbox_to_anchor": below, "ncols": 4}
    style.name_legend(ax, handles, names, **place)
    listed = ", ".join(
        f"{title} ({group}) {value:.3f}"
        for title, (group, _), value in zip(titles, scored, values, strict=True)
    )
    return style.describe(
        ax,
        alt=f"Bars of {measure.upper()} by method: {listed}.",
        caption=f"{measure.upper()} of the methods; those that use class names or "
        "labels are set apart. Bars of error are standard deviations over seeds.",
    )


def _informed(row: Any) -> str:
    """What a method is told about the classes."""
    if not row.supervised:
        return "without labels"
    return "with class names" if row.name in _CLASS_NAMES else "with labels"


@style.styled
def draw_training_times(
    rows: Mapping[str, Sequence[Any]], ax: style.Axes | None = None
) -> style.Axes:
    """Bars of the median training time of each method, on a logarithmic scale.

    ``rows`` holds the rows of a comparison by the data set's name; methods without a
    time are left out.
    """
    times = {
        data: {row.title: row.seconds for row in table if row.seconds is not None}
        for data, table in rows.items()
    }
    titles = list(dict.fromkeys(title for known in times.values() for title in known))
    if not titles:
        raise ValueError("no method has a training time")
    every = [seconds for known in times.values() for seconds in known.values()]
    if min(every) <= 0:
        raise ValueError(f"training times must be above 0 seconds; got {min(every)}")
    height = float(np.clip(1.0 + 0.2 * len(titles) * len(times), 2.2, 9))
    ax = style.axes_or_new(ax, height)
    thickness = 0.8 / len(times)
    drawn = []
    for i, known in enumerate(times.values()):
        places = np.array([titles.index(title) for title in known], dtype=float)
        places += (i + 0.5) * thickness - 0.4
        hatch = _HATCHES[i % len(_HATCHES)] if len(times) > 1 else ""
        look = style.area(style.PALETTE[i % len(style.PALETTE)], hatch)
        bars = ax.barh(places, list(known.values()), height=0.9 * thickness, **look)
        numbers = [f"{s:,.3g}" if s < 1000 else f"{s:,.0f}" for s in known.values()]
        ax.bar_label(bars, numbers, padding=3, fontsize=style.SMALL - 0.5)
        drawn.append(bars)
    ax.set_xscale("log")
    ax.set_xlim(min(every) / 2, max(every) * 2.2)  # bars need a length, numbers room
    style.log_numbers(ax.xaxis)
    style.name_ticks(ax.yaxis, range(len(titles)), titles)
    ax.invert_yaxis()
    style.name_axes(ax, "training time in seconds", "method")
    if len(times) > 1:
        style.name_legend(ax, drawn, list(times), loc="best")
    style.grid(ax, "x")
    listed = "; ".join(
        f"{style.plain(data, 24)}: "
        + ", ".join(f"{style.plain(t, 24)} {s:,.3g} s" for t, s in known.items())
        for data, known in times.items()
    )
    return style.describe(
        ax,
        alt=f"Bars of training times. {listed}.",
        caption="Median training time of each method, in seconds.",
    )
