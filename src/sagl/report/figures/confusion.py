"""Known classes against the clusters matched to them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics.cluster import contingency_matrix

from sagl.evaluation.metrics import Label, coded_pair, match_clusters
from sagl.report import style

_MOST_CELLS = 1 << 24


@style.styled
def draw_confusion(
    y_true: ArrayLike, y_pred: ArrayLike, ax: style.Axes | None = None
) -> style.Axes:
    """Share of each class that each cluster holds, clusters in the classes' order.

    Clusters are matched one to one with classes as for the accuracy, so the diagonal
    is what counts as right; clusters left over come last. As many as fit are named; up
    to 12 have their shares written in.
    """
    shares, classes, clusters = _matched_shares(y_true, y_pred)
    n_classes, n_clusters = shares.shape
    ax = style.axes_or_new(ax, 4.9)
    style.cells(ax, shares, classes, clusters, label="share of the class", power=0.5)
    style.name_axes(ax, "cluster, matched to the class of its row", "class")
    names = [style.plain(name, 24) for name in classes]
    recall = shares.diagonal()
    worst = int(np.argmin(recall))
    off = shares.copy()
    np.fill_diagonal(off, -1)
    a, b = np.unravel_index(np.argmax(off), off.shape)
    mixed = names[b] if b < len(recall) else "no class"
    return style.describe(
        ax,
        alt=f"Image of {n_classes:,} classes against {n_clusters:,} matched clusters. "
        f"On average {recall.sum() / n_classes:.1%} of a class is in its cluster; "
        f"least for {names[worst]}, {recall[worst]:.1%}.",
        caption=f"Classes against matched clusters. Largest confusion: {off[a, b]:.1%} "
        f"of {names[a]} is in the cluster of {mixed}.",
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
