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

    Parameters
    ----------
    history : sequence of records
        Terms that the first does not have are not drawn.
    gamma, beta : float, optional
        Weights of diversity and alignment, for the legend; the terms are shown
        without them.
    axes : sequence of two Axes, optional
        Where to draw; by default a new figure.
    """
    if not history:
        raise ValueError("the history is empty: there is nothing to draw")
    terms = {key: key.replace("_", "-") for key in TERMS if key in history[0]}
    for i, record in enumerate(history):
        missing = [key for key in ("step", "loss", *terms) if key not in record]
        if missing:
            raise ValueError(
                f"record {i} of the history has no {', '.join(missing)}; expected the "
                "records that training writes"
            )
    values = {
        key: [record[key] for record in history] for key in ("step", "loss", *terms)
    }
    steps = values["step"]
    if axes is None:
        axes = style.panels(2, 1, height=4.4, ratios=(1, 1.3))
    top, bottom = axes
    marker = "o" if len(steps) == 1 else ""
    top.plot(steps, values["loss"], **style.line(0, marker))
    weights = {"diversity": ("γ", gamma), "alignment": ("β", beta)}
    lines, names = [], []
    for i, (key, name) in enumerate(terms.items()):
        look = style.line(i, marker) | {"color": style.PALETTE[i + 1]}
        lines += bottom.plot(steps, values[key], **look)
        symbol, weight = weights.get(key, ("", None))
        names.append(name if weight is None else f"{name} ({symbol} = {weight:g})")
    style.legend(bottom, lines, names, loc="upper right", ncols=3)
    low, high = bottom.get_ylim()
    bottom.set_ylim(low, high + 0.18 * (high - low))  # room for the legend
    style.name_axes(top, "", "sum (loss)")
    style.name_axes(bottom, "optimiser step", "terms, unweighted")
    top.sharex(bottom)
    top.tick_params(labelbottom=False)
    bottom.xaxis.set_major_formatter("{x:,.0f}")
    style.grid(top)
    style.grid(bottom)
    first, last = values["loss"][0], values["loss"][-1]
    style.describe(
        top,
        alt=f"The loss over {steps[-1]:,} steps, from {first:.4g} to {last:.4g}.",
        caption="Convergence: the loss and its terms, each the mean over the steps "
        "since the record before.",
    )
    ends = ", ".join(f"{n} {values[k][-1]:.3g}" for k, n in terms.items())
    style.describe(bottom, alt=f"Its terms end at: {ends}.", caption="")
    return [top, bottom]


@style.styled
def draw_sparsity(
    history: Sequence[Mapping[str, Any]],
    view_names: Sequence[str],
    ax: style.Axes | None = None,
) -> style.Axes:
    """Share of a batch's pairs that each view's graph keeps, over the steps.

    Parameters
    ----------
    history : sequence of records
        Records without a sparsity are passed over.
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
    ax = style.axes_or_new(ax, 3.0)
    marker = "o" if len(steps) == 1 else ""
    lines = [
        ax.plot(steps, 100 * ratios[:, i], **style.line(i, marker))[0]
        for i in range(len(view_names))
    ]
    ax.set_yscale("log")
    style.log_numbers(ax.yaxis, "{x:g}%")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    style.name_axes(ax, "optimiser step", "pairs kept in the graph")
    style.legend(ax, lines, view_names)
    style.grid(ax)
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
