"""Candidates and their label-free score, beside what they are worth with labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from sagl.report import style

_MOST = 40  # lines that are still read


@style.styled
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
    axes: Sequence[style.Axes] | None = None,
) -> list[style.Axes]:
    """Bars of a score that needs no labels, best first, and of one that does.

    The best 40 candidates (``what`` they are is told in words) are drawn with their
    standard deviations. The score with labels, ``truth``, has a panel of its own and
    takes no part in the order. The ``chosen`` one, a position, is set apart.
    """
    columns = {"scores": scores, "sd": sd, "truth": truth, "truth_sd": truth_sd}
    given = {
        name: np.asarray(np.zeros(len(names)) if values is None else values, np.float64)
        for name, values in columns.items()
    }
    for name, values in given.items():
        if values.shape != (len(names),) or not len(names):
            raise ValueError(
                f"{name} of shape {values.shape} for {len(names)} names; there must be "
                "one for each"
            )
    order = np.argsort(-given["scores"], kind="stable")[:_MOST]
    sides = [("scores", "sd", measure, what, [names[i] for i in order])]
    if truth is not None:
        unnamed = [""] * len(order)
        sides.append(("truth", "truth_sd", f"{truth_measure}, not used", "", unnamed))
    if axes is None:
        height = float(np.clip(1.0 + 0.2 * len(order), 2.2, 9))
        axes = style.panels(1, len(sides), height=height)
    plain, hatched = (style.PALETTE[0], ""), (style.PALETTE[5], "//")
    looks = [hatched if i == chosen else plain for i in order]
    for ax, (score, spread, x, y, labels) in zip(axes, sides, strict=False):
        values, deviations = given[score][order], given[spread][order]
        high, more = max(float(values.max()), 1e-9), float(deviations.max())
        style.bars(ax, values, deviations, looks, high * 1.04 + more)
        ax.set_xlim(min(0.0, float(values.min())), high * 1.28 + more)
        style.name_ticks(ax.yaxis, range(len(order)), labels, 34, apart=0)
        style.name_axes(ax, x, y)

    def in_words(i: int) -> str:
        text = f"{style.plain(names[i], 40)} {given['scores'][i]:.3f}"
        if truth is not None:
            text += f" ({truth_measure} {given['truth'][i]:.3f})"
        return text

    cut = "" if len(order) == len(names) else f" The best {len(order)} are shown."
    mark = "" if chosen is None else f" Chosen, hatched: {in_words(chosen)}."
    style.describe(
        axes[0],
        alt=f"Bars of {measure} for {len(names)} of: {what}. "
        + ", ".join(in_words(int(i)) for i in order[:10])
        + f".{mark}",
        caption=f"{what[:1].upper()}{what[1:]} by {measure}, best first.{mark}{cut}",
    )
    return list(axes)
