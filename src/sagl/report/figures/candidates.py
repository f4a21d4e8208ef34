"""Candidates and their label-free score, beside what they are worth with labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sagl.report.saving import describe
from sagl.report.style import (
    PALETTE,
    SMALL,
    axes_or_new,
    grid,
    ink,
    name_axes,
    name_ticks,
    panels,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST = 40  # lines that are still read


def draw_candidates(
    names: Sequence[str],
    scores: ArrayLike,
    *,
    sd: ArrayLike | None = None,
    truth: ArrayLike | None = None,
    truth_sd: ArrayLike | None = None,
    chosen: int | None = None,
    measure: str = "score",
    truth_measure: str = "ACC",
    what: str = "candidate",
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """Bars of a score that needs no labels, best first, and of one that does.

    Parameters
    ----------
    names : sequence of str
        What was tried: combinations of views, variants.
    scores : array-like of shape (len(names),)
        The score by which one is chosen. The best 40 are drawn.
    sd, truth_sd : array-likes of the same length, optional
        Standard deviations, drawn as bars of error.
    truth : array-like of the same length, optional
        The score with labels, in a second panel. It takes no part in the order.
    chosen : int, optional
        The position of the candidate that was chosen, set apart.
    measure, truth_measure : str
        The names of the two scores.
    what : str, default="candidate"
        What a candidate is.
    axes : sequence of Axes, optional
        Where to draw, one or two; by default a new figure.
    """
    values = np.asarray(scores, dtype=np.float64)
    given = {"scores": values} | {
        name: np.asarray(found, dtype=np.float64)
        for name, found in (("sd", sd), ("truth", truth), ("truth_sd", truth_sd))
        if found is not None
    }
    for name, found in given.items():
        if found.shape != (len(names),) or not len(names):
            raise ValueError(
                f"{name} of shape {found.shape} for {len(names)} names; there must be "
                "one for each"
            )
    order = np.argsort(-values, kind="stable")[:_MOST]
    if axes is None:
        height = float(np.clip(1.0 + 0.2 * len(order), 2.2, 9))
        axes = (
            [axes_or_new(None, height=height)]
            if truth is None
            else panels(1, 2, height=height)
        )
    marked = [chosen is not None and i == chosen for i in order]
    _bars(axes[0], values[order], _some(given.get("sd"), order), marked)
    labels = [plain(names[i], 34) for i in order]
    name_ticks(axes[0].yaxis, range(len(order)), labels, limit=34)
    name_axes(axes[0], measure, what)
    if truth is not None:
        found = given["truth"][order]
        _bars(axes[1], found, _some(given.get("truth_sd"), order), marked)
        name_ticks(axes[1].yaxis, range(len(order)), [""] * len(order))
        name_axes(axes[1], f"{truth_measure}, not used", "")
    _describe(axes[0], names, given, order, chosen, measure, truth_measure, what)
    return list(axes)


def _some(
    values: NDArray[np.float64] | None, order: NDArray[np.intp]
) -> NDArray[np.float64] | None:
    return None if values is None else values[order]


def _bars(
    ax: Axes,
    values: NDArray[np.float64],
    sd: NDArray[np.float64] | None,
    marked: Sequence[bool],
) -> None:
    low, high = min(0.0, float(values.min())), max(float(values.max()), 1e-9)
    for place, value in enumerate(values):
        ax.barh(
            place,
            value,
            height=0.72,
            xerr=sd[place] if sd is not None and sd[place] > 0 else None,
            color=PALETTE[5 if marked[place] else 0],
            hatch="//" if marked[place] else "",
            edgecolor="white",
            linewidth=0,
            error_kw={"ecolor": ink(ax), "elinewidth": 1, "capsize": 1.5},
        )
        ax.annotate(
            f"{value:.3f}",
            (high * 1.04 if sd is None else high * 1.04 + sd.max(), place),
            va="center",
            annotation_clip=False,
            fontsize=SMALL,
            color=ink(ax),
        )
    spread = 0.0 if sd is None else float(sd.max())
    ax.set_xlim(low, high * 1.28 + spread)
    ax.set_ylim(len(values) - 0.4, -0.6)
    grid(ax, "x")


def _describe(
    ax: Axes,
    names: Sequence[str],
    given: dict[str, NDArray[np.float64]],
    order: NDArray[np.intp],
    chosen: int | None,
    measure: str,
    truth_measure: str,
    what: str,
) -> None:
    def said(i: int) -> str:
        text = f"{plain(names[i], 40)} {given['scores'][i]:.3f}"
        if "truth" in given:
            text += f" ({truth_measure} {given['truth'][i]:.3f})"
        return text

    shown = "" if len(order) == len(names) else f" The best {len(order)} are shown."
    mark = "" if chosen is None else f" Chosen, hatched: {said(chosen)}."
    describe(
        ax,
        alt=f"Bars of {measure} for {len(names)} of: {what}. "
        + ", ".join(said(int(i)) for i in order[:10])
        + f".{mark}",
        caption=f"{what[:1].upper()}{what[1:]} by {measure}, best first.{mark}{shown}",
    )
