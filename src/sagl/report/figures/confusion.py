"""Known classes against the clusters matched to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sagl.evaluation.labels import Coded, coded_pair
from sagl.evaluation.metrics import match_clusters
from sagl.report.heat_map import draw_cells
from sagl.report.saving import describe
from sagl.report.style import (
    SMALL,
    axes_or_new,
    colour_bar,
    name_axes,
    name_ticks,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NAMES = 40
_MOST_CELLS = 1 << 24


def draw_confusion(
    y_true: ArrayLike, y_pred: ArrayLike, ax: Axes | None = None
) -> Axes:
    """Share of each class that each cluster holds, clusters in the classes' order.

    Clusters are matched one to one with classes as for the accuracy, so the diagonal
    is what counts as right; clusters left over come last. Up to 40 classes are named,
    up to 12 have their shares written in; beyond, the image speaks for itself.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Known classes: whole numbers or strings.
    y_pred : array-like of shape (n,)
        Clusters.
    ax : Axes, optional
        Where to draw; by default a new figure.
    """
    shares, true, order = matched_shares(y_true, y_pred)
    n_classes, n_clusters = shares.shape
    ax = axes_or_new(ax, height=4.9)
    image = draw_cells(ax, shares, 0, 1, "{:.2f}", power=0.5)
    class_names = [str(name) for name in true.names]
    _name_side(ax.yaxis, class_names)
    _name_side(ax.xaxis, [str(name) for name in order])
    if n_clusters > 12 and n_clusters <= _MOST_NAMES:
        ax.tick_params(axis="x", rotation=90)
    if max(n_classes, n_clusters) > 25:
        ax.tick_params(labelsize=SMALL - 1.5)
    name_axes(ax, "cluster, matched to the class of its row", "class")
    colour_bar(ax, image, "share of the class")
    both = min(n_classes, n_clusters)
    recall = shares.diagonal()[:both]
    worst = int(np.argmin(recall))
    off = shares.copy()
    off[np.arange(both), np.arange(both)] = -1
    a, b = np.unravel_index(np.argmax(off), off.shape)
    mixed = plain(class_names[b], 24) if b < both else "no class"
    describe(
        ax,
        alt=f"Image of {n_classes:,} classes against {n_clusters:,} matched clusters. "
        f"On average {recall.sum() / n_classes:.1%} of a class is in its cluster; "
        f"least for {plain(class_names[worst], 24)}, {recall[worst]:.1%}.",
        caption="Classes against matched clusters. Largest confusion: "
        f"{off[a, b]:.1%} of {plain(class_names[a], 24)} is in the cluster of {mixed}.",
    )
    return ax


def matched_shares(
    y_true: ArrayLike, y_pred: ArrayLike
) -> tuple[NDArray[np.float64], Coded, list[Any]]:
    """Share of each class in each cluster, the classes, and the clusters in order."""
    true, pred = coded_pair(y_true, y_pred)
    shape = len(true.names), len(pred.names)
    if shape[0] * shape[1] > _MOST_CELLS:
        raise ValueError(
            f"{shape[0]:,} classes by {shape[1]:,} clusters are too many to draw"
        )
    counts = np.bincount(
        true.codes * shape[1] + pred.codes, minlength=shape[0] * shape[1]
    ).reshape(shape)
    matching = match_clusters(y_true, y_pred)
    cluster_of = {klass: cluster for cluster, klass in matching.items()}
    have = [name for name in true.names if name in cluster_of]
    have_not = [name for name in true.names if name not in cluster_of]
    classes = have + have_not  # those without a cluster below, to keep the diagonal
    order = [cluster_of[name] for name in have]
    order += [name for name in pred.names if name not in matching]
    rows = [true.names.index(name) for name in classes]
    columns = [pred.names.index(name) for name in order]
    shares = counts[np.ix_(rows, columns)] / counts.sum(axis=1)[rows, None]
    return shares, Coded(classes, true.codes), order


def _name_side(axis: Any, names: list[str]) -> None:
    if len(names) <= _MOST_NAMES:
        name_ticks(axis, range(len(names)), names, limit=18)
        return
    step = -(-len(names) // 10)
    shown = range(0, len(names), step)
    # So many names would be unreadable: count instead.
    name_ticks(axis, list(shown), [f"{i + 1}." for i in shown])
