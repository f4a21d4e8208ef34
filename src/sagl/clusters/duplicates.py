"""Near-duplicates: samples much nearer to each other than neighbours are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from sagl.nn.cells import kmeans_centres, nearest_centre
from sagl.nn.missing import present_in, without_nan
from sagl.nn.neighbours import nearest_neighbours, unit_rows
from sagl.nn.network import Network
from sagl.training.feed import Feed
from sagl.views import Views

NONE = -1
_NEIGHBOURS = 10
# A copy is nearer than so much of the distance to the last of these neighbours,
_SHARE = 0.3
# which, where they are copies themselves, is taken for so much of what it usually is.
_LEAST = 1 / 3
_MOST_TOGETHER = 20_000  # samples that are all compared with each other
_MOST_OF_ONE = 5_000  # of one cluster likewise; of more those in one cell of it,
_PER_CELL = 2_000  # in the mean
_SEEN = 64  # samples per cell that k-means looks at


@torch.no_grad()
def duplicate_groups(
    network: Network, views: Views, labels: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The group of near-duplicates of each sample, or −1, (n,).

    Two samples are near-duplicates if in all views together their distance is a small
    share of that to the tenth neighbour of either. Of many samples those of one cluster
    are compared, of a large cluster those of one cell of it: what lies across a border
    may be missed. Groups are numbered from 0 in the order of their first sample.
    """
    n = len(views)
    device = next(network.parameters()).device
    feed = Feed(views, network, device, resident_bytes=0)
    parts = [np.arange(n)]
    if n > _MOST_TOGETHER:
        clusters = (np.flatnonzero(labels == k) for k in np.unique(labels))
        parts = [rows for cluster in clusters for rows in _cells(feed, cluster)]
    pairs = [rows[_near_pairs(feed(rows))] for rows in parts if len(rows) > _NEIGHBOURS]
    one, other = np.concatenate(pairs, axis=1) if pairs else np.empty((2, 0), np.int64)
    linked = coo_array((np.ones(len(one)), (one, other)), shape=(n, n))
    return _numbered(connected_components(linked, directed=False)[1])


def _cells(feed: Feed, rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Rows of one cluster in parts that are few enough to be compared."""
    if len(rows) <= _MOST_OF_ONE:
        return [rows]

    def read(part: NDArray[np.int64]) -> Tensor:
        return torch.cat([without_nan(unit_rows(h)) for h in feed(part)], dim=1)

    count = -(-len(rows) // _PER_CELL)
    sample = np.linspace(0, len(rows) - 1, min(_SEEN * count, len(rows))).astype(int)
    centres = kmeans_centres(read(rows[sample]), count)
    parts = np.array_split(rows, count)  # never all of them in memory
    cells = torch.cat([nearest_centre(read(part), centres) for part in parts])
    return [rows[(cells == k).cpu().numpy()] for k in range(count)]


def _near_pairs(features: Sequence[Tensor]) -> NDArray[np.int64]:
    """Positions of pairs of near-duplicates, (2, m).

    Where samples miss views, a pair is compared if one of them has all views that the
    other has, in those.
    """
    present = present_in(features)
    if present is None:
        return _near_in(features).cpu().numpy()
    found = []
    for views in torch.unique(present, dim=0):
        rows = torch.nonzero((present | ~views).all(dim=1)).flatten()
        if len(rows) <= _NEIGHBOURS:
            continue
        chosen = zip(features, views.tolist(), strict=True)
        pairs = rows[_near_in([h[rows] for h, there in chosen if there])]
        of_these = (present[pairs] == views).all(dim=2).any(dim=0)
        found.append(pairs[:, of_these].cpu().numpy())
    return np.concatenate([np.empty((2, 0), np.int64), *found], axis=1)


def _near_in(features: Sequence[Tensor]) -> Tensor:
    x = torch.cat([unit_rows(h) for h in features], dim=1)
    near, cosines = nearest_neighbours(x, _NEIGHBOURS)
    distance = (2 - 2 * cosines).clamp_min(0).sqrt()  # (n, k)
    last = distance[:, -1]
    last = last.clamp_min(_LEAST * last.median())
    limit = _SHARE * torch.minimum(last[:, None], last[near])
    row, place = torch.nonzero(distance <= limit, as_tuple=True)
    return torch.stack([row, near[row, place]])


def _numbered(component: NDArray[np.int32]) -> NDArray[np.int64]:
    """Numbers from 0 for what has at least two members, −1 for the rest."""
    _, first, which, counts = np.unique(
        component, return_index=True, return_inverse=True, return_counts=True
    )
    groups = np.full(len(counts), NONE, dtype=np.int64)
    several = np.flatnonzero(counts > 1)
    several = several[np.argsort(first[several])]
    groups[several] = np.arange(len(several))
    return groups[which]
