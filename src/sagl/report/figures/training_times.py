"""How long the methods train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sagl.report import style
from sagl.report.figures.accuracy import MethodRow
from sagl.report.saving import describe

_HATCHES = ("", "//", "..", "xx", "\\\\", "oo", "--", "++")


def draw_training_times(
    rows: Mapping[str, Sequence[MethodRow]], ax: style.Axes | None = None
) -> style.Axes:
    """Bars of the median training time of each method, on a logarithmic scale.

    Parameters
    ----------
    rows : mapping of a data set's name to the rows of its comparison
        As ``sagl compare`` makes them; methods without a time are left out.
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
    ax = style.axes_or_new(ax, height=height)
    thickness = 0.8 / len(times)
    drawn = []
    for i, known in enumerate(times.values()):
        places = np.array([titles.index(title) for title in known], dtype=float)
        places += (i + 0.5) * thickness - 0.4
        drawn.append(
            ax.barh(
                places,
                list(known.values()),
                height=thickness * 0.9,
                color=style.PALETTE[i % len(style.PALETTE)],
                hatch=_HATCHES[i % len(_HATCHES)] if len(times) > 1 else "",
                edgecolor="white",
                linewidth=0,
            )
        )
        for place, time in zip(places, known.values(), strict=True):
            ax.annotate(
                f"{time:,.3g}" if time < 1000 else f"{time:,.0f}",
                (time, place),
                xytext=(3, 0),
                textcoords="offset points",
                va="center",
                fontsize=style.SMALL - 0.5,
                color=style.ink(ax),
            )
    ax.set_xscale("log")
    ax.set_xlim(min(every) / 2, max(every) * 2.2)  # bars need a length, numbers room
    style.log_numbers(ax.xaxis)
    style.name_ticks(ax.yaxis, range(len(titles)), titles)
    ax.invert_yaxis()
    style.name_axes(ax, "training time in seconds", "method")
    if len(times) > 1:
        style.legend(ax, drawn, list(times), loc="best")
    style.grid(ax, "x")
    listed = "; ".join(
        f"{style.plain(data, 24)}: "
        + ", ".join(f"{style.plain(t, 24)} {s:,.3g} s" for t, s in known.items())
        for data, known in times.items()
    )
    return describe(
        ax,
        alt=f"Bars of training times. {listed}.",
        caption="Median training time of each method, in seconds.",
    )
