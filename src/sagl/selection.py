"""Choices without labels: how good a partition is, and which of several is best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from sagl.partition.score import Score, best_of, score
from sagl.partition.space import Space
from sagl.training.feed import standardization
from sagl.views import Views

_MAX_SAMPLES = 5000


def label_free_score(
    views: Any, labels: ArrayLike, *, max_samples: int = _MAX_SAMPLES
) -> Score:
    """How well views and neighbours predict labels that nobody has checked.

    ``linear`` is the mutual information, in nats, between a sample's label and what a
    ridge regression on one view says without having seen the sample (mean over views),
    ``graph`` that between the labels of neighbours, ``total`` their sum. Partitions of
    the same samples into the same number of clusters can be compared by it; the larger
    the better.

    Parameters
    ----------
    views : Views or what ``Views`` takes
    labels : array-like of shape (n_samples,)
        Any names of clusters.
    max_samples : int, default=5000
        Of more samples a fixed random choice is looked at.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_blobs
    >>> from sagl.selection import label_free_score
    >>> X, y = make_blobs(200, n_features=6, centers=3, random_state=0)
    >>> views = {"left": X[:, :3], "right": X[:, 3:]}
    >>> good = label_free_score(views, y)
    >>> bad = label_free_score(views, np.roll(y, 1))
    >>> good.total > 10 * bad.total
    True
    """
    space, codes, n_clusters = _space_and_codes(views, [labels], max_samples)
    return score(space, codes[0], n_clusters)


def best_partition(
    views: Any, partitions: Sequence[ArrayLike], *, max_samples: int = _MAX_SAMPLES
) -> tuple[int, list[Score]]:
    """The position of the best of several partitions by ``label_free_score``, and all
    scores."""
    if not partitions:
        raise ValueError("partitions is empty; give at least one")
    space, codes, n_clusters = _space_and_codes(views, partitions, max_samples)
    return best_of(space, codes, n_clusters)


def _space_and_codes(
    views: Any, partitions: Sequence[ArrayLike], max_samples: int
) -> tuple[Space, list[torch.Tensor], int]:
    views = views if isinstance(views, Views) else Views(views)
    views.check_values()
    views.check_spread()
    coded = [_codes(labels, len(views)) for labels in partitions]
    rows = np.sort(np.random.default_rng(0).permutation(len(views))[:max_samples])
    features = [
        torch.from_numpy(((h - shift) * scale).astype(np.float32))
        for h, (shift, scale) in zip(
            views.take(rows), standardization(views, "standard"), strict=True
        )
    ]
    n_clusters = max(int(codes.max()) for codes in coded) + 1
    return Space(features), [torch.from_numpy(c[rows]) for c in coded], n_clusters


def _codes(labels: ArrayLike, n: int) -> NDArray[np.int64]:
    names = np.asarray(labels)
    if names.shape != (n,):
        raise ValueError(
            f"labels have the shape {names.shape}; there must be one for each of the "
            f"{n} samples"
        )
    return np.unique(names, return_inverse=True)[1].astype(np.int64)
