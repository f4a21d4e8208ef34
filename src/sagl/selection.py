"""Choices without labels: which partition is best, how many clusters, which views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from sagl.checks import integer
from sagl.environment import pick_device
from sagl.progress import progress as show_progress
from sagl.search.candidates import search
from sagl.search.config import SearchConfig
from sagl.search.count import ClusterCount, count_clusters, default_candidates
from sagl.search.score import Score, best_of, score
from sagl.search.space import Space
from sagl.training.feed import scales_of, standardized
from sagl.views import Views

__all__ = [
    *("ViewChoice", "ViewSubset", "best_partition", "choose_views"),
    *("estimate_n_clusters", "label_free_score"),
]

_MAX_SAMPLES = 5000
_MAX_COUNTED = 3000
_LEAST_COUNTED = 32
# A view is added if the score becomes so many times better.
_WORTH_A_VIEW = 1.03


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
    scores.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sagl.selection import best_partition
    >>> X, y = make_blobs(200, n_features=6, centers=3, random_state=0)
    >>> views = {"left": X[:, :3], "right": X[:, 3:]}
    >>> best, scores = best_partition(views, [np.roll(y, 1), y])
    >>> best
    1
    """
    if not partitions:
        raise ValueError("partitions is empty; give at least one")
    space, codes, n_clusters = _space_and_codes(views, partitions, max_samples)
    return best_of(space, codes, n_clusters)


def estimate_n_clusters(
    views: Any,
    candidates: Sequence[int] | None = None,
    *,
    max_samples: int = _MAX_COUNTED,
    random_state: int = 0,
    device: str = "cpu",
    progress: bool = False,
) -> ClusterCount:
    """How many clusters there are, with an interval and the curve behind it.

    For every candidate several partitions are found on resamples; the number is best
    whose partitions tell much (``label_free_score``) and agree with each other. It
    counts clusters of about equal size: a long tail of small ones is not seen.

    Parameters
    ----------
    views : Views or what ``Views`` takes
    candidates : sequence of int, optional
        By default every number from 2 to 12, then steps of 14 %, up to 256 and to one
        cluster per eight samples.
    max_samples : int, default=3000
        Of more samples a random choice is looked at.
    random_state : int, default=0
    device : str, default="cpu"
    progress : bool, default=False
        Show a progress bar on stderr.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sagl.selection import estimate_n_clusters
    >>> X, _ = make_blobs(300, n_features=8, centers=5, random_state=3)
    >>> count = estimate_n_clusters({"left": X[:, :4], "right": X[:, 4:]}, range(2, 9))
    >>> count.best, count.sure
    (5, True)
    """
    views, rows = _drawn_rows(views, max_samples, random_state, missing=True)
    if len(rows) < _LEAST_COUNTED:
        raise ValueError(
            f"{len(rows)} samples are too few to count clusters in; it takes "
            f"{_LEAST_COUNTED}: say how many clusters there are"
        )
    if candidates is None:
        candidates = default_candidates(len(rows))
    else:
        candidates = _checked_candidates(candidates, len(rows))
    on, scales = pick_device(device), scales_of("auto")  # as in the search
    features = [h for kind in scales for h in standardized(views, rows, on, kind)]
    with show_progress(len(candidates), "clusters", "tried", progress) as bar:
        return count_clusters(
            features,
            candidates,
            random_state,
            on_candidate=lambda _: bar.update(),
            scales=len(scales),
        )


class ViewSubset(NamedTuple):
    """Some views, and the score, on all views, of the clusters found with them."""

    names: tuple[str, ...]
    score: Score


class ViewChoice(NamedTuple):
    """The views to use, and all subsets that were tried, the best first."""

    best: tuple[str, ...]
    tried: tuple[ViewSubset, ...]


