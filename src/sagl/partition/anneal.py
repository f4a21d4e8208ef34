"""Soft labels that sharpen while linear maps and the graph learn to predict them.

Per step, for soft labels Y, (n, C):

    z = weighted mean over views of the ridge prediction that leaves the sample out
    p = z + ½ A Y, scaled to unit deviation per cluster            (eq. rep)
    Y = softmax(p / temperature), clusters brought to equal shares  (eqs. prob, div)

which is the network's own step with its linear maps solved in closed form. A starts as
the graph of the features; from the middle on half of it is the graph of the linear
features z, as in the paper. Hot, all labels are alike; as the temperature falls the
clusters that are easiest to predict condense first.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sagl.nn.sparse import CSR, multiply
from sagl.partition.space import Space, affinity, mean_of, one_hot, row_stochastic

GRAPH_WEIGHT = 0.5
START, WARM, COOL, COLD = 1.0, 0.5, 0.3, 0.1
_BALANCE_ROUNDS = 3
_NEW_GRAPHS = 3  # how often the graph of z is built anew
_SOFTNESS = 0.3  # of labels that annealing starts from


@torch.no_grad()
def anneal(
    space: Space,
    Y: Tensor,
    *,
    steps: int = 100,
    hot: float = START,
    cold: float = COLD,
    first_graph: float = 0.4,
    graph: CSR | None = None,
) -> Tensor:
    """Labels (n,) that soft labels Y, (n, C), condense to.

    ``first_graph`` is the share of the steps after which the graph of z joins;
    ``graph`` is used throughout instead, if given.
    """
    n_clusters = Y.shape[1]
    first = round(first_graph * steps) if graph is None else steps
    graph = space.graph if graph is None else graph
    every = max(1, -(-(steps - first) // _NEW_GRAPHS))
    for step in range(steps):
        centred = Y - Y.mean(dim=0)
        z = [fit.left_out(centred) for fit in space.fits]
        if step >= first and (step - first) % every == 0:
            graph = _with_graph_of(z, space)
        p = space.mean(z) + GRAPH_WEIGHT * multiply(graph, centred)
        temperature = hot * (cold / hot) ** (step / steps)
        p = p / (p.std(dim=0) * temperature).clamp_min(1e-6)
        Y = _balanced(torch.softmax(p, dim=1), n_clusters)
    return Y.argmax(dim=1)


def learned_graph(space: Space, labels: Tensor, n_clusters: int) -> CSR:
    """The graph that annealing would use near labels (n,)."""
    Y = one_hot(labels, n_clusters)
    return _with_graph_of(
        [fit.left_out(Y - Y.mean(dim=0)) for fit in space.fits], space
    )


def softened(labels: Tensor, n_clusters: int) -> Tensor:
    """Labels as soft labels that annealing can still change."""
    return (1 - _SOFTNESS) * one_hot(labels, n_clusters) + _SOFTNESS / n_clusters


def _balanced(Y: Tensor, n_clusters: int) -> Tensor:
    """Shares of clusters brought close to equal, rows to one (Sinkhorn's steps)."""
    for _ in range(_BALANCE_ROUNDS):
        Y = Y / (Y.mean(dim=0) * n_clusters).clamp_min(1e-12)
        Y = Y / Y.sum(dim=1, keepdim=True)
    return Y


def _with_graph_of(z: Sequence[Tensor], space: Space) -> CSR:
    """Half the graph of the features, half that of the linear features z."""
    scaled = [part / part.std(dim=0).clamp_min(1e-6) for part in z]
    learned = affinity(space.side_by_side(scaled))
    return mean_of(space.graph, row_stochastic(learned))
