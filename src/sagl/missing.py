"""Samples that miss views where that leaves nothing to go by: refusals in one line."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sagl.views import Views


def check_answered(views: Views, has_heads: bool) -> None:
    """Refuse what is no number, and what a network without heads cannot tell."""
    views.check_values(missing=True)
    _check_complete(views, has_heads)


def _check_complete(views: Views, has_heads: bool) -> None:
    """Refuse samples that miss a view, for a network that has no heads."""
    if views.present is None or has_heads:
        return
    row, view = (int(i) for i in np.argwhere(~views.present)[0])
    raise ValueError(
        f"view {views.names[view]!r} holds NaN at row {row}, in every column: the "
        "sample misses this view, for which only a fit with a search has an answer; "
        'leave such samples out, or fit with recipe="default" and refine=True'
    )


def check_fitted(views: Views, has_heads: bool) -> None:
    """Of checked values, refuse views without spread, and those that nothing joins."""
    views.check_spread()
    _check_complete(views, has_heads)
    if views.present is None:
        return
    together = views.present.T.astype(np.int64) @ views.present > 0
    linked = together[0]
    for _ in views.names:
        linked = together[linked].any(axis=0)
    if not linked.all():
        one, other = views.names[0], views.names[int(np.argmin(linked))]
        raise ValueError(
            f"no sample has both view {one!r} and view {other!r}, nor others that join "
            "them: nothing says which clusters of the one are which of the other; fit "
            "them apart"
        )


def check_enough(
    present: NDArray[np.bool_], names: Sequence[str], n_clusters: int
) -> None:
    """Refuse a view that fewer samples of the search have than there are clusters."""
    counts = present.sum(axis=0)
    least = int(counts.argmin())
    if counts[least] < n_clusters:
        raise ValueError(
            f"only {counts[least]} of the {len(present):,} samples that the search "
            f"looks at have view {names[least]!r}, fewer than the {n_clusters} "
            "clusters; leave it out"
        )
