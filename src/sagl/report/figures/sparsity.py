"""How sparse the graphs become in training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sagl.report import style
from sagl.report.saving import describe


def draw_sparsity(
    history: Sequence[Mapping[str, Any]],
    view_names: Sequence[str],
    ax: style.Axes | None = None,
) -> style.Axes:
    """Share of a batch's pairs that each view's graph keeps, over the steps.

    Parameters
    ----------
    history : sequence of records
        ``history_`` of a model, or the lines of a run's ``history.jsonl``. Records
        without a sparsity are passed over.
    view_names : sequence of str
        The views' names.
    """
    measured = [record for record in history if record.get("sparsity") is not None]
    if not measured:
        reason = "has no sparsity in it" if history else "is empty"
        raise ValueError(f"the history {reason}: there is nothing to draw")
    for record in measured:
        if len(record["sparsity"]) != len(view_names):
            raise ValueError(
                f"the record of step {record['step']} has the sparsity "
                f"{record['sparsity']!r}; expected one number for each of "
                f"{len(view_names)} views"
            )
    steps = [record["step"] for record in measured]
    ratios = np.array([record["sparsity"] for record in measured], dtype=float)
    ax = style.axes_or_new(ax, height=3.0)
    marker = "o" if len(steps) == 1 else ""
    lines = [
        ax.plot(steps, 100 * ratios[:, i], marker=marker, **style.line(i))[0]
        for i in range(len(view_names))
    ]
    ax.set_yscale("log")
    style.log_numbers(ax.yaxis, "{:g}%")
    style.tick_numbers(ax.xaxis)
    style.name_axes(ax, "optimiser step", "pairs kept in the graph")
    style.legend(ax, lines, view_names)
    style.grid(ax)
    ends = ", ".join(
        f"{style.plain(name, 24)} from {first:.2%} to {last:.2%}"
        for name, first, last in zip(view_names, ratios[0], ratios[-1], strict=True)
    )
    return describe(
        ax,
        alt=f"Share of pairs kept by the graphs over {steps[-1]:,} steps: {ends}.",
        caption="Sparsity ratio of each view's graph during training, on the last "
        "batch before each record.",
    )