def choose_views(
    views: Any,
    n_clusters: int,
    *,
    max_samples: int = _MAX_COUNTED,
    random_state: int = 0,
    device: str = "cpu",
    progress: bool = False,
) -> ViewChoice:
    """Which views to use: more of them can hurt.

    Each view is tried alone; to the best one others are added, the most helpful first,
    as long as each makes the score 3 % better: a view costs time, and one that is noise
    gains a little by chance. The clusters that a subset finds are judged by
    ``label_free_score`` on all views, also on those that had no part in them.

    Parameters are those of :func:`estimate_n_clusters`.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sagl.selection import choose_views
    >>> X, _ = make_blobs(200, n_features=6, centers=3, random_state=0)
    >>> noise = np.random.default_rng(0).normal(size=(200, 5))
    >>> choice = choose_views({"good": X, "noise": noise}, n_clusters=3)
    >>> choice.best, len(choice.tried)
    (('good',), 3)
    """
    views, rows = _drawn_rows(views, max_samples, random_state)
    C = integer("n_clusters", n_clusters, 2)
    if len(rows) // 2 < C:
        raise ValueError(
            f"n_clusters={C} is too many for {len(rows)} samples; the most is "
            f"{len(rows) // 2}"
        )
    features = standardized(views, rows, pick_device(device))
    near = SearchConfig().neighbours(len(rows), C)
    every_view = Space(features, near)
    names = views.names
    tried: list[ViewSubset] = []
    most = len(names) * (len(names) + 1) // 2

    with show_progress(most, "views", "tried", progress) as bar:

        def attempt(chosen: Sequence[int]) -> float:
            space = Space([features[i] for i in chosen], near)
            candidates, _ = search(space, C, random_state, starts=1)
            judged = score(every_view, candidates[0].labels, C)
            tried.append(ViewSubset(tuple(names[i] for i in chosen), judged))
            bar.update()
            return judged.total

        best: list[int] = []
        reached = 0.0
        while len(best) < len(names):
            rest = [i for i in range(len(names)) if i not in best]
            totals = {i: attempt(sorted([*best, i])) for i in rest}
            top = max(totals, key=totals.__getitem__)
            if best and totals[top] < _WORTH_A_VIEW * reached:
                break
            best, reached = sorted([*best, top]), totals[top]
    tried.sort(key=lambda subset: -subset.score.total)
    return ViewChoice(tuple(names[i] for i in best), tuple(tried))


def _checked_candidates(candidates: Sequence[int], n_samples: int) -> list[int]:
    counts = sorted({integer("a candidate", count, 2) for count in candidates})
    if len(counts) < 3:
        raise ValueError(f"give three or more different candidates; got {counts}")
    if counts[-1] > n_samples // 2:
        raise ValueError(
            f"{counts[-1]} clusters are too many for {n_samples} samples; "
            f"the most is {n_samples // 2}"
        )
    return counts


def _space_and_codes(
    views: Any, partitions: Sequence[ArrayLike], max_samples: int
) -> tuple[Space, list[torch.Tensor], int]:
    views, rows = _drawn_rows(views, max_samples, 0, missing=True)
    coded = [_codes(labels, len(views)) for labels in partitions]
    n_clusters = max(int(codes.max()) for codes in coded) + 1
    features = standardized(views, rows, torch.device("cpu"))
    space = Space(features, SearchConfig().neighbours(len(rows), n_clusters))
    return space, [torch.from_numpy(c[rows]) for c in coded], n_clusters


def _drawn_rows(
    given: Any, most: int, seed: int, *, missing: bool = False
) -> tuple[Views, NDArray[np.int64]]:
    """The views, checked, and which of their rows are looked at, in order."""
    views = given if isinstance(given, Views) else Views(given)
    views.check_values(missing=missing)
    views.check_spread()
    return views, np.sort(np.random.default_rng(seed).permutation(len(views))[:most])


def _codes(labels: ArrayLike, n: int) -> NDArray[np.int64]:
    names = np.asarray(labels)
    if names.shape != (n,):
        raise ValueError(
            f"labels have the shape {names.shape}; there must be one for each of the "
            f"{n} samples"
        )
    return np.unique(names, return_inverse=True)[1].astype(np.int64)
