"""Figures as files, and as pictures with words for a page."""

from __future__ import annotations

import io
import re
import warnings
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sagl.report.style import INK, WORDS, Words, describe, load
from sagl.storage import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Picture", "Words", "check_format", "describe", "picture", "save", "words"]

_DOTS_PER_INCH = 200
# Dates would make the same figure another file every time.
_METADATA = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


class Picture(NamedTuple):
    """A figure ready for a page.

    ``svg`` is an ``<svg>`` element to be inlined: its ids begin with the name and are
    unique on the page, its ink is ``currentColor``, its alt text is inside.

    Examples
    --------
    >>> from sagl.report import Picture
    >>> Picture("<svg></svg>", b"", alt="Two bars.", caption="Sizes").alt
    'Two bars.'
    """

    svg: str
    png: bytes
    alt: str
    caption: str


def words(drawn: Axes | Figure) -> Words:
    """The words of a figure: those of its axes, one after the other."""
    parts = [getattr(ax, WORDS) for ax in _figure(drawn).axes if hasattr(ax, WORDS)]
    if not parts:
        raise ValueError("this figure was not drawn by sagl: it has no words")
    captions = dict.fromkeys(part.caption for part in parts if part.caption)
    alts = dict.fromkeys(part.alt for part in parts)
    return Words(" ".join(alts), " ".join(captions))


def save(drawn: Axes | Figure, path: str | Path) -> None:
    """Write a figure as PNG, SVG or PDF, by the path's suffix; whole or not at all.

    The ground is white: a file is looked at anywhere.

    Examples
    --------
    >>> import tempfile
    >>> from sagl.report import save
    >>> from sagl.report.figures import draw_cluster_sizes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "sizes.png"
    ...     save(draw_cluster_sizes([0, 0, 1]), path)
    ...     path.stat().st_size > 1000
    True
    """
    path = Path(path)
    content = _rendered(drawn, check_format(path), "white")
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def check_format(path: Path) -> str:
    """The format that a path asks for, refused unless it can be written."""
    form = path.suffix.lower().removeprefix(".")
    if form not in _METADATA:
        raise ValueError(
            f"{path}: a figure is written as .png, .svg or .pdf, not {path.suffix!r}"
        )
    return form


def picture(drawn: Axes | Figure, name: str) -> Picture:
    """A figure with its words, as SVG and PNG. ``name`` is unique on the page.

    Examples
    --------
    >>> from sagl.report import picture
    >>> from sagl.report.figures import draw_cluster_sizes
    >>> drawn = picture(draw_cluster_sizes([0, 0, 1]), "sizes")
    >>> drawn.svg[:4]
    '<svg'
    """
    if not re.fullmatch(r"[A-Za-z][\w-]*", name, re.ASCII):
        raise ValueError(
            f"a picture's name is made of letters, digits and hyphens; got {name!r}"
        )
    alt, caption = words(drawn)
    svg = _inline(_rendered(drawn, "svg", "none").decode("utf-8"), name, alt)
    return Picture(svg, _rendered(drawn, "png", "white"), alt, caption)


def _figure(drawn: Axes | Figure) -> Figure:
    return drawn.figure if hasattr(drawn, "spines") else drawn  # type: ignore


def _rendered(drawn: Axes | Figure, form: str, ground: str) -> bytes:
    canvas = load("matplotlib.backends.backend_agg").FigureCanvasAgg(_figure(drawn))
    file = io.BytesIO()
    settings = {"dpi": _DOTS_PER_INCH, "facecolor": ground, "metadata": _METADATA[form]}
    with warnings.catch_warnings():
        # Emoji and rare scripts are drawn as boxes; saying so helps nobody.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        canvas.print_figure(file, format=form, **settings)
    return file.getvalue()


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
