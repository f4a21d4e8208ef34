"""How good a partition is, without knowing the truth.

    score = I(label; label predicted from a view without the sample)   mean of views
          + I(label; label of a neighbour in a view)                   mean of views

in nats. Arbitrary labels cannot be predicted, so both are zero; one big cluster tells
nothing, so both are zero; a cluster split in two without reason is confused with its
other half and gains nothing. The first term asks for what linear models of every
view agree on, the second for what the neighbourhood agrees on: each alone can be
cheated by a partition that only a linear model, or only a graph, would draw. The linear
models are stiff ones (``Space.scoring_fits``), not those by which clusters are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from sagl.search.ridge import Ridge
from sagl.search.space import Space, one_hot


class Score(NamedTuple):
    """Both terms, in nats, and how often a view's prediction is the label."""

    linear: float
    graph: float
    agreement: float

    @property
    def total(self) -> float:
        return self.linear + self.graph


@torch.no_grad()
def score(space: Space, labels: Tensor, n_clusters: int) -> Score:
    """Score of labels 0 … C − 1, (n,)."""
    tables = guesses(space.scoring_fits(n_clusters), labels, n_clusters)
    weighed = list(zip(space.weights, tables, strict=True))
    linear = sum(weight * mutual_information(table) for weight, table in weighed)
    agreed = sum(weight * float(table.trace()) for weight, table in weighed)
    graph = neighbour_information(space, labels, n_clusters)
    return Score(linear, graph, agreed / len(labels))


def neighbour_information(space: Space, labels: Tensor, n_clusters: int) -> float:
    """What the label of a neighbour tells of the label, in nats.

    Part of it a neighbour in the network's attention graph, once there is one: few and
    near. The rest a neighbour in each view alone, mean over views: more and wider. Not
    in the graph along which the search draws clusters: what was drawn along a graph
    must not be judged by it.
    """
    tables = neighbour_tables(space, labels, n_clusters)
    return sum(weight * mutual_information(table) for weight, table in tables)


def neighbour_tables(
    space: Space, labels: Tensor, n_clusters: int
) -> list[tuple[float, Tensor]]:
    """What joins each two clusters, (C, C), symmetric, with a weight; one in all."""
    tables = [
        neighbour_table(place, place.of(labels), n_clusters) for place in space.alone()
    ]
    A = space.attention
    if A is None:
        return list(zip(space.weights, tables, strict=True))
    once = joint(labels[A.rows()], labels[A.cols], n_clusters, A.entries)
    theirs = space.config.attention
    weights = [(1 - theirs) * weight for weight in space.weights]
    return [(theirs, once + once.T), *zip(weights, tables, strict=True)]


def graph_information(space: Space, labels: Tensor, n_clusters: int) -> float:
    """What the label of a neighbour in the graph tells of the label, in nats."""
    return mutual_information(neighbour_table(space, labels, n_clusters))


def neighbour_table(space: Space, labels: Tensor, n_clusters: int) -> Tensor:
    """How much nearness in the graph joins each two clusters, (C, C), symmetric."""
    one, other, weight = space.pairs
    # Several times as fast as by brackets.
    labels_of = labels.index_select
    once = joint(labels_of(0, one), labels_of(0, other), n_clusters, weight)
    return once + once.T


def split_information(
    space: Space, labels: Tensor, n_clusters: int, second: Tensor
) -> Tensor:
    """``neighbour_information`` if one cluster were split, for each cluster, (C,).

    ``second`` says which samples, (n,) of bool, would leave their cluster. One table of
    all halves holds the tables of all splits: only the row and the column of the split
    cluster differ from those of ``labels``.
    """
    C = n_clusters
    halves = labels + C * second
    information = torch.zeros(C, dtype=torch.float64, device=labels.device)
    for weight, table in neighbour_tables(space, halves, 2 * C):
        table = table.double()
        p = (table / table.sum()).reshape(2, C, 2, C)
        whole, parts = p.sum(dim=(0, 2)), p.sum(dim=2)  # (C, C); (2, C, C)
        k = torch.arange(C, device=labels.device)
        within = p[:, k, :, k]  # (C, 2, 2): between the halves of one cluster
        # Entropies of the table and of its margins, each times −1.
        cells = _xlogx(whole).sum() + 2 * (
            _xlogx(parts).sum(dim=(0, 2)) - _xlogx(whole).sum(dim=1)
        )
        cells -= 2 * (_xlogx(parts[:, k, k]).sum(dim=0) - _xlogx(whole[k, k]))
        cells += _xlogx(within).sum(dim=(1, 2)) - _xlogx(whole[k, k])
        margin, halved = whole.sum(dim=1), parts.sum(dim=2)  # (C,); (2, C)
        margins = _xlogx(margin).sum() + _xlogx(halved).sum(dim=0) - _xlogx(margin)
        information += weight * (cells - 2 * margins)
    return information


def _xlogx(p: Tensor) -> Tensor:
    product: Tensor = torch.special.xlogy(p, p)
    return product


def confusion(space: Space, labels: Tensor, n_clusters: int) -> Tensor:
    """How many samples of cluster j (column) are predicted as i, mean over views."""
    return space.mean(guesses(space.fits, labels, n_clusters))


def guesses(fits: Sequence[Ridge], labels: Tensor, n_clusters: int) -> list[Tensor]:
    """Per view, counts of (predicted without the sample, label), (C, C)."""
    Y = one_hot(labels, n_clusters)
    share = Y.mean(dim=0)
    # An empty cluster has no share to be predicted: nobody is put into it.
    predicted = [(fit.left_out(Y - share) + share).argmax(dim=1) for fit in fits]
    return [
        counted(fit, fit.of(p), labels, n_clusters)
        for fit, p in zip(fits, predicted, strict=True)
    ]


def counted(fit: Ridge, predicted: Tensor, labels: Tensor, n_clusters: int) -> Tensor:
    """Counts of (predicted, label), (C, C), of the samples that have the view.

    Scaled up, where some miss it, to as many as there are samples.
    """
    table = joint(predicted, fit.of(labels), n_clusters)
    return table if fit.there is None else table * (len(labels) / fit.rows)


def best_of(
    space: Space, partitions: Sequence[Tensor], n_clusters: int
) -> tuple[int, list[Score]]:
    """The position of the partition with the highest score, and all scores."""
    scores = [score(space, labels, n_clusters) for labels in partitions]
    return max(range(len(scores)), key=lambda i: scores[i].total), scores


def mutual_information(joint: Tensor) -> float:
    """Of two variables, in nats, from a table of their counts, (C, C)."""
    p = joint.double() / joint.sum()
    expected = p.sum(dim=1, keepdim=True) * p.sum(dim=0)
    seen = p > 0
    return float((p[seen] * (p[seen] / expected[seen]).log()).sum())


def joint(a: Tensor, b: Tensor, n: int, weights: Tensor | None = None) -> Tensor:
    """Counts, or sums of weights, of each pair of labels 0 … n − 1: (n, n)."""
    return torch.bincount(a * n + b, weights=weights, minlength=n * n).reshape(n, n)
