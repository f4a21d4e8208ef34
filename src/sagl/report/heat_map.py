"""A matrix as coloured cells with their values: shared by several figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sagl.report.style import HEAT, SMALL, frame, load, text_on

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NUMBERS = 144  # more do not fit


def draw_cells(
    ax: Axes,
    values: NDArray[np.float64],
    low: float,
    high: float,
    form: str,
    *,
    power: float = 1.0,
) -> Any:
    """Colour the cells, write the values where they fit, and return the image.

    A ``power`` below 1 sets small values apart.
    """
    cmap = load("matplotlib").colormaps[HEAT].with_extremes(bad=(0, 0, 0, 0))
    norm = load("matplotlib.colors").PowerNorm(power, low, high)
    image = ax.imshow(values, cmap=cmap, norm=norm, aspect="auto")
    frame(ax)
    if values.size <= _MOST_NUMBERS:
        for (i, j), value in np.ndenumerate(values):
            if np.isfinite(value):
                ax.text(
                    j,
                    i,
                    form.format(value),
                    ha="center",
                    va="center",
                    fontsize=SMALL,
                    color=text_on(image.cmap(image.norm(np.asarray(value)))),
                )
    return image
