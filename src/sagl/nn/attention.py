"""``attend``: sparse attention from any queries to any keys, the one primitive.

Per query row i: s_i = gate_i · (query_i · keys^T) / sqrt(C)     (eq. lrs, sim, alsim)
                 a_i = entmax_α(s_i)                             (eq. entmax)
                 out_i = sum_j a_ij value_j                      (the sum of eq. rep)

Rectangular on purpose, so that one piece of code serves training (queries = keys =
the batch), prediction (new queries, stored anchors) and the graph of a whole data
set (all queries, all keys). Queries are taken in blocks, so that the graph of a
large set never needs all its scores at once.
"""

from __future__ import annotations

import warnings
from typing import Literal, overload

import torch
from torch import Tensor

from sagl.nn.entmax import check_alpha, entmax_rows

# Scores held at once when no gradient is wanted: 2^24 float32 are 64 MiB.
_BLOCK_SCORES = 1 << 24


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
    own: tuple[Tensor, Tensor] | None = ...,
    dropout: float = ...,
    generator: torch.Generator | None = ...,
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
    own: tuple[Tensor, Tensor] | None = ...,
    dropout: float = ...,
    generator: torch.Generator | None = ...,
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
    own: tuple[Tensor, Tensor] | None = None,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
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
    own : tuple of Tensors of shapes (m, C) and (m, D), optional
        One more key and value for each query, which only that query sees. In the
        graph it is the last column, n.
    dropout : float, default=0
        Probability of dropping a weight; those kept are scaled by 1 / (1 − dropout).
    generator : torch.Generator, optional
        Source of the dropout.

    Returns
    -------
    out : Tensor of shape (m, D)
    graph : sparse CSR Tensor of shape (m, n), or (m, n + 1) with ``own``
        Only with ``return_graph=True``; detached, rows sum to one.

    Examples
    --------
    >>> import torch
    >>> from sagl.nn import attend
    >>> z = torch.tensor([[4.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
    >>> out, graph = attend(z, z, z, return_graph=True)
    >>> graph.to_dense()
    tensor([[0.9680, 0.0320, 0.0000],
            [0.8858, 0.1142, 0.0000],
            [0.0000, 0.0000, 1.0000]])
    """
    _check(queries, keys, values, gate, alpha, exclude, own)
    needs_grad = torch.is_grad_enabled() and any(
        t.requires_grad for t in (queries, keys, values) + (own or ())
    )
    m, n = queries.shape[0], keys.shape[0]
    block = m if needs_grad else max(1, _BLOCK_SCORES // n)
    outs, graphs = [], []
    for start in range(0, m, block):
        rows = slice(start, start + block)
        weights = _weights(
            queries[rows],
            keys,
            None if gate is None else gate[rows],
            alpha,
            None if exclude is None else exclude[rows],
            None if own is None else own[0][rows],
        )
        if return_graph:
            graphs.append(_sparse(weights.detach()))
        if dropout > 0:
            keep = torch.empty_like(weights).bernoulli_(
                1 - dropout, generator=generator
            )
            weights = weights * keep / (1 - dropout)
        out = weights[:, :n] @ values
        if own is not None:
            out = out + weights[:, n:] * own[1][rows]
        outs.append(out)
    aggregated = outs[0] if len(outs) == 1 else torch.cat(outs)
    if return_graph:
        return aggregated, _stack(graphs)
    return aggregated


def _weights(
    queries: Tensor,
    keys: Tensor,
    gate: Tensor | None,
    alpha: float,
    exclude: Tensor | None,
    own_keys: Tensor | None,
) -> Tensor:
    """Attention weights of one block of queries, (m, n) or (m, n + 1)."""
    scores = queries @ keys.T  # (m, n)
    if exclude is not None:
        scores = scores.scatter(1, exclude[:, None], -torch.inf)
    if own_keys is not None:
        itself = (queries * own_keys).sum(dim=1, keepdim=True)
        scores = torch.cat([scores, itself], dim=1)  # (m, n + 1)
    scores = scores / keys.shape[1] ** 0.5
    if gate is not None:
        scores = scores * gate[:, None]
    return entmax_rows(scores, alpha)


def _sparse(weights: Tensor) -> Tensor:
    with warnings.catch_warnings():
        # torch calls its CSR tensors beta; we only store and convert them.
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        return weights.to_sparse_csr()


def _stack(blocks: list[Tensor]) -> Tensor:
    """Put CSR blocks of rows below each other."""
    if len(blocks) == 1:
        return blocks[0]
    offsets, total = [blocks[0].crow_indices()[:1]], 0
    for block in blocks:
        offsets.append(block.crow_indices()[1:] + total)
        total += int(block.values().numel())
    return torch.sparse_csr_tensor(
        torch.cat(offsets),
        torch.cat([block.col_indices() for block in blocks]),
        torch.cat([block.values() for block in blocks]),
        size=(sum(block.shape[0] for block in blocks), blocks[0].shape[1]),
    )


def _check(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    gate: Tensor | None,
    alpha: float,
    exclude: Tensor | None,
    own: tuple[Tensor, Tensor] | None,
) -> None:
    check_alpha(alpha)
    for name, tensor in (("queries", queries), ("keys", keys), ("values", values)):
        if tensor.dim() != 2:
            raise ValueError(f"{name} must be 2-D, got shape {tuple(tensor.shape)}")
    m, n = queries.shape[0], keys.shape[0]
    if queries.shape[1] != keys.shape[1]:
        raise ValueError(
            f"queries have {queries.shape[1]} columns and keys {keys.shape[1]}; "
            "they must agree"
        )
    if values.shape[0] != n:
        raise ValueError(f"{n} keys need {n} values, got {values.shape[0]}")
    if n == 0 and own is None:
        raise ValueError("there is no key to attend to")
    if exclude is not None and n == 1 and own is None:
        raise ValueError("the only key is excluded: there is nothing to attend to")
    for name, vector in (("gate", gate), ("exclude", exclude)):
        if vector is not None and vector.shape != (m,):
            raise ValueError(
                f"{name} must have shape ({m},), one entry per query, "
                f"got {tuple(vector.shape)}"
            )
    if own is not None:
        shapes = tuple(own[0].shape), tuple(own[1].shape)
        if shapes != ((m, keys.shape[1]), (m, values.shape[1])):
            raise ValueError(
                f"own must hold a key ({m}, {keys.shape[1]}) and a value "
                f"({m}, {values.shape[1]}) per query, got {shapes[0]} and {shapes[1]}"
            )
