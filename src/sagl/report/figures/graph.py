"""The block-diagonal picture of a sparse graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sagl.evaluation.graphs import entries, sparsity_ratio, square_csr, weight_inside
from sagl.evaluation.labels import coded
from sagl.report.saving import describe
from sagl.report.style import (
    HEAT,
    axes_or_new,
    colour_bar,
    frame,
    load,
    name_axes,
    name_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CELLS = 360  # along each side; about the pixels there are
_MOST_LINES = 30  # clusters that are set apart by lines
_APART = 0.045  # of the side, between two numbers of clusters


def draw_graph(
    graph: Any,
    labels: ArrayLike,
    *,
    name: str | None = None,
    cells: int = _CELLS,
    ax: Axes | None = None,
) -> Axes:
    """Who attends to whom, samples sorted by cluster.

    The picture is a grid of at most 360 × 360 cells, each coloured by the weight in it
    compared with attention spread evenly over all samples, on a logarithmic scale. It
    therefore means the same for 100 samples, where a cell is one pair, and for a
    million. The matrix is never made dense.

    Parameters
    ----------
    graph : SciPy sparse matrix of shape (n, n)
        Weights, one row per sample.
    labels : array-like of shape (n,)
        The cluster of each sample.
    name : str, optional
        Of the view, for the title.
    cells : int, default=360
        Along each side at most.
    ax : Axes, optional
        Where to draw; by default a new figure.
    """
    csr = square_csr(graph)
    inside = weight_inside(csr, labels)  # refuses labels of another length
    found = coded(labels, "labels")
    n = csr.shape[0]
    density = block_density(csr, found.codes, cells)
    ax = axes_or_new(ax, height=5.0)
    colours = load("matplotlib.colors")
    positive = density[density > 0]
    low, high = (positive.min(), positive.max()) if positive.size else (0.1, 1.0)
    low = max(low, high / 1e3)  # what is fainter than three decades looks like nothing
    cmap = load("matplotlib").colormaps[HEAT]
    image = ax.imshow(
        np.ma.masked_equal(density, 0),
        cmap=cmap.with_extremes(bad=cmap(0.0)),
        norm=colours.LogNorm(low, high if high > low else low * 10),
        extent=(0, n, n, 0),
        interpolation="nearest",
    )
    _name_clusters(ax, found.codes, [str(name) for name in found.names])
    frame(ax)
    colour_bar(ax, image, "attention, times that of an even spread", log=True)
    ratio = sparsity_ratio(csr)
    what = "graph" if name is None else f"graph of {name}"
    name_axes(
        ax,
        "sample attended to, by cluster",
        "sample, by cluster",
        what[0].upper() + what[1:],
    )
    describe(
        ax,
        alt=f"The {what} as an image, {n:,} samples sorted by {len(found.names):,} "
        f"clusters: {inside:.1%} of the weight lies in the blocks on the diagonal.",
        caption=f"The {what}, sorted by cluster. {ratio:.3%} of all pairs are linked, "
        f"{csr.nnz / n:,.1f} per sample; {inside:.1%} of the weight stays inside the "
        "clusters.",
    )
    return ax


def block_density(
    graph: Any, codes: NDArray[np.integer[Any]], cells: int = _CELLS
) -> NDArray[np.float64]:
    """Weight per pair in each cell of a grid, times n: 1 is an even spread.

    Rows and columns are sorted by ``codes``; entries are counted some millions at a
    time, so memory does not grow with the graph.
    """
    n = graph.shape[0]
    side = min(n, cells)
    place = np.empty(n, dtype=np.int64)
    place[np.argsort(codes, kind="stable")] = np.arange(n)
    cell = place * side // n
    total = np.zeros(side * side)
    for rows, columns, weights in entries(graph):
        total += np.bincount(
            cell[rows] * side + cell[columns], weights, minlength=side * side
        )
    held = np.bincount(cell, minlength=side)
    density: NDArray[np.float64] = total.reshape(side, side) * n / np.outer(held, held)
    return density


def _name_clusters(ax: Axes, codes: NDArray[np.integer[Any]], names: list[str]) -> None:
    """Numbers in the middle of the blocks, where there is room for them."""
    edges = np.concatenate([[0], np.cumsum(np.bincount(codes))])
    n = edges[-1]
    if len(names) <= _MOST_LINES:
        for edge in edges[1:-1]:
            for line in (ax.axhline, ax.axvline):
                line(edge, color="white", alpha=0.4, linewidth=0.5)
    middles = (edges[:-1] + edges[1:]) / 2
    shown: list[int] = []
    for i in range(len(names)):
        if not shown or middles[i] - middles[shown[-1]] >= _APART * n:
            shown.append(i)
    for axis in (ax.xaxis, ax.yaxis):
        name_ticks(axis, middles[shown], [names[i] for i in shown], limit=14)
    if max(len(names[i]) for i in shown) > 2:
        ax.tick_params(axis="x", rotation=90)
