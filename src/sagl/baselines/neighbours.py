"""Nearest neighbours by cosine similarity, and batches of neighbouring pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from sagl.baselines.features import random_batches, unit_rows

# Similarities held at once: 128 MB of float32, whatever the number of samples.
_BLOCK_SCORES = 1 << 25


def side_by_side(features: Sequence[Tensor]) -> Tensor:
    """All views in one matrix, (n, d), each view with rows of length one.

    The cosine similarity of two rows is then the mean of those in the views.
    """
    return torch.cat([unit_rows(h) for h in features], dim=1)


@torch.no_grad()
def nearest_neighbours(
    x: Tensor, count: int, block_scores: int = _BLOCK_SCORES
) -> Tensor:
    """The rows most similar to each row, itself left out: positions (n, count).

    Every pair is compared, block by block of rows, in O(n · d + block_scores) memory.
    The most similar row comes first.
    """
    n = len(x)
    if not 1 <= count < n:
        raise ValueError(
            f"{count} neighbours of each of {n} samples: from 1 to {n - 1} are possible"
        )
    x = unit_rows(x)
    block = max(1, block_scores // n)
    found = torch.empty((n, count), dtype=torch.int64, device=x.device)
    for start in range(0, n, block):
        similarity = x[start : start + block] @ x.T  # (block, n)
        similarity.diagonal(offset=start).fill_(-torch.inf)
        found[start : start + block] = similarity.topk(count, dim=1).indices
    return found


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
