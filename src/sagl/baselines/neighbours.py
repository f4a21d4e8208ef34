"""How many neighbours a sample has, and batches of neighbouring pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from sagl.baselines.features import random_batches, unit_rows


def side_by_side(features: Sequence[Tensor]) -> Tensor:
    """All views in one matrix, (n, d), each view with rows of length one.

    The cosine similarity of two rows is then the mean of those in the views.
    """
    return torch.cat([unit_rows(h) for h in features], dim=1)


def usable_neighbours(wanted: int, n: int, n_clusters: int) -> int:
    """At most n / C: a cluster of average size has no more members to offer."""
    return max(1, min(wanted, n // n_clusters, n - 1))


def neighbour_pairs(
    neighbours: Tensor, batch_size: int, seed: int, generator: torch.Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    """Shuffled batches without end: rows, and for each of them a random neighbour."""
    count = neighbours.shape[1]
    device = neighbours.device
    for rows in random_batches(len(neighbours), batch_size, seed, device):
        chosen = torch.randint(count, (len(rows),), generator=generator)
        yield rows, neighbours[rows, chosen.to(device)]
