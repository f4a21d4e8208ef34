"""Soft labels that sharpen while linear maps and the graph learn to predict them.

Per step, for soft labels Y, (n, C):

    z = weighted mean over views of the ridge prediction that leaves the sample out
    p = z + ½ A Y, scaled to unit deviation per cluster            (eq. rep)
    Y = softmax(p / temperature), clusters brought to equal shares  (eqs. prob, div)

which is the network's own step with its linear maps solved in closed form. A starts as
the graph of the features; from the middle on half of it is the graph of the linear
features z, as in the paper. Hot, all labels are alike; as the temperature falls the
clusters that are easiest to predict condense first.

That makes clusters of about equal sizes. Where sizes are to be free, p is turned into
log odds, which are fair to small clusters, and nothing is brought to equal shares.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from sagl.nn.sparse import CSR, multiply
from sagl.search.constraints import Constraints
from sagl.search.evidence import log_odds
from sagl.search.space import (
    Space,
    affinity,
    deviations,
    mean_of,
    one_hot,
    row_stochastic,
)

Sizes = Literal["balanced", "any"]  # of clusters

_BALANCE_ROUNDS = 3  # of Sinkhorn's, in each step: clusters need not be equal
_NEW_GRAPHS = 3  # how often the graph of z is built anew: once finds worse clusters
# Columns of z, all views together: of more, the graph of 1,000 clusters takes longer
# than all else.
_WIDE = 1024
_AGAIN = 0.4  # of the steps are enough for labels that are there


@torch.no_grad()
def anneal(
    space: Space,
    Y: Tensor,
    *,
    steps: int | None = None,
    hot: float | None = None,
    first_graph: float = 0.4,
    sizes: Sizes = "balanced",
    held: Constraints | None = None,
) -> Tensor:
    """Labels (n,) that soft labels Y, (n, C), condense to.

    ``first_graph`` is the share of the steps after which the graph of z joins; what is
    ``held`` is kept to in each step.
    """
    steps = steps or space.config.steps
    hot, cold = hot or space.config.hot, space.config.cold
    first = round(first_graph * steps)
    graph = space.graph
    every = max(1, -(-(steps - first) // _NEW_GRAPHS))
    for step in range(steps):
        centred = Y - Y.mean(dim=0)
        targets = centred if held is None else centred * held.emphasis[:, None]
        if step >= first and (step - first) % every == 0:
            said, graph = _with_graph(space, targets)
        else:
            said = space.said(fit.left_out(targets) for fit in space.fits)
        p = _representations(space, said, graph, centred, sizes, targets)
        temperature = hot * (cold / hot) ** (step / steps)
        if held is None:
            Y = _sinkhorn_assignment(p, temperature, sizes)
            continue
        Y = _sinkhorn_assignment(held.within(p), temperature, sizes, held.shares)
        Y = held.kept_apart(Y)
    return Y.argmax(dim=1) if held is None else held.decided(Y)


def reanneal(
    space: Space,
    labels: Tensor,
    n_clusters: int,
    *,
    steps: int | None = None,
    sizes: Sizes = "balanced",
    held: Constraints | None = None,
) -> Tensor:
    """Labels (n,) that labels (n,) condense to when they are warmed up a little."""
    config = space.config
    return anneal(
        space,
        smoothed(space, labels, n_clusters),
        hot=config.warm,
        steps=steps or round(_AGAIN * config.steps),
        first_graph=0.0,
        sizes=sizes,
        held=held,
    )


class Start(NamedTuple):
    """A partition to anneal, and which of its clusters are new, (k,)."""

    labels: Tensor
    new: Tensor


@torch.no_grad()
def anneal_new(
    space: Space,
    starts: Sequence[Start],
    near: Tensor,
    graph: CSR,
    *,
    steps: int,
    sizes: Sizes = "balanced",
) -> list[Tensor]:
    """Labels (n,) that each start condenses to, the other clusters predicted as before.

    ``near`` and ``graph`` are the :func:`outlook` from the partition that the starts
    were made of. Only what predicts the new clusters is fitted anew in each step, for
    all starts in one product: that is what makes it much cheaper than ``anneal``.
    """
    new = [start.new for start in starts]
    n_clusters = near.shape[1]
    Y = [smoothed(space, start.labels, n_clusters) for start in starts]
    warm, cold = space.config.warm, space.config.cold
    for step in range(steps):
        moving = torch.cat([y[:, k] for y, k in zip(Y, new, strict=True)], dim=1)
        centred = moving - moving.mean(dim=0)
        said = space.said(fit.left_out(centred) for fit in space.fits)
        p = _representations(space, said, graph, centred, sizes)
        parts = torch.split(p, [len(k) for k in new], dim=1)
        temperature = warm * (cold / warm) ** (step / steps)
        Y = [
            _sinkhorn_assignment(near.index_copy(1, k, part), temperature, sizes)
            for k, part in zip(new, parts, strict=True)
        ]
    return [y.argmax(dim=1) for y in Y]


@torch.no_grad()
def outlook(
    space: Space, labels: Tensor, n_clusters: int, sizes: Sizes = "balanced"
) -> tuple[Tensor, CSR]:
    """p, (n, C), and the graph that annealing would have near labels (n,)."""
    Y = smoothed(space, labels, n_clusters)
    centred = Y - Y.mean(dim=0)
    said, graph = _with_graph(space, centred)
    return _representations(space, said, graph, centred, sizes), graph


def smoothed(space: Space, labels: Tensor, n_clusters: int) -> Tensor:
    """Labels as soft labels that annealing can still change; −1 is any cluster."""
    given_up = space.config.smoothing
    unknown = None
    if space.present is not None:
        unknown, labels = (labels < 0)[:, None], labels.clamp_min(0)
    Y = (1 - given_up) * one_hot(labels, n_clusters) + given_up / n_clusters
    return Y if unknown is None else Y.masked_fill_(unknown, 1 / n_clusters)


def _representations(
    space: Space,
    said: Tensor,
    graph: CSR,
    centred: Tensor,
    sizes: Sizes,
    targets: Tensor | None = None,
) -> Tensor:
    """What is ``said``, (n, C), and the neighbours' targets, brought to one scale.

    Of unit deviation, or as log odds.
    Log odds are taken as they are at the lowest temperature. ``targets`` are what
    others learn from, if not the centred soft labels.
    """
    targets = centred if targets is None else targets
    p = said + space.config.graph_weight * multiply(graph, targets)
    if sizes == "any":
        above = centred - centred.amin(dim=0)
        member = above / above.amax(dim=0).clamp_min(1e-9)
        return space.config.cold * log_odds(p, member)
    return p / deviations(p)


def _sinkhorn_assignment(
    p: Tensor, temperature: float, sizes: Sizes, shares: Tensor | None = None
) -> Tensor:
    """softmax; for balanced sizes, shares brought close to equal (Sinkhorn's steps).

    Or to ``shares``, (C,), of sum one.
    """
    Y = torch.softmax(p / temperature, dim=1)
    if sizes == "any":
        return Y
    n, C = Y.shape
    of_rows = Y.new_ones(n)
    for _ in range(_BALANCE_ROUNDS):  # scales of columns and rows, not their products
        of_columns = 1 / (of_rows @ Y * (C / n)).clamp_min_(1e-12)
        if shares is not None:
            of_columns *= C * shares
        of_rows = 1 / (Y @ of_columns)
    return Y.mul_(of_columns).mul_(of_rows[:, None])


def _with_graph(space: Space, targets: Tensor) -> tuple[Tensor, CSR]:
    """What the views say, (n, C), and half the graph of the features, half that of the
    linear features z."""
    scaled = []
    widest = max(_WIDE // len(space.fits), 1)

    def noted() -> Iterator[Tensor]:
        for fit in space.fits:
            z = fit.left_out(targets)
            scaled.append(_leading(z / deviations(fit.of(z)), widest))
            yield z

    said = space.said(noted())
    learned = affinity(space.side_by_side(scaled), space.neighbours, space.present)
    return said, mean_of(space.graph, row_stochastic(learned))


def _leading(z: Tensor, width: int) -> Tensor:
    """z, (n, C), along its longest directions: of many clusters the rest is noise."""
    if z.shape[1] <= width:
        return z
    directions: Tensor = torch.linalg.eigh(z.T @ z)[1]
    return z @ directions[:, -width:]
