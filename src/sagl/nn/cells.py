"""Cells of keys: all that score above a bound, without looking at most of them.

Keys are grouped into cells, each a ball with a centre and a radius. No key of a cell
scores more with a query q than

    q · centre + |q| · radius

so a cell whose bound is not above what a key needs to count is passed over, and nothing
is lost. What a key needs is known from the cells nearest to the query: within 1 of the
best score for attention (see ``nn/support.py``), the k-th best for k neighbours. A row
is certified when all that was passed over was passed over for that reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from sagl.nn.attention import score_scale
from sagl.nn.network import Linear
from sagl.nn.sparse import CSR
from sagl.nn.support import project_survivors, true_positions

_PER_CELL = 256  # keys, in the mean
_PER_CENTRE = 64  # keys that k-means looks at
_ROUNDS = 8  # of k-means: cells need not be the best ones
_PROBED = 16  # cells, where neighbours need not be the very nearest
_BLOCK_ROWS = 512  # queries that are looked at together
_TILE = 1 << 20  # scores at once: 4 MiB of float32, which stay in the cache
_SLACK = 1e-5  # of |q| · |key|: what rounding may add to a score


class Graph(NamedTuple):
    """A sparse attention graph, and which of its rows are certified to be exact."""

    weights: CSR  # (m, n)
    certified: Tensor  # (m,) bool


Task = Callable[[], tuple[Tensor, ...]]
Spread = Callable[[Sequence[Task]], Iterable[tuple[Tensor, ...]]]


def _one_by_one(tasks: Sequence[Task]) -> Iterator[tuple[Tensor, ...]]:
    return (task() for task in tasks)


@torch.no_grad()
def attention_by_cells(
    linear: Linear,
    alpha: float,
    self_loops: bool,
    *,
    most: int | None = None,
    spread: Spread = _one_by_one,
) -> Graph:
    """The attention graph of samples among each other, (n, n), without all its scores.

    Parameters
    ----------
    linear : Linear
        Of one view, or of all together.
    alpha : float
        Above 1: with softmax every score has weight.
    self_loops : bool
        Whether samples may attend to themselves.
    most : int, optional
        Cells that each block of queries looks into at most; rows for which that was
        not enough are not certified. Without, all rows are exact.
    spread : callable
        Computes tasks and gives their results in order; several processes may share
        them.
    """
    n = len(linear.keys)
    factor = score_scale(linear.keys.shape[1], alpha)
    queries = linear.queries * factor
    if linear.gate is not None:
        queries = queries * linear.gate[:, None]
    own = None if self_loops else torch.arange(n, device=queries.device)
    cells = Cells(linear.keys)

    def projected(block: Tensor) -> tuple[Tensor, ...]:
        found = cells.above(queries, block, _one_below, most=most, exclude=own)
        b = len(block)
        tops = found.scores.new_full((b,), -torch.inf)
        tops.scatter_reduce_(0, found.rows, found.scores, "amax")
        below = found.scores - tops[found.rows]
        inside, weights = project_survivors(found.rows, below, b, alpha)
        rows = block[found.rows[inside]]
        return rows, found.keys[inside], weights, block[found.certified]

    tasks = [partial(projected, block) for block in cells.blocks(queries)]
    parts = zip(*map(list, spread(tasks)), strict=True)
    rows, cols, weights, exact = (torch.cat(part) for part in parts)
    order = (rows * n + cols).argsort()
    crow = torch.cat([rows.new_zeros(1), torch.bincount(rows, minlength=n).cumsum(0)])
    certified = torch.zeros(n, dtype=torch.bool, device=rows.device)
    certified[exact] = True
    return Graph(CSR(crow, cols[order], weights[order], (n, n)), certified)


def _one_below(scores: Tensor) -> Tensor:
    """What an entry of entmax needs: the largest weighs one at most."""
    return scores.amax(dim=1) - 1


class Above(NamedTuple):
    """What scores above the need of its row, by row, for a block of queries."""

    rows: Tensor  # (m,) rising, 0 … b − 1
    keys: Tensor  # (m,) positions of keys
    scores: Tensor  # (m,)
    certified: Tensor  # (b,) bool: nothing was passed over that could count


class Cells:
    """Keys (n, D) in cells.

    Parameters
    ----------
    keys : Tensor of shape (n, D)
    seed : int, default=0
        Of the k-means that makes the cells. It decides about speed, not results.
    """

    def __init__(self, keys: Tensor, seed: int = 0) -> None:
        count = max(1, len(keys) // _PER_CELL)
        centres = kmeans_centres(keys, count, seed)
        cell = nearest_centre(keys, centres)
        self.order = cell.argsort(stable=True)
        self.keys = keys[self.order]
        self.cell = cell[self.order]  # (n,) of each key in this order
        self.sizes = torch.bincount(cell, minlength=count)
        self.centres = _means(self.keys, self.cell, centres)
        away = (self.keys - self.centres[self.cell]).norm(dim=1)
        self.radii = away.new_zeros(count).scatter_reduce_(0, self.cell, away, "amax")
        self.longest = float(keys.norm(dim=1).max())

    def blocks(self, queries: Tensor) -> tuple[Tensor, ...]:
        """Positions of queries (m, D) that are near each other, each query once."""
        near = nearest_centre(queries, self.centres, by_product=True)
        return torch.split(near.argsort(stable=True), _BLOCK_ROWS)

    def above(
        self,
        queries: Tensor,
        block: Tensor,
        need: Callable[[Tensor], Tensor],
        *,
        least: int = 1,
        most: int | None = None,
        exclude: Tensor | None = None,
    ) -> Above:
        """The keys whose score with a query of the block is above its need.

        Parameters
        ----------
        queries : Tensor of shape (m, D)
        block : Tensor of shape (b,)
            Positions of the queries that are asked about.
        need : callable
            From scores of each query with some keys, (b, k), −inf where there is none,
            to a score that no key below counts with, (b,). More keys must not lower it.
        least : int, default=1
            How many keys ``need`` has to see.
        most : int, optional
            Cells that are looked into at most, the most promising first; without, as
            many as it takes, and every row is certified.
        exclude : Tensor of shape (m,), optional
            The one key that each query may not see.
        """
        q = queries[block]
        exclude = None if exclude is None else exclude[block]
        to_centres = q @ self.centres.T  # (b, cells)
        length = q.norm(dim=1, keepdim=True)
        bound = to_centres + length * (self.radii + _SLACK * self.longest)
        first = self._first(to_centres, least + (exclude is not None))
        seen = []
        for keys, x in self._scores(q, first):
            if exclude is not None:
                x.masked_fill_(keys == exclude[:, None], -torch.inf)
            seen.append(x)
        known = need(torch.cat(seen, dim=1))
        wanted = bound > known[:, None]  # (b, cells)
        visited = wanted.any(dim=0)
        if most is not None and int(visited.sum()) > most:
            promising = (bound - known[:, None]).amax(dim=0).topk(most).indices
            visited = torch.zeros_like(visited).index_fill_(0, promising, True)
        parts = []
        for keys, x in self._scores(q, visited):
            flat = true_positions(x > known[:, None])
            assert flat is not None
            rows = flat // x.shape[1]
            parts.append((rows, keys[flat - rows * x.shape[1]], x.view(-1)[flat]))
        rows, keys, scores = (torch.cat(part) for part in zip(*parts, strict=True))
        if exclude is not None:
            others = keys != exclude[rows]
            rows, keys, scores = rows[others], keys[others], scores[others]
        order = rows.argsort(stable=True)
        certified = ~(wanted & ~visited).any(dim=1)
        return Above(rows[order], keys[order], scores[order], certified)

    def _first(self, to_centres: Tensor, least: int) -> Tensor:
        """Cells, as (cells,) of bool, with the best centre of each query in them, and
        so many keys at least."""
        first = torch.zeros_like(self.sizes, dtype=torch.bool)
        first[to_centres.argmax(dim=1)] = True
        if int(self.sizes[first].sum()) < least:
            best = to_centres.mean(dim=0).argsort(descending=True)
            enough = int((self.sizes[best].cumsum(0) < least).sum()) + 1
            first[best[:enough]] = True
        return first

    def _scores(self, q: Tensor, cells: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Keys of some cells, (k,), and their scores, (b, k), a tile at a time."""
        places = cells[self.cell].nonzero().squeeze(1)
        for part in torch.split(places, max(1, _TILE // len(q))):
            yield self.order[part], q @ self.keys[part].T


@torch.no_grad()
def near_in_cells(x: Tensor, count: int, cells: int = _PROBED) -> tuple[Tensor, Tensor]:
    """As ``neighbours.nearest_neighbours``, for rows of length one; not all are found.

    A row is compared with those in so many cells, the nearest to its own, not with all
    n: what is near across the border of those is passed over.
    """
    n = len(x)
    centres = kmeans_centres(x, max(1, n // _PER_CELL))
    cell = nearest_centre(x, centres)
    order = cell.argsort(stable=True)
    members = torch.split(order, torch.bincount(cell, minlength=len(centres)).tolist())
    nearest = (centres @ centres.T - centres.square().sum(dim=1) / 2).argsort(
        dim=1, descending=True, stable=True
    )
    positions = torch.empty((n, count), dtype=torch.int64, device=x.device)
    cosines = x.new_empty(n, count)
    place = torch.full((n,), -1, device=x.device)  # of each row among those probed
    for own, others in zip(members, nearest.tolist(), strict=True):
        if len(own) == 0:
            continue
        probed = _enough(others, members, cells, count + 1)
        place[probed] = torch.arange(len(probed), device=x.device)
        keys = x[probed]
        for rows in torch.split(own, max(1, _TILE // len(probed))):
            similar = x[rows] @ keys.T
            there = torch.nonzero(place[rows] >= 0).flatten()
            similar[there, place[rows[there]]] = -torch.inf  # not oneself
            best = similar.topk(count, dim=1)
            positions[rows], cosines[rows] = probed[best.indices], best.values
        place[probed] = -1
    return positions, cosines


def _enough(
    ranked: list[int], members: Sequence[Tensor], cells: int, least: int
) -> Tensor:
    """Members of the first cells, of so many and of more until they are enough."""
    parts: list[Tensor] = []
    for i, k in enumerate(ranked):
        if i >= cells and sum(map(len, parts)) >= least:
            break
        parts.append(members[k])
    return torch.cat(parts)


def nearest_centre(x: Tensor, centres: Tensor, by_product: bool = False) -> Tensor:
    """The nearest centre of each row, (n,), or that of the largest product."""
    half = 0.0 if by_product else centres.square().sum(dim=1) / 2
    parts = torch.split(x, max(1, _TILE // len(centres)))
    return torch.cat([(part @ centres.T - half).argmax(dim=1) for part in parts])


def kmeans_centres(keys: Tensor, count: int, seed: int = 0) -> Tensor:
    """Centres, (count, D), by a few rounds on a part of the keys."""
    n, generator = len(keys), torch.Generator().manual_seed(seed)
    seen = torch.randperm(n, generator=generator)[: count * _PER_CENTRE].to(keys.device)
    sample = keys[seen]
    centres = sample[:count]
    for _ in range(_ROUNDS):
        centres = _means(sample, nearest_centre(sample, centres), centres)
    return centres


def _means(x: Tensor, cell: Tensor, centres: Tensor) -> Tensor:
    """The mean of each cell's rows; a cell without any keeps its centre."""
    sums = torch.zeros_like(centres).index_add_(0, cell, x)
    sizes = torch.bincount(cell, minlength=len(centres)).to(x)[:, None]
    return torch.where(sizes > 0, sums / sizes.clamp_min(1), centres)
