"""Figures as files, and as pictures with words for a page."""

from __future__ import annotations

import base64
import io
import re
import warnings
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sagl.report.style import INK, load
from sagl.storage import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Picture", "Words", "check_format", "describe", "picture", "save", "words"]

FORMATS = ("png", "svg", "pdf")
_DOTS_PER_INCH = 200
_MOST_SVG = 600_000  # characters in a page; beyond, a PNG is smaller
_ATTRIBUTE = "sagl_words"


class Words(NamedTuple):
    """What a figure shows, for people who cannot see it and for those who can."""

    alt: str
    caption: str


class Picture(NamedTuple):
    """A figure ready for a page.

    ``svg`` is an ``<svg>`` element to be inlined: its ids begin with the name and are
    unique on the page, its ink is ``currentColor``, its alt text is inside.
    """

    svg: str
    png: bytes
    alt: str
    caption: str


class Drawing(NamedTuple):
    """A figure for the page: markup of our own making, and plain words."""

    title: str
    content: str
    caption: str
    wide: bool = False


def describe(ax: Axes, *, alt: str, caption: str) -> Axes:
    """The axes with words attached; every figure function ends with this."""
    setattr(ax, _ATTRIBUTE, Words(alt, caption))
    return ax


def words(drawn: Axes | Figure) -> Words:
    """The words of a figure: those of its axes, one after the other.

    Examples
    --------
    >>> from sagl.report.figures import draw_cluster_sizes
    >>> from sagl.report.saving import words
    >>> words(draw_cluster_sizes([0, 0, 1])).alt
    'Bars of the sizes of 2 clusters, from 1 to 2 samples; an even share is 1.5.'
    """
    parts = [
        getattr(ax, _ATTRIBUTE) for ax in _figure(drawn).axes if hasattr(ax, _ATTRIBUTE)
    ]
    if not parts:
        raise ValueError("this figure was not drawn by sagl: it has no words")
    captions = dict.fromkeys(part.caption for part in parts if part.caption)
    alts = dict.fromkeys(part.alt for part in parts)
    return Words(" ".join(alts), " ".join(captions))


def save(drawn: Axes | Figure, path: str | Path) -> None:
    """Write a figure as PNG, SVG or PDF, by the path's suffix; whole or not at all.

    The ground is white: a file is looked at anywhere.
    """
    path = Path(path)
    form = check_format(path)
    content = io.BytesIO()
    _render(_figure(drawn), content, form, facecolor="white")
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_bytes(content.getvalue())


def check_format(path: Path) -> str:
    """The format that a path asks for, refused unless it can be written."""
    form = path.suffix.lower().removeprefix(".")
    if form not in FORMATS:
        raise ValueError(
            f"{path}: a figure is written as .png, .svg or .pdf, not {path.suffix!r}"
        )
    return form


def picture(drawn: Axes | Figure, name: str) -> Picture:
    """A figure with its words, as SVG and PNG. ``name`` is unique on the page."""
    if not re.fullmatch(r"[A-Za-z][\w-]*", name, re.ASCII):
        raise ValueError(
            f"a picture's name is made of letters, digits and hyphens; got {name!r}"
        )
    figure = _figure(drawn)
    said = words(figure)
    svg, png = io.BytesIO(), io.BytesIO()
    _render(figure, svg, "svg", facecolor="none")
    _render(figure, png, "png", facecolor="white")
    inline = _inline(svg.getvalue().decode("utf-8"), name, said.alt)
    return Picture(inline, png.getvalue(), said.alt, said.caption)


def drawing(title: str, drawn: Axes, name: str, *, wide: bool = False) -> Drawing:
    """A figure as an SVG element, or as an image where that is smaller."""
    made = picture(drawn, f"figure-{name}")
    content = made.svg
    if len(content) > _MOST_SVG:
        address = f"data:image/png;base64,{base64.b64encode(made.png).decode()}"
        content = f'<img src="{address}" alt="{escape(made.alt)}">'
    return Drawing(title, content, made.caption, wide)


def _figure(drawn: Axes | Figure) -> Figure:
    load("matplotlib.figure")
    figure: Figure = drawn.figure if hasattr(drawn, "spines") else drawn  # type: ignore[assignment]
    return figure


def _render(figure: Figure, file: io.BytesIO, form: str, *, facecolor: str) -> None:
    # Dates would make the same figure another file every time.
    metadata = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    canvas = load("matplotlib.backends.backend_agg").FigureCanvasAgg
    with warnings.catch_warnings():
        # Emoji and rare scripts are drawn as boxes; saying so helps nobody.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        canvas(figure).print_figure(
            file,
            format=form,
            dpi=_DOTS_PER_INCH,
            facecolor=facecolor,
            metadata=metadata[form],
        )


def _inline(svg: str, name: str, alt: str) -> str:
    """An SVG file as an element among others on a page.

    Without prolog, comments and metadata; with ids that no other picture has; in the
    page's colour instead of the ink. Style rules for ``*`` would reach the whole page:
    they become properties of the element.
    """
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", svg, flags=re.DOTALL)
    olds = dict.fromkeys(re.findall(r'\bid="([^"]+)"', svg))
    new = {old: f"{name}-{i}" for i, old in enumerate(olds)}
    svg = re.sub(r'(\bid="|"#|\(#)([^")]+)', lambda m: m[1] + new.get(m[2], m[2]), svg)
    svg = svg.replace(INK, "currentColor")
    root = re.match(r"<svg[^>]*>", svg)
    box = re.search(r'viewBox="[^"]+"', svg)
    if root is None or box is None:
        raise RuntimeError("matplotlib wrote an SVG file of an unknown form")
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" '
        f'xmlns:xlink="http://www.w3.org/1999/xlink" {box[0]} role="img" '
        f'aria-label="{escape(alt)}" '
        'style="width:100%;height:auto;stroke-linejoin:round;stroke-linecap:butt">'
    )
    return head + re.sub(r">\s+<", "><", svg[root.end() :]).strip()
