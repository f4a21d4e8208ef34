"""What is checked of every figure: named, legible, saved, described."""

from itertools import combinations
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from sagl.report import picture, save
from sagl.report.saving import words


def check(ax, directory: Path | None = None, *, unnamed: tuple[str, ...] = ()) -> None:
    """Fails where people would: labels missing, clipped or over one another.

    With a directory, the figure is saved there in all formats as well.
    """
    figure = ax.figure
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    for panel in figure.axes:
        if not panel.get_visible() or panel.get_label() == "<colorbar>":
            continue
        for name, label in (("x", panel.get_xlabel()), ("y", panel.get_ylabel())):
            assert label or name in unnamed, f"{name} axis without a name"
    for panel in figure.axes:
        if panel.get_visible():
            for axis in (panel.xaxis, panel.yaxis):
                _apart([t for t in _tick_labels(axis) if _seen(t)], renderer)
    _inside(figure, renderer)
    said = words(ax)
    assert len(said.alt) > 20
    assert len(said.caption) > 10
    if directory is None:
        return
    for form in ("png", "svg", "pdf"):
        save(ax, directory / f"figure.{form}")
        assert (directory / f"figure.{form}").stat().st_size > 1000
    assert picture(ax, "figure").svg.startswith("<svg")


def _tick_labels(axis) -> list[Text]:
    """Those inside the limits; matplotlib keeps others that are never drawn."""
    return [
        text for tick in axis._update_ticks() for text in (tick.label1, tick.label2)
    ]


def _seen(text: Text) -> bool:
    return bool(text.get_visible() and text.get_text().strip())


def _apart(texts: list[Text], renderer) -> None:
    # A rotated label's box is larger than the label: only upright ones are compared.
    upright = [t for t in texts if t.get_rotation() % 90 == 0]
    boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in upright]
    for (name, a), (other, b) in combinations(boxes, 2):
        wide = min(a.x1, b.x1) - max(a.x0, b.x0)
        high = min(a.y1, b.y1) - max(a.y0, b.y0)
        # Lines of text may touch: the box is higher than most letters.
        assert wide < 0.5 or high < 0.25 * min(a.height, b.height), (name, other)


def _inside(figure, renderer) -> None:
    width, height = np.array(figure.get_size_inches()) * figure.dpi
    hidden = {
        id(text)
        for panel in figure.axes
        if not panel.get_visible()
        for text in panel.findobj(Text)
    }
    axes = [axis for panel in figure.axes for axis in (panel.xaxis, panel.yaxis)]
    ticks = {id(text) for axis in axes for text in axis.get_ticklabels(which="both")}
    ticks -= {id(text) for axis in axes for text in _tick_labels(axis)}
    for text in figure.findobj(Text):
        if not _seen(text) or id(text) in hidden or id(text) in ticks:
            continue
        box = text.get_window_extent(renderer)
        assert box.x0 > -1, text
        assert box.y0 > -1, text
        assert box.x1 < width + 1, text
        assert box.y1 < height + 1, text
