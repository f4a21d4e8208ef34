"""How long the methods train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sagl.report.rows import MethodRow
from sagl.report.saving import describe
from sagl.report.style import (
    PALETTE,
    SMALL,
    axes_or_new,
    grid,
    ink,
    legend,
    log_numbers,
    name_axes,
    name_ticks,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HATCHES = ("", "//", "..", "xx", "\\\\", "oo", "--", "++")


def draw_training_times(
    rows: Mapping[str, Sequence[MethodRow]], ax: Axes | None = None
) -> Axes:
    """Bars of the median training time of each method, on a logarithmic scale.

    Parameters
    ----------
    rows : mapping of a data set's name to the rows of its comparison
        As ``sagl compare`` makes them; methods without a time are left out.
    ax : Axes, optional
        Where to draw; by default a new figure.
    """
    times = {
        data: {row.title: row.seconds for row in found if row.seconds is not None}
        for data, found in rows.items()
    }
    titles = list(dict.fromkeys(title for found in times.values() for title in found))
    if not titles:
        raise ValueError("no method has a training time")
    shortest, longest = _ends(times)
    n_bars = len(titles) * len(times)
    ax = axes_or_new(ax, height=float(np.clip(1.0 + 0.2 * n_bars, 2.2, 9)))
    thickness = 0.8 / len(times)
    bars = []
    for i, found in enumerate(times.values()):
        known = [(place, found[t]) for place, t in enumerate(titles) if t in found]
        places = np.array([place for place, _ in known]) - 0.4 + (i + 0.5) * thickness
        seconds = [time for _, time in known]
        bars.append(
            ax.barh(
                places,
                seconds,
                height=thickness * 0.9,
                color=PALETTE[i % len(PALETTE)],
                hatch=_HATCHES[i % len(_HATCHES)] if len(times) > 1 else "",
                edgecolor="white",
                linewidth=0,
            )
        )
        for place, time in zip(places, seconds, strict=True):
            ax.annotate(
                f"{time:,.3g}" if time < 1000 else f"{time:,.0f}",
                (time, place),
                xytext=(3, 0),
                textcoords="offset points",
                va="center",
                fontsize=SMALL - 0.5,
                color=ink(ax),
            )
    ax.set_xscale("log")
    ax.set_xlim(shortest / 2, longest * 2.2)  # bars need a length, numbers room
    log_numbers(ax.xaxis)
    name_ticks(ax.yaxis, range(len(titles)), titles)
    ax.invert_yaxis()
    name_axes(ax, "training time in seconds", "method")
    if len(times) > 1:
        legend(ax, bars, list(times), loc="best")
    grid(ax, "x")
    said = "; ".join(
        f"{plain(data, 24)}: "
        + ", ".join(f"{plain(t, 24)} {s:,.3g} s" for t, s in found.items())
        for data, found in times.items()
    )
    describe(
        ax,
        alt=f"Bars of training times. {said}.",
        caption="Median training time of each method, in seconds.",
    )
    return ax


def _ends(times: Mapping[str, Mapping[str, float]]) -> tuple[float, float]:
    known = [time for found in times.values() for time in found.values()]
    if min(known) <= 0:
        raise ValueError(f"training times must be above 0 seconds; got {min(known)}")
    return min(known), max(known)
