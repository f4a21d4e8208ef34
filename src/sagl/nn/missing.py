"""Samples that miss a view: a row of NaN there, until views meet.

What one view makes of its samples is computed row by row, so NaN stays in its row.
Where views meet, a missing one is left out and the others count for it: their weights
are scaled to sum to what the weights of all do. Samples that miss nothing keep their
results to the last bit, whoever is among them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sagl.nn.entmax import entmax_of_largest
from sagl.nn.sparse import CSR

_NEVER = -1e4  # a score that gets no weight beside any other
_BLOCK_ROWS = 512


def present_in(views: Sequence[Tensor]) -> Tensor | None:
    """Which of n samples have which of L views, given as rows (n, d): bool, (n, L).

    None where all have all.
    """
    there = torch.stack([~h[:, 0].isnan() for h in views], dim=1)
    return None if bool(there.all()) else there


def without_nan(x: Tensor) -> Tensor:
    """Zeros for what is missing."""
    return x.masked_fill(x.isnan(), 0.0)


def weight_there(present: Tensor, weights: Tensor) -> Tensor:
    """How much the views of each sample count, (n,), relative to all: 0 to 1."""
    counted = weights.expand_as(present)
    share = counted.masked_fill(~present, 0.0).sum(dim=1) / counted.sum(dim=1)
    return share.masked_fill(present.all(dim=1), 1.0)


def said(values: Tensor, bias: Tensor, weights: Tensor) -> Tensor:
    """p, (L, n, C), from the values of heads, (L, n, C), and their biases, (L, 1, C).

    A head is scaled so that the mean over all views is their weighted sum; it is
    scaled anew where some are missing. What is missing is filled with the mean of the
    others, which changes no product of the views' votes.
    """
    p = values + bias
    there = ~values[..., 0].isnan()  # (L, n)
    if bool(there.all()):
        return p
    counted = there.sum(dim=0)
    scale = counted / (len(p) * weight_there(there.T, weights))
    partly = without_nan(values) * scale[:, None] + bias
    mean = (partly * there[..., None]).sum(dim=0) / counted[:, None]
    partly = torch.where(there[..., None], partly, mean)
    return torch.where(there.all(dim=0)[:, None], p, partly)


def hidden(queries: Tensor, keys: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
    """Queries and keys, (n, D) each, with a column more that keeps everybody from
    attending to samples that are not ``there``, (n,) of bool.

    Scores of the others stay, though attention divides them by the root of the width.
    """
    D = queries.shape[1]
    scale = ((D + 1) / D) ** 0.5
    one = queries.new_ones(len(queries), 1)
    never = torch.where(there, 0.0, _NEVER)[:, None].to(keys)
    return torch.cat([queries, one], dim=1) * scale, torch.cat([keys, never], dim=1)


def shared(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    """Which samples, (n, L), have a view in common with which others, (m, L): (n, m).

    None where all have with all; either may be None, for samples that miss nothing.
    """
    if one is None or other is None:
        return None
    common: Tensor = one.double() @ other.double().T > 0
    return None if bool(common.all()) else common


def sharing_only(
    graph: CSR,
    queries: Tensor,
    keys: Tensor,
    present: Tensor,
    alpha: float,
    self_loops: bool,
    rows: Tensor | None = None,
) -> CSR:
    """The attention graph, (m, n), without edges between samples that share no view.

    Rows that have such edges, which are few, are projected anew without those keys;
    nothing is left of a row that shares with nobody. The queries, (m, D), are those of
    ``rows``, by default of all samples, of which ``present``, (n, L), is.
    """
    asking = torch.arange(graph.shape[1], device=keys.device) if rows is None else rows
    own, cols, entries = graph.rows(), graph.cols, graph.entries
    apart = ~(present[asking[own]] & present[cols]).any(dim=1)
    if not bool(apart.any()):
        return graph
    anew = torch.zeros(graph.shape[0], dtype=torch.bool, device=keys.device)
    anew[own[apart]] = True
    kept = ~anew[own]
    parts = [(own[kept], cols[kept], entries[kept])]
    for block in torch.split(torch.nonzero(anew).flatten(), _BLOCK_ROWS):
        scores = queries[block] @ keys.T / keys.shape[1] ** 0.5
        common = (present[asking[block]].double() @ present.double().T) > 0
        if not self_loops:
            common.scatter_(1, asking[block][:, None], False)
        A = projected(scores, common, alpha)
        which, to = A.nonzero(as_tuple=True)
        parts.append((block[which], to, A[which, to]))
    own, cols, entries = (torch.cat(part) for part in zip(*parts, strict=True))
    order = (own * graph.shape[1] + cols).argsort()
    ends = torch.bincount(own, minlength=graph.shape[0]).cumsum(0)
    crow = torch.cat([ends.new_zeros(1), ends])
    return CSR(crow, cols[order], entries[order], graph.shape)


def projected(scores: Tensor, common: Tensor, alpha: float) -> Tensor:
    """Weights, (m, n), by scores of pairs that have a view in ``common``, (m, n)."""
    nobody = ~common.any(dim=1, keepdim=True)
    open_ = scores.masked_fill(~(common | nobody), -torch.inf)
    return entmax_of_largest(open_, alpha) * common
