"""The labelled map: all samples in the plane, clusters by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sagl.report import style

_MOST_VECTOR_POINTS = 300  # more are drawn as pixels, also in SVG and PDF
_RINGS, _TURNS = 14, 16  # places that are tried around the middle of a cluster
_LONGEST = 32  # characters of a name
_ROOM = 2.0  # pixels around a name that stay free

Box = tuple[float, float, float, float]  # left, bottom, right, top in pixels


@style.styled
def draw_map(
    points: ArrayLike,
    labels: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    ax: style.Axes | None = None,
) -> style.Axes:
    """Samples in the plane, coloured by cluster, each cluster with its name.

    Names stand at the middle of their clusters, or near it with a line to it where
    another name is there; none lies over another. Large clusters come first; a name for
    which there is no room is left out, and the caption counts them.

    Parameters
    ----------
    points : array-like of shape (n, 2)
        Places, for instance :func:`sagl.report.embedding.embed` of ``transform``.
    labels : array-like of shape (n,)
        Clusters, counted from 0.
    names : sequence of str, optional
        What they are called, by number; numbers by default.
    ax : matplotlib axes, optional

    Examples
    --------
    >>> import numpy as np
    >>> from sagl.report.figures import draw_map
    >>> places = np.array([[0.0, 0.0], [0.1, 0.0], [1.0, 1.0]])
    >>> ax = draw_map(places, [0, 0, 1], names=["cats", "dogs"])
    >>> [text.get_text() for text in ax.texts]
    ['cats', 'dogs']
    """
    xy, codes = np.asarray(points, np.float64), np.asarray(labels)
    if xy.shape != (len(codes), 2) or not len(codes) or not np.isfinite(xy).all():
        raise ValueError(
            f"expected a finite place in the plane per label; got shape {xy.shape} for "
            f"{len(codes)} labels"
        )
    if codes.dtype.kind not in "iu" or codes.min() < 0:
        raise ValueError("labels must be whole numbers, counted from 0")
    n_clusters = max(int(codes.max()) + 1, len(names or ()))
    if names is None:
        names = [str(k) for k in range(n_clusters)]
    if len(names) < n_clusters:
        raise ValueError(f"{len(names)} names for {n_clusters} clusters")
    ax = style.axes_or_new(ax, 5.4)
    palette = np.array(style.cluster_colours(n_clusters))
    order = np.random.default_rng(0).permutation(len(codes))
    ax.scatter(
        xy[order, 0],
        xy[order, 1],
        s=float(np.clip(9000 / len(codes), 0.6, 18)),
        c=palette[codes[order]],
        linewidths=0,
        alpha=0.85,
        rasterized=len(codes) > _MOST_VECTOR_POINTS,
    )
    ax.set(xticks=[], yticks=[])
    ax.set_aspect("equal", adjustable="datalim")
    ax.spines[:].set_visible(False)
    sizes = np.bincount(codes, minlength=n_clusters)
    used = [int(k) for k in np.argsort(-sizes, kind="stable") if sizes[k]]
    left_out = len(used) - _place_names(ax, xy, codes, used, names)
    unnamed = f" {left_out} have no room for their name." if left_out else ""
    return style.describe(
        ax,
        alt=f"Map of {len(codes):,} samples in {len(used)} clusters: "
        + ", ".join(style.plain(names[k], _LONGEST) for k in used[:12])
        + (" and others." if len(used) > 12 else "."),
        caption=f"{len(codes):,} samples in {len(used)} clusters; near ones are "
        f"alike.{unnamed}",
    )


def _place_names(
    ax: style.Axes,
    xy: NDArray[np.float64],
    codes: NDArray[Any],
    clusters: Sequence[int],
    names: Sequence[str],
) -> int:
    """Write as many names as there is room for; returns how many."""
    figure: Any = ax.figure
    style.load("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
    figure.draw_without_rendering()  # where the axes are is known only now
    frame = ax.bbox.extents
    taken: list[Box] = []
    effects = style.load("matplotlib.patheffects")
    for k in clusters:
        middle = _middle(xy[codes == k])
        text = ax.text(middle[0], middle[1], style.plain(names[k], _LONGEST))
        text.set(weight="bold", ha="center", va="center", color=style.ink(ax))
        halo = effects.withStroke(linewidth=2.2, foreground="white")
        text.set_path_effects([halo])
        box = text.get_window_extent()
        across, up = box.width / 2 + _ROOM, box.height / 2 + _ROOM
        start = ax.transData.transform(middle)
        lift = _lift(ax.transData.transform(xy[codes == k])[:, 1], up)
        place = next(
            (
                (x, y)
                for x, y in _around(start, lift, across, up)
                if _free((x - across, y - up, x + across, y + up), taken, frame)
            ),
            None,
        )
        if place is None:
            text.remove()
            continue
        x, y = place
        taken.append((x - across, y - up, x + across, y + up))
        at = ax.transData.inverted().transform(place).tolist()
        text.set_position((at[0], at[1]))
        if np.hypot(x - start[0], y - start[1]) > max(up, lift + 1):
            line = ax.plot(*zip(middle, at, strict=True), color=style.ink(ax))
            line[0].set(linewidth=0.6, alpha=0.7, zorder=2.5)
    return len(taken)


def _middle(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sample nearest to the median: a name lies among its samples."""
    median = np.median(places, axis=0)
    nearest: NDArray[np.float64] = places[((places - median) ** 2).sum(axis=1).argmin()]
    return nearest


def _lift(heights: NDArray[np.float64], up: float) -> float:
    """How far above its middle a name stands: above a cluster that it would hide."""
    low, high = np.quantile(heights, [0.05, 0.95])
    return float(high - low) / 2 + 1.4 * up if high - low < 4 * up else 0.0


def _around(
    start: NDArray[np.float64], lift: float, across: float, up: float
) -> Iterator[tuple[float, float]]:
    """The middle itself or above it, then rings around it, wider than high."""
    yield float(start[0]), float(start[1]) + lift
    for ring in range(1, _RINGS + 1):
        for turn in range(_TURNS):
            angle = 2 * np.pi * turn / _TURNS + np.pi / 2
            reach = ring * up
            yield (
                float(start[0] + (reach + across * ring / _RINGS) * np.cos(angle)),
                float(start[1] + reach * np.sin(angle)),
            )


def _free(box: Box, taken: Sequence[Box], frame: Any) -> bool:
    """Whether a name fits into the axes and lies over no other."""
    left, bottom, right, top = box
    if left < frame[0] or bottom < frame[1] or right > frame[2] or top > frame[3]:
        return False
    return all(
        right <= other[0] or left >= other[2] or top <= other[1] or bottom >= other[3]
        for other in taken
    )
