"""How much the neighbours of a sample have to say beside the linear maps.

Both predict the clusters that were found, each sample left out: the ridge regressions
of all views, and the nearest samples of each view. Whoever errs less is trusted more:

    weight of a vote = 4 · (errors of the regressions / errors of the neighbours)⁴

in deviations of the network's representations. Where groups are cut out by planes, the
neighbours err several times as often and are hardly heard; where groups have other
shapes, they decide.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from sagl.nn.neighbours import nearest_neighbours
from sagl.nn.voters import Voters, ballot
from sagl.partition.anneal import Sizes, evidence_of_maps
from sagl.partition.space import NEIGHBOURS, Space

_FULL = 4.0  # weight of those who err as often as the regressions
_POWER = 4
_MOST = 8.0  # beyond it a vote is all but alone
_LEAST = 0.1  # below it nobody needs to be asked
_PRECISION = torch.float16  # of the features that a run keeps


class Election(NamedTuple):
    """Voters, and what they say of each other: their votes, own ones left out."""

    voters: Voters
    votes: Tensor  # (n, C)


@torch.no_grad()
def elect(
    space: Space, labels: Tensor, n_clusters: int, sizes: Sizes = "even"
) -> Election | None:
    """The samples of the space as voters for labels (n,); None if not worth asking.

    The weight is that of representations of deviation one.
    """
    count = min(NEIGHBOURS, space.neighbours, len(space) - 1)
    votes = space.mean(
        [
            ballot(nearest_neighbours(x, count)[0], labels, n_clusters)
            for x in space.views
        ]
    )
    maps = evidence_of_maps(space, labels, n_clusters, sizes)
    # Where neighbours are of two minds, the maps decide, as they will in predictions.
    ratio = _errors(maps, labels) / _errors(votes + 1e-6 * maps, labels)
    weight = min(_MOST, _FULL * ratio**_POWER)
    if weight < _LEAST:
        return None
    features = [x.to(_PRECISION) for x in space.views]
    voters = Voters(features, labels, list(space.weights), count, weight)
    return Election(voters, votes)


def _errors(p: Tensor, labels: Tensor) -> float:
    """How many samples are put elsewhere; never quite none."""
    return float((p.argmax(dim=1) != labels).sum()) + 0.5
