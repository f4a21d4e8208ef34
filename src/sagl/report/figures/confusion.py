"""Known classes against the clusters matched to them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics.cluster import contingency_matrix

from sagl.evaluation.metrics import Label, coded_pair, match_clusters
from sagl.report import style

_MOST_NAMES = 40
_MOST_CELLS = 1 << 24


@style.styled
def draw_confusion(
    y_true: ArrayLike, y_pred: ArrayLike, ax: style.Axes | None = None
) -> style.Axes:
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
    """
    shares, classes, clusters = _matched_shares(y_true, y_pred)
    n_classes, n_clusters = shares.shape
    ax = style.axes_or_new(ax, 4.9)
    style.cells(ax, shares, 0, 1, "share of the class", power=0.5)
    class_names = [str(name) for name in classes]
    _name_side(ax.yaxis, class_names)
    _name_side(ax.xaxis, [str(name) for name in clusters])
    if 12 < n_clusters <= _MOST_NAMES:
        ax.tick_params(axis="x", rotation=90)
    if max(n_classes, n_clusters) > 25:
        ax.tick_params(labelsize=style.SMALL - 1.5)
    style.name_axes(ax, "cluster, matched to the class of its row", "class")
    recall = shares.diagonal()
    worst = int(np.argmin(recall))
    off = shares.copy()
    np.fill_diagonal(off, -1)
    a, b = np.unravel_index(np.argmax(off), off.shape)
    mixed = style.plain(class_names[b], 24) if b < len(recall) else "no class"
    return style.describe(
        ax,
        alt=f"Image of {n_classes:,} classes against {n_clusters:,} matched clusters. "
        f"On average {recall.sum() / n_classes:.1%} of a class is in its cluster; "
        f"least for {style.plain(class_names[worst], 24)}, {recall[worst]:.1%}.",
        caption=f"Classes against matched clusters. Largest confusion: {off[a, b]:.1%} "
        f"of {style.plain(class_names[a], 24)} is in the cluster of {mixed}.",
    )


def _matched_shares(
    y_true: ArrayLike, y_pred: ArrayLike
) -> tuple[NDArray[np.float64], list[Label], list[Label]]:
    """Share of each class in each cluster, and the classes and clusters in order."""
    true, pred = coded_pair(y_true, y_pred)
    if len(true.names) * len(pred.names) > _MOST_CELLS:
        raise ValueError(
            f"{len(true.names):,} classes by {len(pred.names):,} clusters are too many "
            "to draw"
        )
    matching = match_clusters(y_true, y_pred)
    cluster_of = {name: cluster for cluster, name in matching.items()}
    # Matched ones first, classes in their order: pairs lie on the diagonal.
    classes = sorted(true.names, key=lambda name: name not in cluster_of)
    clusters = [cluster_of[name] for name in classes if name in cluster_of]
    clusters += [name for name in pred.names if name not in matching]
    counts = contingency_matrix(true.codes, pred.codes)
    rows = [true.names.index(name) for name in classes]
    columns = [pred.names.index(name) for name in clusters]
    shares = counts[np.ix_(rows, columns)] / counts.sum(axis=1)[rows, None]
    return shares, classes, clusters


def _name_side(axis: Any, names: list[str]) -> None:
    if len(names) <= _MOST_NAMES:
        style.name_ticks(axis, range(len(names)), names, limit=18)
    else:  # so many names would be unreadable: count instead
        shown = range(0, len(names), -(-len(names) // 10))
        style.name_ticks(axis, shown, [f"{i + 1}." for i in shown])
