"""Samples that vote: the nearest ones, in the features, of a sample asked about.

The network attends to anchors of like z, so it sees what its linear maps see. Where
groups are not cut out by planes, the neighbours of a sample in the features themselves
know more; they are asked in each view alone, because what is near by chance in one view
is not in another.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Voters(NamedTuple):
    """Samples with known clusters, and how much their word counts.

    Attributes
    ----------
    features : list of Tensor (v, d)
        Standardised rows of length one, per view, in float16.
    labels : Tensor (v,)
        The cluster of each.
    shares : list of float
        How much each view counts; one in all.
    nearest : int
        How many of the nearest vote, in each view.
    weight : float
        What a vote of one mind adds to the representation of its cluster.
    """

    features: list[Tensor]
    labels: Tensor
    shares: list[float]
    nearest: int
    weight: float


def ballot(found: Tensor, labels: Tensor, n_clusters: int) -> Tensor:
    """The share of each cluster among voters at given positions, (n, k) to (n, C)."""
    n, k = found.shape
    votes = torch.zeros(n, n_clusters, dtype=torch.float64, device=labels.device)
    ones = votes.new_ones(()).expand(n, k)
    return votes.scatter_add_(1, labels[found], ones) / k
