"""How figures look and what they say: colours, axes, labels, words.

Figures have a transparent ground and one ink, which an inlined SVG takes from the page
around it: they are readable in light and in dark mode. Colours stand out from both and
can be told apart by people with the common colour deficiencies; lines differ in dash
and marker as well. matplotlib's settings change only while a figure is drawn.
"""

from __future__ import annotations

import inspect
import unicodedata
from collections.abc import Callable, Sequence
from functools import wraps
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sagl.environment import optional_module

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

WIDTH = 6.4  # inches; 640 pixels in the report
SMALL = 7.5  # points
# Not black: matplotlib leaves black out of SVG files, and `picture` replaces this one.
INK = "#2a2c31"
HEAT = "cividis"  # even in lightness, and made for colour-blind eyes

# Okabe and Ito's without yellow and black, which vanish on white or on dark, and two
# that stay as far as can be from all of these for every kind of colour vision.
PALETTE = (
    "#0072b2",  # blue
    "#e69f00",  # orange
    "#009e73",  # green
    "#cc79a7",  # pink
    "#56b4e9",  # sky
    "#d55e00",  # vermilion
    "#8448e8",  # violet
    "#844820",  # brown
)
# For clusters beyond the eighth: each as far as can be from all before it, in Lab, for
# normal vision and for the three kinds of colour blindness at once. Less contrast.
_MORE = (
    *("#a8d27e", "#e7bdbd", "#545454", "#002afc", "#54e754", "#a80093", "#937efc"),
    *("#939354", "#69543f", "#bdbd93", "#93547e", "#bd933f", "#93bdd2", "#e715bd"),
    *("#7e2abd", "#93d2fc"),
)
_DASHES = ("-", "--", "-.", ":")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_MOST_MARKED = 40  # points of a curve that are marked one by one
_MOST_NUMBERS = 144  # in the cells of a matrix; more do not fit
_MOST_NAMES = 25  # along an axis in the usual size
_LETTERS = 13  # in an inch
_STYLE = {
    "font.size": SMALL,
    "axes.labelsize": 9,
    "axes.titlesize": 9,
    "axes.linewidth": 0.7,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "figure.constrained_layout.use": True,
    "image.cmap": HEAT,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "text.parse_math": False,  # names from data are text, never formulas
}
WORDS = "sagl_words"  # the attribute of axes that holds them
_INKED = ("text.color", "axes.labelcolor", "axes.edgecolor")
_P = ParamSpec("_P")
_R = TypeVar("_R")


def load(module: str) -> Any:
    """A module of the extra ``report``, or one line that says how to get it."""
    return optional_module(module, "report")


def cluster_colours(n: int) -> list[str]:
    """A colour for each of n clusters, as ``#rrggbb``.

    Two dozen different ones, then the same again: nobody tells more apart, so figures
    with more clusters do not rely on colour.
    """
    return [c for c, _ in zip(cycle(PALETTE + _MORE), range(n), strict=False)]


def scale_colours(n: int) -> list[str]:
    """n colours for numbers from low to high, as ``#rrggbb``."""
    scale = load("matplotlib").colormaps[HEAT].resampled(n)
    return [load("matplotlib.colors").to_hex(scale(i)) for i in range(n)]


