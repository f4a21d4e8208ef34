"""t-SNE at three levels: what training does to one view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sagl.evaluation.metrics import Coded, coded
from sagl.report import style

_MOST_VECTOR_POINTS = 300  # more are drawn as pixels, also in SVG and PDF
_APART = (0.15, 0.09)  # of the panel's width and height, between two numbers
_MOST_NUMBERS = 24


@style.styled
def draw_tsne_levels(
    levels: Mapping[str, ArrayLike],
    labels: ArrayLike,
    *,
    name: str | None = None,
    axes: Sequence[style.Axes] | None = None,
) -> list[style.Axes]:
    """Scatters of the same samples at several levels, coloured by cluster.

    A level is a name and places, (n, 2): for instance
    :func:`sagl.report.embedding.tsne` of :func:`sagl.report.embedding.three_levels`.
    The last panel carries the clusters' numbers where they do not collide, so that
    colour is not the only way to tell them apart. ``name`` is that of the view.
    """
    clusters = coded(labels, "labels")
    n = len(clusters.codes)
    points = {level: np.asarray(xy, np.float64) for level, xy in levels.items()}
    if not points:
        raise ValueError("no levels given; at least one is needed")
    for level, xy in points.items():
        if xy.shape != (n, 2) or not np.isfinite(xy).all():
            raise ValueError(
                f"{level}: expected {n} finite points in the plane, one per label; got "
                f"shape {xy.shape}"
            )
    if axes is None:
        axes = style.panels(1, len(points), height=2.55 if len(points) > 1 else 5.0)
    if len(axes) != len(points):
        raise ValueError(f"{len(axes)} axes for {len(points)} levels")
    palette = np.array(style.cluster_colours(len(clusters.names)))
    # In a fixed random order: no cluster covers the others for being last.
    order = np.random.default_rng(0).permutation(n)
    for ax, (level, xy) in zip(axes, points.items(), strict=True):
        ax.scatter(
            xy[order, 0],
            xy[order, 1],
            s=float(np.clip(6000 / n, 0.8, 14)),
            c=palette[clusters.codes[order]],
            linewidths=0,
            alpha=0.9,
            rasterized=n > _MOST_VECTOR_POINTS,
        )
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(True)
        style.name_axes(ax, "t-SNE 1", "t-SNE 2" if ax is axes[0] else "", level)
    _number_clusters(axes[-1], list(points.values())[-1], clusters, palette)
    of = "" if name is None else f" of {style.plain(name, 40)}"
    style.describe(
        axes[0],
        alt=f"Scatters of {n:,} samples{of} by t-SNE, coloured by "
        f"{len(clusters.names):,} clusters: {', '.join(points)}.",
        caption=f"t-SNE{of}, coloured by cluster: {', '.join(points)}. Distances "
        "between far groups mean nothing.",
    )
    return list(axes)


def _number_clusters(
    ax: style.Axes, xy: NDArray[np.float64], clusters: Coded, palette: NDArray[Any]
) -> None:
    """A number at each cluster's median, large clusters first, none over another."""
    low, span = xy.min(axis=0), np.ptp(xy, axis=0)
    placed: list[NDArray[np.float64]] = []
    sizes = np.bincount(clusters.codes)
    for code in np.argsort(-sizes, kind="stable"):
        middle = np.median(xy[clusters.codes == code], axis=0)
        at = (middle - low) / np.where(span > 0, span, 1)
        if any((np.abs(at - other) < _APART).all() for other in placed):
            continue
        if len(placed) == _MOST_NUMBERS:
            break
        placed.append(at)
        ink, ground = style.text_on(palette[code]), palette[code]
        box = {"boxstyle": "round,pad=0.15", "lw": 0.4, "ec": ink, "fc": ground}
        name = style.plain(clusters.names[code], 6)
        where: Any = {"ha": "center", "va": "center", "size": style.SMALL - 1}
        ax.text(middle[0], middle[1], name, color=ink, bbox=box, **where)
