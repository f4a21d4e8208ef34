"""What happens in training: the loss with its terms, and how sparse graphs become.

A history is ``history_`` of a model, or the lines of a run's ``history.jsonl``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sagl.nn.objective import TERMS
from sagl.report import style


@style.styled
def draw_losses(
    history: Sequence[Mapping[str, Any]],
    *,
    gamma: float | None = None,
    beta: float | None = None,
    axes: Sequence[style.Axes] | None = None,
) -> list[style.Axes]:
    """The total loss above, its terms below, over the optimiser's steps.

    Terms that the first record does not have are not drawn. They are shown without
    their weights ``gamma`` and ``beta``, which the legend names.
    """
    if not history:
        raise ValueError("the history is empty: there is nothing to draw")
    terms = {key: key.replace("_", "-") for key in TERMS if key in history[0]}
    keys = ("step", "loss", *terms)
    for i, record in enumerate(history):
        missing = [key for key in keys if key not in record]
        if missing:
            raise ValueError(
                f"record {i} of the history has no {', '.join(missing)}; expected the "
                "records that training writes"
            )
    steps, loss, *parts = ([record[key] for record in history] for key in keys)
    if axes is None:
        axes = style.panels(2, 1, height=4.4, ratios=(1, 1.3))
    top, bottom = axes
    style.curves(top, steps, [loss])
    weights = {"diversity": ("γ", gamma), "alignment": ("β", beta)}
    names = []
    for key, name in terms.items():
        symbol, weight = weights.get(key, ("", None))
        names.append(name if weight is None else f"{name} ({symbol} = {weight:g})")
    style.curves(bottom, steps, parts, names, first=1, loc="upper right", ncols=3)
    low, high = bottom.get_ylim()
    bottom.set_ylim(low, high + 0.18 * (high - low))  # room for the legend
    style.name_axes(top, "", "sum (loss)")
    style.name_axes(bottom, "optimiser step", "terms, unweighted")
    top.sharex(bottom)
    top.tick_params(labelbottom=False)
    bottom.xaxis.set_major_formatter("{x:,.0f}")
    style.describe(
        top,
        alt=f"The loss over {steps[-1]:,} steps, from {loss[0]:.4g} to {loss[-1]:.4g}.",
        caption="Convergence: the loss and its terms, each the mean over the steps "
        "since the record before.",
    )
    ends = ", ".join(
        f"{name} {values[-1]:.3g}"
        for name, values in zip(terms.values(), parts, strict=True)
    )
    style.describe(bottom, alt=f"Its terms end at: {ends}.", caption="")
    return [top, bottom]


@style.styled
def draw_sparsity(
    history: Sequence[Mapping[str, Any]],
    view_names: Sequence[str],
    ax: style.Axes | None = None,
) -> style.Axes:
    """Share of a batch's pairs that each view's graph keeps, over the steps.

    Records without a sparsity are passed over.
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
    ax = style.axes_or_new(ax, 3.0)
    style.curves(ax, steps, [*(100 * ratios.T)], view_names)
    ax.set_yscale("log")
    style.log_numbers(ax.yaxis, "{x:g}%")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    style.name_axes(ax, "optimiser step", "pairs kept in the graph")
    ends = ", ".join(
        f"{style.plain(name, 24)} from {first:.2%} to {last:.2%}"
        for name, first, last in zip(view_names, ratios[0], ratios[-1], strict=True)
    )
    return style.describe(
        ax,
        alt=f"Share of pairs kept by the graphs over {steps[-1]:,} steps: {ends}.",
        caption="Sparsity ratio of each view's graph during training, on the last "
        "batch before each record.",
    )
