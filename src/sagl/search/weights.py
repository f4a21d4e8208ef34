"""How much each view counts: by what its neighbours know of the other views' clusters.

A good view sees what the others see. Clusters are found in each view alone; a view in
which neighbours are of one cluster, by the judgement of the others, gets more weight.
What a view says of its own clusters proves nothing: a view of few, coarse features is
always sure of itself.
"""

from __future__ import annotations

import math
from functools import partial

from torch import Tensor

from sagl.search.anneal import reanneal
from sagl.search.proposals import centre_labels
from sagl.search.score import (
    graph_information,
    mutual_information,
    neighbour_table,
)
from sagl.search.space import Space
from sagl.training.distributed import spread

_STARTS = 2  # partitions that each view is asked for
_LEAST = 0.2  # of all there is to know: differences below it are no reason to prefer


def weigh(space: Space, n_clusters: int, seed: int) -> Space:
    """The space with its views weighted."""
    if space.n_views == 1:
        return space
    tasks = [
        partial(_clusters, space, view, n_clusters, seed + start)
        for view in range(space.n_views)
        for start in range(_STARTS)
    ]
    found = [labels for (labels,) in spread(tasks, space.views[0].device)]
    partitions = [found[i : i + _STARTS] for i in range(0, len(found), _STARTS)]
    unknown = []
    for place, owner in zip(space.alone(), space.owners, strict=True):
        known = [
            _information(place, labels, n_clusters)
            for view, of_view in enumerate(partitions)
            if view != owner
            for labels in of_view
        ]
        unknown.append(math.log(n_clusters) - sum(known) / len(known))
    least = _LEAST * math.log(n_clusters)
    return space.weighted(
        [max(nats, least) ** -space.config.view_power for nats in unknown]
    )


def _clusters(space: Space, view: int, n_clusters: int, seed: int) -> tuple[Tensor]:
    alone = space.only(view)
    labels = centre_labels(alone, n_clusters, seed % 2**32)
    return (alone.everywhere(reanneal(alone, labels, n_clusters)),)


def _information(place: Space, labels: Tensor, n_clusters: int) -> float:
    """What neighbours tell of labels, −1 where they are unknown."""
    own = place.of(labels)
    if bool((own >= 0).all()):
        return graph_information(place, own, n_clusters)
    with_unknown = neighbour_table(place, own + 1, n_clusters + 1)
    return mutual_information(with_unknown[1:, 1:])
