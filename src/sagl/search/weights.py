"""How much each view counts: by what its neighbours know of the other views' clusters.

A good view sees what the others see. Clusters are found in each view alone; a view in
which neighbours are of one cluster, by the judgement of the others, gets more weight.
What a view says of its own clusters proves nothing: a view of few, coarse features is
always sure of itself.
"""

from __future__ import annotations

import math

from torch import Tensor

from sagl.search.anneal import WARM, anneal, smoothed
from sagl.search.proposals import centre_labels
from sagl.search.score import graph_information
from sagl.search.space import Space

_STARTS = 2  # partitions that each view is asked for
_STEPS = 30
_POWER = 3  # of what is not known of the others; higher, the best view rules alone
_LEAST = 0.2  # of all there is to know: differences below it are no reason to prefer


def weigh(space: Space, n_clusters: int, seed: int) -> Space:
    """The space with its views weighted."""
    views = range(len(space.views))
    if len(views) == 1:
        return space
    alone = [space.only(view) for view in views]
    partitions = [
        [_clusters(place, n_clusters, seed + start) for start in range(_STARTS)]
        for place in alone
    ]
    unknown = []
    for view in views:
        known = [
            graph_information(alone[view], labels, n_clusters)
            for other in views
            if other != view
            for labels in partitions[other]
        ]
        unknown.append(math.log(n_clusters) - sum(known) / len(known))
    least = _LEAST * math.log(n_clusters)
    return space.weighted([max(nats, least) ** -_POWER for nats in unknown])


def _clusters(space: Space, n_clusters: int, seed: int) -> Tensor:
    start = smoothed(centre_labels(space, n_clusters, seed % 2**32), n_clusters)
    return anneal(space, start, hot=WARM, steps=_STEPS)
