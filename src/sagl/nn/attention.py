"""``attend``: sparse attention from any queries to any keys, the one primitive.

Per query row i: s_i = gate_i · (query_i · keys^T) / sqrt(C)     (eq. lrs, sim, alsim)
                 a_i = entmax_α(s_i)                             (eq. entmax)
                 out_i = sum_j a_ij value_j                      (the sum of eq. rep)

Rectangular on purpose, so that one piece of code serves training (queries = keys =
the batch), several machines (local queries, gathered keys), prediction (new queries,
stored anchors) and the graph of a whole data set (all queries, all keys).

Beyond small batches, which one dense step serves best (nn/dense.py), the m × n matrix
of scores never exists as a whole. Queries are taken in blocks; a block's scores are one
matrix product, and of those only the entries within distance 1/(α−1) of their row's
largest can have weight. What has weight is kept as a CSR matrix, and the aggregation
and the whole backward pass touch nothing else: one dense product in a training step,
where dense attention does six. Blocks in which most entries survive (the start of
training) are kept dense instead.

Processor time of a training step relative to the dense one, sharp scores, 10 clusters:
1.8 for batches of 100, 0.5 for 600, 0.05 for 3,000 (benchmarks/attention_paths.py).
"""

from __future__ import annotations

import math
from typing import Literal, overload

import torch
from torch import Tensor

from sagl.nn.aggregate import Aggregate, Dropout
from sagl.nn.dense import Options, attend_dense
from sagl.nn.entmax import check_alpha
from sagl.nn.ranks import SharedBatch
from sagl.nn.support import Scores, Support, find_support, non_zeros, stack

# Up to this many scores per view, a batch is too small for sparse bookkeeping to pay.
_SMALL = 1 << 18


@overload
def attend(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    gate: Tensor | None = ...,
    alpha: float = ...,
    return_graph: Literal[False] = ...,
    *,
    exclude: Tensor | None = ...,
    dropout: float = ...,
    generator: torch.Generator | None = ...,
    batch: SharedBatch | None = ...,
) -> Tensor: ...


@overload
def attend(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    gate: Tensor | None = ...,
    alpha: float = ...,
    *,
    return_graph: Literal[True],
    exclude: Tensor | None = ...,
    dropout: float = ...,
    generator: torch.Generator | None = ...,
    batch: SharedBatch | None = ...,
) -> tuple[Tensor, Tensor]: ...


