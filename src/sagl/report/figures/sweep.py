"""The trials of a sweep: the score against each setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sagl.report import style

_COLUMNS = 3
_WIDE_RANGE = 20  # largest over smallest value, from which a scale is logarithmic


@style.styled
def draw_sweep(
    trials: Sequence[Mapping[str, Any]],
    scores: Sequence[float],
    *,
    measure: str = "score",
    axes: Sequence[style.Axes] | None = None,
) -> list[style.Axes]:
    """One panel per setting that varies; every trial is a point, the best a ring.

    A trial is a mapping of settings to values: numbers have an axis, other values a
    place each. Its score is NaN where it failed.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (len(trials),) or not np.isfinite(values).any():
        raise ValueError(
            f"expected one score per trial and at least one that is a number; got "
            f"{values.shape} for {len(trials)} trials"
        )
    names = dict.fromkeys(name for trial in trials for name in trial)
    tried = {name: [trial.get(name) for trial in trials] for name in names}
    settings = [name for name in names if len(set(map(repr, tried[name]))) > 1]
    settings = settings or list(names)[:1]
    columns = min(_COLUMNS, len(settings))
    if axes is None:
        rows = -(-len(settings) // _COLUMNS)
        axes = style.panels(rows, columns, height=0.4 + 2.1 * rows)
    best = int(np.nanargmax(values))
    for i, (ax, name) in enumerate(zip(axes, settings, strict=False)):
        _draw_setting(ax, tried[name], values, best)
        first = style.plain(measure, 24) if i % columns == 0 else ""
        style.name_axes(ax, style.plain(name, 24), first)
    for ax in axes[len(settings) :]:
        ax.set_visible(False)
    chosen = ", ".join(
        f"{name} = {_shown(trials[best].get(name))}" for name in settings
    )
    style.describe(
        axes[0],
        alt=f"Points of {measure} against {', '.join(settings)} for {len(trials)} "
        f"trials; the best, {values[best]:.4g}, has {chosen}.",
        caption=f"{len(trials)} trials; the ring is the best: {chosen} "
        f"({measure} {values[best]:.4g}).",
    )
    return list(axes[: len(settings)])


def _draw_setting(
    ax: style.Axes, values: list[Any], scores: NDArray[np.float64], best: int
) -> None:
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        places = np.array(values, dtype=np.float64)
        if places.min() > 0 and places.max() / places.min() >= _WIDE_RANGE:
            ax.set_xscale("log")
    else:
        words = [_shown(value) for value in values]
        distinct = list(dict.fromkeys(words))
        places = np.array([distinct.index(word) for word in words], dtype=float)
        ax.set_xlim(-0.5, len(distinct) - 0.5)
        style.name_ticks(ax.xaxis, range(len(distinct)), distinct, 12)
    ax.scatter(places, scores, s=16, color=style.PALETTE[0], alpha=0.7, linewidths=0)
    ring = {"facecolor": "none", "edgecolor": style.ink(ax), "linewidths": 1.3}
    ax.scatter(places[best], scores[best], s=70, **ring)
    style.grid(ax)
    if ax.get_xscale() == "log":
        style.log_numbers(ax.xaxis, room=0.75)  # panels are narrow


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
