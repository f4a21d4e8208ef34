"""How sparse the graphs become in training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sagl.report.saving import describe
from sagl.report.style import (
    DASHES,
    PALETTE,
    axes_or_new,
    grid,
    legend,
    log_numbers,
    name_axes,
    plain,
    tick_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_sparsity(
    history: Sequence[Mapping[str, Any]],
    view_names: Sequence[str],
    ax: Axes | None = None,
) -> Axes:
    """Share of a batch's pairs that each view's graph keeps, over the steps.

    Parameters
    ----------
    history : sequence of records
        ``history_`` of a model, or the lines of a run's ``history.jsonl``.
    view_names : sequence of str
        The views' names.
    ax : Axes, optional
        Where to draw; by default a new figure.
    """
    steps, ratios = _ratios(history, len(view_names))
    ax = axes_or_new(ax, height=3.0)
    lines = [
        ax.plot(
            steps,
            100 * ratios[:, i],
            color=PALETTE[i % len(PALETTE)],
            linestyle=DASHES[i % len(DASHES)],
            linewidth=1.6,
            marker="o" if len(steps) == 1 else "",
        )[0]
        for i in range(len(view_names))
    ]
    ax.set_yscale("log")
    log_numbers(ax.yaxis, "{:g}%")
    tick_numbers(ax.xaxis)
    name_axes(ax, "optimiser step", "pairs kept in the graph")
    legend(ax, lines, view_names)
    grid(ax)
    ends = ", ".join(
        f"{plain(name, 24)} from {first:.2%} to {last:.2%}"
        for name, first, last in zip(view_names, ratios[0], ratios[-1], strict=True)
    )
    describe(
        ax,
        alt=f"Share of pairs kept by the graphs over {steps[-1]:,} steps: {ends}.",
        caption="Sparsity ratio of each view's graph during training, on the last "
        "batch before each record.",
    )
    return ax


def _ratios(
    history: Sequence[Mapping[str, Any]], n_views: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    if not history:
        raise ValueError("the history is empty: there is nothing to draw")
    for i, record in enumerate(history):
        found = record.get("sparsity")
        if found is None or len(found) != n_views:
            raise ValueError(
                f"record {i} of the history has the sparsity {found!r}; expected one "
                f"number for each of {n_views} views"
            )
    steps = np.array([record["step"] for record in history])
    return steps, np.array([record["sparsity"] for record in history], dtype=float)