def text_on(colour: Any) -> str:
    """Black or white, whichever is easier to read on the colour."""
    rgb = np.asarray(load("matplotlib.colors").to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    luminance = float(linear @ [0.2126, 0.7152, 0.0722])
    return "black" if luminance > 0.179 else "white"  # where both contrasts are equal


def styled(draw: Callable[_P, _R]) -> Callable[_P, _R]:
    """A figure's function that draws in our style, on given axes in their own ink."""
    signature = inspect.signature(draw)

    @wraps(draw)
    def in_style(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        given = signature.bind(*args, **kwargs).arguments
        axes = given.get("axes", [given.get("ax")])
        colour = INK if axes is None or axes[0] is None else ink(axes[0])
        with load("matplotlib").rc_context(_STYLE | dict.fromkeys(_INKED, colour)):
            return draw(*args, **kwargs)

    return in_style


def panels(
    n_rows: int = 1,
    n_columns: int = 1,
    *,
    width: float = WIDTH,
    height: float = 3.6,
    ratios: Sequence[float] | None = None,
) -> list[Axes]:
    """The axes of a new figure that no window and no global state knows about."""
    with load("matplotlib").rc_context(_STYLE | dict.fromkeys(_INKED, INK)):
        figure: Figure = load("matplotlib.figure").Figure(figsize=(width, height))
        axes = figure.subplots(n_rows, n_columns, squeeze=False, height_ratios=ratios)
    for ax in axes.flat:
        _style_ticks(ax)
    return list(axes.flat)


def axes_or_new(ax: Axes | None, height: float = 3.6) -> Axes:
    """The given axes as they are, or those of a new figure."""
    return panels(height=height)[0] if ax is None else ax


def _style_ticks(ax: Axes, colour: Any = INK) -> None:
    # Not by matplotlib's settings: most ticks are made later, when the figure is saved.
    ax.tick_params(which="both", colors=colour, labelsize=SMALL, width=0.7)


def ink(ax: Axes) -> Any:
    """The colour in which the axes are labelled."""
    return ax.xaxis.label.get_color()


def grid(ax: Axes, which: Any = "y") -> None:
    """Faint lines behind the data."""
    ax.set_axisbelow(True)
    ax.grid(True, axis=which, color=ink(ax), alpha=0.18, linewidth=0.6)


def curves(
    ax: Axes,
    x: Sequence[float] | NDArray[Any],
    ys: Sequence[ArrayLike],
    names: Sequence[str] = (),
    *,
    sd: Sequence[ArrayLike | None] | None = None,
    first: int = 0,
    **legend: Any,
) -> None:
    """Curves over one x, apart in colour, dash and marker; NaN leaves a gap."""
    drawn = []
    for i, (values, spread) in enumerate(zip(ys, sd or [None] * len(ys), strict=True)):
        look: dict[str, Any] = {
            "color": PALETTE[(first + i) % len(PALETTE)],
            "linestyle": _DASHES[i % len(_DASHES)],
            "marker": _MARKERS[i % len(_MARKERS)] if len(x) <= _MOST_MARKED else "",
            "markersize": 5 if len(x) < _MOST_MARKED / 4 else 3,
        }
        drawn.append(ax.errorbar(x, values, yerr=spread, capsize=3, **look))
    if names:
        name_legend(ax, drawn, names, **legend)
    grid(ax)


def bars(
    ax: Axes,
    values: ArrayLike,
    sd: ArrayLike,
    looks: Sequence[tuple[str, str]],
    numbers_at: float,
) -> None:
    """Bars from the top down, each with its colour and hatch, and its value beside."""
    values, places = np.asarray(values), np.arange(len(looks))
    colours, hatches = zip(*looks, strict=True)
    spread: Any = {"ecolor": ink(ax), "elinewidth": 1}
    look = area(colours, hatches)
    ax.barh(places, values, height=0.72, xerr=sd, error_kw=spread, **look)
    for place, value in enumerate(values):
        ax.text(numbers_at, place, f"{value:.3f}", va="center")
    ax.set_ylim(len(looks) - 0.4, -0.6)
    grid(ax, "x")


def area(colour: Any, hatch: Any = "") -> dict[str, Any]:
    """How an area of the colour looks that is hatched as well."""
    return {"facecolor": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0}


def mark(ax: Axes, at: float, words: str, *, left: bool) -> None:
    """A dashed line across the axes, with words to its left or right."""
    ax.axvline(at, color=ink(ax), linewidth=0.9, linestyle="--")
    where: Any = {"ha": "right" if left else "left", "va": "top"}
    ax.text(at, 1, f" {words} ", transform=ax.get_xaxis_transform(), **where)


def cells(
    ax: Axes,
    values: NDArray[np.float64],
    rows: Sequence[object],
    columns: Sequence[object],
    *,
    label: str,
    limits: tuple[float, float] = (0, 1),
    form: str = "{:.2f}",
    power: float = 1.0,
) -> None:
    """A matrix as coloured cells, their values where they fit, names and a scale.

    A ``power`` below 1 sets small values apart.
    """
    norm = load("matplotlib.colors").PowerNorm(power, *limits)
    image = ax.imshow(values, norm=norm, aspect="auto")
    if values.size <= _MOST_NUMBERS:
        for (i, j), value in np.ndenumerate(values):
            if np.isfinite(value):
                colour = text_on(image.cmap(norm(value)))
                number = form.format(value)
                ax.text(j, i, number, ha="center", va="center", color=colour)
    name_ticks(ax.yaxis, range(len(rows)), rows, 18)
    name_ticks(ax.xaxis, range(len(columns)), columns, 18)
    colour_bar(ax, image, label)


def colour_bar(ax: Axes, image: Any, label: str) -> Any:
    """A scale beside an image, in the ink of its axes, and a line around the image."""
    ax.spines[:].set_visible(True)
    bar = ax.figure.colorbar(image, ax=ax, pad=0.02, fraction=0.05)
    bar.set_label(label)
    bar.minorticks_off()
    bar.outline.set_visible(False)
    _style_ticks(bar.ax, ink(ax))
    return bar


def name_axes(ax: Axes, x: str, y: str, title: str | None = None) -> None:
    """Label both axes; what comes from data is shown as text, never as formulas."""
    ax.set_xlabel(x, parse_math=False)
    ax.set_ylabel(y, parse_math=False)
    if title is not None:
        # Not set_title, which would go back to matplotlib's size and colour.
        ax.title.set(text=plain(title, 60), parse_math=False)


def name_ticks(
    axis: Axis,
    positions: ArrayLike,
    labels: Sequence[object],
    limit: int = 24,
    apart: float = 0.024,
) -> None:
    """Ticks with names from data: as many as have room, upright where that is narrow.

    Rising positions are named that are so far ``apart``, as a share of the axis.
    """
    places, scale = np.asarray(positions, np.float64), axis.get_transform()
    low, high = scale.transform(np.sort(axis.get_view_interval()))
    at = (scale.transform(places) - low) / (high - low)
    shown: list[int] = []
    for i, here in enumerate(at):
        if not shown or here - at[shown[-1]] >= apart:
            shown.append(i)
    names = [plain(labels[i], limit) for i in shown]
    axis.set_ticks(places[shown], names, parse_math=False)
    if len(shown) > _MOST_NAMES:
        axis.set_tick_params(labelsize=SMALL - 1.5)
    if axis is axis.axes.xaxis and len(shown) > 1:
        inches = axis.axes.bbox.width / axis.axes.figure.dpi
        room = _LETTERS * inches * float(np.diff(at[shown]).min())
        if max(map(len, names)) + 1 > room:
            axis.set_tick_params(rotation=90)


def log_numbers(axis: Axis, form: str = "{x:g}", room: float = 1.0) -> None:
    """Plain numbers on a logarithmic axis: whole decades, more where these are few."""
    low, high = sorted(axis.get_view_interval())
    decades = np.log10(high / low) / room if low > 0 else 3
    subs = (1, 2, 5) if decades < 1.5 else (1, 3) if decades < 2.2 else (1,)
    axis.set_major_locator(load("matplotlib.ticker").LogLocator(subs=subs, numticks=8))
    axis.set_minor_locator(load("matplotlib.ticker").NullLocator())
    axis.set_major_formatter(form)


def name_legend(
    ax: Axes, handles: Sequence[Any], names: Sequence[str], **place: Any
) -> None:
    """A legend whose entries are exactly these."""
    ax.legend(list(handles), [plain(name, 32) for name in names], **place)


def plain(label: object, limit: int) -> str:
    """One line of at most ``limit`` characters, without control characters."""
    # Format characters (Cf) hold emoji and right-to-left text together: kept.
    shown = "".join(
        " " if unicodedata.category(c) in ("Cc", "Zl", "Zp", "Cs") else c
        for c in str(label)
    )
    line = " ".join(shown.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


class Words(NamedTuple):
    """What a figure shows, for people who cannot see it and for those who can."""

    alt: str
    caption: str


def describe(ax: Axes, *, alt: str, caption: str) -> Axes:
    """The axes with words attached; every figure function ends with this."""
    setattr(ax, WORDS, Words(alt, caption))
    return ax
