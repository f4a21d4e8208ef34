"""How far each method is from the supervised probe, set by set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from quality_table import PROBE, Tables, named
from sagl.experiments.table import Row
from sagl.report.saving import describe
from sagl.report.style import (
    PALETTE,
    SMALL,
    grid,
    ink,
    load,
    name_axes,
    name_ticks,
    panels,
)

_PANEL = 1.7  # inches
_NAMES = 1.6  # inches for the methods' names
_NARROWEST = 4.6  # inches, for the words below
_LOOKS = {
    True: {"marker": "o", "color": PALETTE[0], "markersize": 6.5},
    False: {"marker": "s", "color": PALETTE[5], "markersize": 5},
}
_NAMED = {True: "SAGL and its forms", False: "other methods"}


def draw_gaps(tables: Tables, measure: str = "acc") -> Any:
    """A panel per set, a row per method: points below the probe, means and spread.

    Sets without the probe are left out. Methods are sorted by their mean gap over the
    sets, the best on top. Returns the figure.
    """
    gaps = {name: _gaps(rows, measure) for name, rows in tables.items()}
    gaps = {name: found for name, found in gaps.items() if found}
    if not gaps:
        raise SystemExit("no picture: it needs the linear probe and another method")
    titles = sorted(
        {title for found in gaps.values() for title in found},
        key=lambda t: float(np.mean([f[t][0] for f in gaps.values() if t in f])),
    )
    axes = panels(
        1,
        len(gaps),
        width=max(_NARROWEST, _NAMES + _PANEL * len(gaps)),
        height=1.5 + 0.27 * len(titles),
    )
    for ax, (name, found) in zip(axes, gaps.items(), strict=True):
        _draw_panel(ax, name, found, titles, first=ax is axes[0])
    figure, line = axes[0].figure, load("matplotlib.lines").Line2D
    figure.legend(
        [line([], [], linestyle="", **_LOOKS[own]) for own in _NAMED],
        list(_NAMED.values()),
        loc="outside upper center",
        ncols=2,
        frameon=False,
        fontsize=SMALL,
        labelcolor=ink(axes[0]),
    )
    figure.supxlabel(
        f"points of {measure.upper()} below the linear probe, which has the labels\n"
        "mean ± standard deviation over seeds; grey: best of the set",
        fontsize=SMALL + 1,
        color=ink(axes[0]),
    )
    return figure


def _gaps(rows: Sequence[Row], measure: str) -> dict[str, tuple[float, float]]:
    """Gap and spread in points by the method's title."""
    probe = named(rows, PROBE)
    if probe is None:
        return {}
    return {
        row.title: (
            100 * (probe.mean[measure] - row.mean[measure]),
            100 * row.sd[measure],
        )
        for row in rows
        if row.mean and not row.supervised
    }


def _draw_panel(
    ax: Any,
    name: str,
    found: dict[str, tuple[float, float]],
    titles: Sequence[str],
    *,
    first: bool,
) -> None:
    for place, title in enumerate(titles):
        if title in found:
            gap, spread = found[title]
            ax.errorbar(
                gap,
                place,
                xerr=spread or None,
                linestyle="",
                elinewidth=1.2,
                capsize=2,
                **_LOOKS[_is_ours(title)],
            )
    best = min(found, key=lambda title: found[title][0])
    ax.axhspan(
        *(titles.index(best) - 0.5, titles.index(best) + 0.5),
        color=ink(ax),
        alpha=0.1,
        linewidth=0,
    )
    ax.set_ylim(len(titles) - 0.5, -0.5)
    least = min(gap - spread for gap, spread in found.values())
    most = max(gap + spread for gap, spread in found.values())
    room = 0.12 * (most - min(0.0, least))
    ax.set_xlim(least - room if least < 0 else 0.0, most + room)
    ax.axvline(0, color=ink(ax), linewidth=1)
    name_axes(ax, "", "", name)
    name_ticks(ax.yaxis, range(len(titles)), titles if first else [""] * len(titles))
    ax.tick_params(axis="y", left=first)
    grid(ax, "both")
    said = ", ".join(f"{title} {gap:.1f}" for title, (gap, _) in found.items())
    describe(
        ax,
        alt=f"{name}, points below the linear probe: {said}.",
        caption="The best method of each set stands on a grey band.",
    )


def _is_ours(title: str) -> bool:
    return title.startswith("SAGL")