def attend(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    gate: Tensor | None = None,
    alpha: float = 1.5,
    return_graph: bool = False,
    *,
    exclude: Tensor | None = None,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
    batch: SharedBatch | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Aggregate ``values`` over the sparse graph from ``queries`` to ``keys``.

    Parameters
    ----------
    queries : Tensor of shape (m, C)
    keys : Tensor of shape (n, C)
    values : Tensor of shape (n, D)
    gate : Tensor of shape (m,), optional
        Factor on each query's scores, larger for a sparser row. None is all ones.
    alpha : float, default=1.5
        1 is softmax (a dense graph), 1.5 the paper's entmax, 2 sparsemax.
    return_graph : bool, default=False
        Also return the graph, before dropout.
    exclude : Tensor of int64 of shape (m,), optional
        For each query, the position of the one key it must not attend to (its own,
        when self-loops are not wanted).
    dropout : float, default=0
        Probability of dropping a weight; those kept are scaled by 1 / (1 − dropout).
    generator : torch.Generator, optional
        Source of the dropout.

    batch : SharedBatch, optional
        The queries are those of this process's own rows of a batch; the keys are
        those of all rows.

    Several views may be given at once: queries, keys, values and gate then have one
    more dimension in front, and so has the output.

    Returns
    -------
    out : Tensor of shape (m, D)
    graph : sparse CSR Tensor of shape (m, n)
        Only with ``return_graph=True``; detached, rows sum to one.

    Examples
    --------
    >>> import torch
    >>> from sagl.nn import attend
    >>> z = torch.tensor([[2.0, 0.0], [1.5, 0.0], [0.0, 2.0]])
    >>> out, graph = attend(z, z, z, return_graph=True)
    >>> graph.to_dense()
    tensor([[0.7421, 0.2579, 0.0000],
            [0.6842, 0.3158, 0.0000],
            [0.0000, 0.0000, 1.0000]])
    """
    _check(queries, keys, values, gate, alpha, return_graph, exclude)
    check_dropout(dropout)
    options = Options(alpha, exclude, dropout, generator, batch=batch)
    device = queries.device.type
    if not torch.is_autocast_enabled(device):
        return _attend(queries, keys, values, gate, return_graph, options)
    # Autocast is for the score product; thresholds and sums need float32.
    options = options._replace(product_dtype=torch.get_autocast_dtype(device))
    queries, keys, values = queries.float(), keys.float(), values.float()
    gate = None if gate is None else gate.float()
    with torch.autocast(device, enabled=False):
        return _attend(queries, keys, values, gate, return_graph, options)


def _attend(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    gate: Tensor | None,
    return_graph: bool,
    options: Options,
) -> Tensor | tuple[Tensor, Tensor]:
    scale = score_scale(keys.shape[-1], options.alpha)
    if gate is None:
        factor = queries.new_tensor(scale).expand(queries.shape[:-1])
    else:
        factor = gate * scale
    m = queries.shape[-2] if options.batch is None else options.batch.n
    if is_small(m, keys.shape[-2]):
        q = queries * factor.unsqueeze(-1)
        out, weights = attend_dense.apply(q, keys, values, options)  # type: ignore[no-untyped-call]
        if return_graph:
            return out, stack([non_zeros(weights)], len(keys)).tensor()
        return out  # type: ignore[no-any-return]
    if queries.dim() == 3:
        views = zip(queries, factor, keys, values, strict=True)
        return torch.stack([_attend_sparse(*view, options)[0] for view in views])
    out, support = _attend_sparse(queries, factor, keys, values, options)
    return (out, support.graph().tensor()) if return_graph else out


def _attend_sparse(
    queries: Tensor, factor: Tensor, keys: Tensor, values: Tensor, options: Options
) -> tuple[Tensor, Support]:
    dtype = options.product_dtype or keys.dtype
    with torch.no_grad():
        scores = Scores(
            queries.detach(),
            factor.detach(),
            keys.detach().to(dtype),
            options.alpha,
            options.exclude,
            options.batch,
        )
        support = find_support(scores, alike=options.dropout > 0)
    dropped = Dropout(options.dropout, options.generator, support)
    out: Tensor = Aggregate.apply(queries, factor, keys, values, support, dropped)  # type: ignore[no-untyped-call]
    return out, support


def is_small(m: int, n: int) -> bool:
    """Whether m queries and n keys are too few for sparse bookkeeping to pay."""
    return m * n <= _SMALL


def score_scale(C: int, alpha: float) -> float:
    """From query · key to the units of entmax: x = (α − 1) s, s = query · key / √C.

    Softmax (α = 1) takes s itself.
    """
    return (alpha - 1 if alpha > 1 else 1.0) / math.sqrt(C)


def check_dropout(dropout: float) -> None:
    """Refuse a share of weights that cannot be dropped."""
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must be at least 0 and below 1, got {dropout}")


def _check(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    gate: Tensor | None,
    alpha: float,
    return_graph: bool,
    exclude: Tensor | None,
) -> None:
    check_alpha(alpha)
    for name, tensor in (("queries", queries), ("keys", keys), ("values", values)):
        if tensor.dim() not in (2, 3) or tensor.dim() != queries.dim():
            raise ValueError(
                f"{name} must be 2-D, or 3-D like the queries for several views; "
                f"got shape {tuple(tensor.shape)}"
            )
    *views, m, C = queries.shape
    n = keys.shape[-2]
    if keys.shape != (*views, n, C):
        raise ValueError(
            f"keys of shape {tuple(keys.shape)} do not fit queries of shape "
            f"{tuple(queries.shape)}: all but the number of rows must agree"
        )
    if values.shape[:-1] != (*views, n):
        raise ValueError(f"{n} keys need {n} values, got {tuple(values.shape)}")
    if m == 0 or n == 0:
        raise ValueError(f"attention of {m} queries to {n} keys has no answer")
    if exclude is not None and n == 1:
        raise ValueError("the only key is excluded: there is nothing to attend to")
    for name, vector, shape in (
        ("gate", gate, (*views, m)),
        ("exclude", exclude, (m,)),
    ):
        if vector is not None and vector.shape != shape:
            raise ValueError(
                f"{name} must have shape {shape}, one entry per query, "
                f"got {tuple(vector.shape)}"
            )
    if views and return_graph:
        raise ValueError("the graph of several views: ask for one view at a time")
