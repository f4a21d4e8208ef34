"""The picture of the documentation: digits on a map, coloured by their cluster.

    python examples/digits_map.py docs/digits.png

Needs the extra ``report``. Samples are placed by t-SNE of their features, so that what
looks alike is near; colours are the clusters that sagl found. No label is used.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from sklearn.preprocessing import normalize, scale

from sagl import SAGL, Views
from sagl.experiments.digits import load
from sagl.report.embedding import embed
from sagl.report.style import axes_or_new, cluster_colours, describe

SHOWN = 550  # more lie on top of each other
SIDE = 0.012  # half of a picture's, as a share of the map's width


def draw(views: Views, labels: np.ndarray) -> Axes:
    """Samples as the pictures that they are, in their clusters' colours."""
    features = [normalize(scale(h.astype(float))) for _, h in views.items()]
    points = embed(np.hstack(features))
    points = (points - points.min(axis=0)) / np.ptp(points, axis=0)
    colours = cluster_colours(labels.max() + 1)
    ax = axes_or_new(None, 4.4)
    for row in np.linspace(0, len(labels) - 1, SHOWN).astype(int):
        draw_digit(ax, views["pixels"][row], points[row], colours[labels[row]])
    ax.set(xlim=(-2 * SIDE, 1 + 2 * SIDE), ylim=(-2 * SIDE, 1 + 2 * SIDE))
    ax.axis("off")
    words = f"{len(labels)} handwritten digits in {labels.max() + 1} clusters"
    return describe(ax, alt=words, caption=words)


def draw_digit(ax: Axes, pixels: np.ndarray, place: np.ndarray, colour: str) -> None:
    """Ink in a colour, on clear ground."""
    size = round(pixels.size**0.5)
    ink = np.empty((size, size, 4))
    ink[..., :3] = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    ink[..., 3] = pixels.reshape(size, size)
    (x, y), high = place, 1.4 * SIDE  # the map is wider than high
    extent = (x - SIDE, x + SIDE, y - high, y + high)
    ax.imshow(ink, extent=extent, aspect="auto", interpolation="bilinear")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, nargs="?", default=Path("digits.png"))
    out = parser.parse_args().out
    views = load().train
    model = SAGL(n_clusters=10, random_state=0).fit(views)
    # Without ground, so that it stands on light pages and on dark ones.
    draw(views, model.labels_).figure.savefig(out, dpi=200, facecolor="none")
    print(f"{out} ({out.stat().st_size / 1000:.0f} kB)")
