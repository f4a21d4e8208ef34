"""The block-diagonal picture of a sparse graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from sagl.evaluation.graphs import sparsity_ratio, square_csr, weight_inside
from sagl.evaluation.metrics import coded
from sagl.report import style

_CELLS = 360  # along each side; about the pixels there are
_MOST_LINES = 30  # clusters that are set apart by lines
_APART = 0.045  # of the side, between two numbers of clusters


@style.styled
def draw_graph(
    graph: Any,
    labels: ArrayLike,
    *,
    name: str | None = None,
    cells: int = _CELLS,
    ax: style.Axes | None = None,
) -> style.Axes:
    """Who attends to whom, samples sorted by cluster.

    The picture is a grid of at most 360 × 360 cells, each coloured by the weight in it
    compared with attention spread evenly over all samples, on a logarithmic scale. It
    therefore means the same for 100 samples, where a cell is one pair, and for a
    million. The matrix is never made dense. ``name`` is that of the view.
    """
    csr = square_csr(graph)
    inside = weight_inside(csr, labels)  # refuses labels of another length
    clusters = coded(labels, "labels")
    n = csr.shape[0]
    density = block_density(csr, clusters.codes, cells)
    ax = style.axes_or_new(ax, 5.0)
    high = density.max() or 1.0
    # What is fainter than three decades looks like nothing.
    low = max(density.min(where=density > 0, initial=high), high / 1e3)
    high = high if high > low else low * 10
    cmap = style.load("matplotlib").colormaps[style.HEAT]
    image = ax.imshow(
        np.ma.masked_equal(density, 0),
        cmap=cmap.with_extremes(bad=cmap(0.0)),
        norm=style.load("matplotlib.colors").LogNorm(low, high),
        extent=(0, n, n, 0),
        interpolation="nearest",
    )
    edges = np.concatenate([[0], np.cumsum(np.bincount(clusters.codes))])
    for axis in (ax.xaxis, ax.yaxis):
        style.name_ticks(axis, (edges[:-1] + edges[1:]) / 2, clusters.names, 14, _APART)
    for edge in edges[1:-1] if len(edges) <= _MOST_LINES else ():
        for line in (ax.axhline, ax.axvline):
            line(edge, color="white", alpha=0.4, linewidth=0.5)
    bar = style.colour_bar(ax, image, "attention, times that of an even spread")
    style.log_numbers(bar.ax.yaxis)
    subject = "graph" if name is None else f"graph of {name}"
    title = subject[0].upper() + subject[1:]
    across = "sample attended to, by cluster"
    style.name_axes(ax, across, "sample, by cluster", title)
    return style.describe(
        ax,
        alt=f"The {subject} as an image, {n:,} samples sorted by "
        f"{len(clusters.names):,} clusters: {inside:.1%} of the weight lies in the "
        "blocks on the diagonal.",
        caption=f"The {subject}, sorted by cluster. {sparsity_ratio(csr):.3%} of all "
        f"pairs are linked, {csr.nnz / n:,.1f} per sample; {inside:.1%} of the weight "
        "stays inside the clusters.",
    )


def block_density(
    graph: Any, codes: NDArray[np.integer[Any]], cells: int = _CELLS
) -> NDArray[np.float64]:
    """Weight per pair in each cell of a grid, times n: 1 is an even spread.

    Rows and columns are sorted by ``codes``.
    """
    n = graph.shape[0]
    side = min(n, cells)
    cell = np.arange(n) * side // n
    held = np.bincount(cell)
    samples = np.argsort(codes, kind="stable")
    mean = csr_array((1 / held[cell], (cell, samples)), shape=(side, n))
    density: NDArray[np.float64] = n * (mean @ csr_array(graph) @ mean.T).toarray()
    return density
