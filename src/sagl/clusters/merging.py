"""In which order clusters are merged: each time those whose merger loses least.

What is lost is information, in nats, of the label-free criterion of the search
(``sagl.search.score``): that between a sample's cluster and the one that a view
predicts for it, and between those of neighbours. Its tables are counted once; a merger
adds up rows and columns. This is the agglomerative information bottleneck of Slonim and
Tishby (1999), but that the loss counts relative to the entropy that the merger takes
away: else the smallest clusters go first, whoever they are near to.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from sagl.nn.neighbours import unit_rows
from sagl.search.score import guesses, neighbour_tables
from sagl.search.space import Space

_MOST_PAIRS = 496  # of clusters, that are considered at a time: all of 32 clusters
_HINT = 0.05  # how much the nearness of means counts beside the tables
_SHARPNESS = 3.0  # of that nearness, per cosine


class Tables(NamedTuple):
    """Joint distributions of two clusters, (T, C, C), and how each counts, (T,)."""

    p: Tensor
    weight: Tensor


def tables_of(space: Space, labels: Tensor, n_clusters: int) -> Tables:
    """Those of the criterion: of each view's predictions, and of neighbours."""
    views = guesses(space.scoring_fits(n_clusters), labels, n_clusters)
    counted = [*zip(space.weights, views, strict=True)]
    counted += neighbour_tables(space, labels, n_clusters)
    p = torch.stack([table.double() / table.sum() for _, table in counted])
    weight = torch.tensor([weight for weight, _ in counted], dtype=torch.float64)
    return Tables(p.cpu(), weight)


def information(tables: Tables) -> float:
    """All that the tables tell, in nats."""
    p, weight = tables
    margins = _xlogx(p.sum(dim=1)).sum(dim=1) + _xlogx(p.sum(dim=2)).sum(dim=1)
    return float(weight @ (_xlogx(p).sum(dim=(1, 2)) - margins))


class Cuts(NamedTuple):
    """For every number of clusters, which of them each cluster is in, and nats told."""

    places: dict[int, Tensor]  # (C,) each; clusters are numbered by the first in each
    told: dict[int, float]


def with_nearness(tables: Tables, means: Tensor, sizes: Tensor) -> Tables:
    """The same and, where they tell nothing, how near the clusters' means are.

    Clusters that are never mistaken for each other may be merged in any order by the
    tables; then those go first whose means, (C, d), point into one direction.
    """
    unit = unit_rows(means.double().cpu())
    near = (_SHARPNESS * unit @ unit.T).exp() * sizes[:, None] * sizes
    weight = torch.cat([tables.weight, torch.tensor([_HINT], dtype=torch.float64)])
    return Tables(torch.cat([tables.p, (near / near.sum())[None]]), weight)


def cuts(tables: Tables, guide: Tables | None = None) -> Cuts:
    """All of them; they nest. Mergers lose least of the ``guide``, if there is one."""
    C = tables.p.shape[1]
    guide = tables if guide is None else guide
    place = torch.arange(C)
    found = Cuts({C: place}, {C: information(tables)})
    for k in range(C - 1, 1, -1):
        one, other = _cheapest(guide)
        tables, guide = _merged(tables, one, other), _merged(guide, one, other)
        place = torch.where(place == other, one, place)
        place = place - (place > other).long()
        found.places[k], found.told[k] = place, information(tables)
    return found


def _cheapest(tables: Tables) -> tuple[int, int]:
    """The pair whose merger loses least for its size, the smaller number first."""
    p = (tables.weight[:, None, None] * tables.p).sum(dim=0)
    one, other = torch.triu_indices(len(p), len(p), offset=1)
    if len(one) > _MOST_PAIRS:
        size = p.sum(dim=0) + p.sum(dim=1)
        shared = (p + p.T)[one, other] / (size[one] * size[other]).clamp_min(1e-12)
        best = shared.topk(_MOST_PAIRS).indices
        one, other = one[best], other[best]
    margin = p.sum(dim=0) + p.sum(dim=1)
    a, b = margin[one], margin[other]
    apart = _xlogx(a + b) - _xlogx(a) - _xlogx(b)  # entropy that a merger loses
    lost = loss(tables, one, other) / apart.clamp_min(1e-12)
    first = int(lost.argmin())
    return int(one[first]), int(other[first])


def loss(tables: Tables, one: Tensor, other: Tensor) -> Tensor:
    """Nats that each merger would lose, (m,)."""
    total = torch.zeros(len(one), dtype=torch.float64)
    for p, weight in zip(*tables, strict=True):
        total += weight * (_apart(p, one, other) + _apart(p.T, one, other))
        total -= weight * _counted_twice(p, one, other)
    return total


def _apart(p: Tensor, one: Tensor, other: Tensor) -> Tensor:
    """Nats lost by adding up two rows, (m,)."""
    rows, margin = _xlogx(p).sum(dim=1), p.sum(dim=1)
    cells = rows[one] + rows[other] - _xlogx(p[one] + p[other]).sum(dim=1)
    margins = _xlogx(margin)[one] + _xlogx(margin)[other]
    return cells - margins + _xlogx(margin[one] + margin[other])


def _counted_twice(p: Tensor, one: Tensor, other: Tensor) -> Tensor:
    """What the four cells of a pair lose to rows, and to columns, beyond what is so."""
    cells = [p[one, one], p[one, other], p[other, one], p[other, other]]
    a, b, c, d = cells
    apart = sum(_xlogx(cell) for cell in cells)
    rows = _xlogx(a + c) + _xlogx(b + d)
    columns = _xlogx(a + b) + _xlogx(c + d)
    # Rows lose apart − rows, columns apart − columns; together they lose apart − whole.
    counted: Tensor = apart - rows - columns + _xlogx(a + b + c + d)
    return counted


def _merged(tables: Tables, one: int, other: int) -> Tables:
    p = tables.p.clone()
    p[:, one] += p[:, other]
    p[:, :, one] += p[:, :, other]
    kept = [k for k in range(p.shape[1]) if k != other]
    return Tables(p[:, kept][:, :, kept], tables.weight)


def _xlogx(p: Tensor) -> Tensor:
    product: Tensor = torch.special.xlogy(p, p)
    return product
