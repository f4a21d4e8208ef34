"""``attend``: sparse attention from any queries to any keys, the one primitive.

Per query row i: s_i = gate_i · (query_i · keys^T) / sqrt(C)     (eq. lrs, sim, alsim)
                 a_i = entmax_α(s_i)                             (eq. entmax)
                 out_i = sum_j a_ij value_j                      (the sum of eq. rep)

Rectangular on purpose, so that one piece of code serves training (queries = keys =
the batch), several machines (local queries, gathered keys), prediction (new queries,
stored anchors) and the graph of a whole data set (all queries, all keys).

The m × n matrix of scores never exists as a whole. Queries are taken in blocks; a
block's scores are one matrix product, and of those only the entries within distance
1/(α−1) of their row's largest can have weight. What has weight is kept as a CSR
matrix, and the aggregation and the whole backward pass touch nothing else: one dense
product in a training step, where dense attention does six. Blocks in which most
entries survive (the start of training) are kept dense instead.
"""

from __future__ import annotations

from typing import Any, Literal, overload

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from sagl.nn.entmax import check_alpha
from sagl.nn.sparse import CSR, multiply, multiply_transposed, row_sums, sampled_product
from sagl.nn.support import Scores, Support, find_support


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

    Returns
    -------
    out : Tensor of shape (m, D)
    graph : sparse CSR Tensor of shape (m, n)
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
    _check(queries, keys, values, gate, alpha, exclude)
    check_dropout(dropout)
    # Scores in the units of entmax, x = (α − 1) s; softmax (α = 1) takes s itself.
    scale = (alpha - 1 if alpha > 1 else 1.0) / keys.shape[1] ** 0.5
    q = queries * (scale if gate is None else scale * gate[:, None])
    with torch.no_grad():
        support = find_support(Scores(q.detach(), keys.detach(), alpha, exclude))
    dropped = _Dropout(dropout, generator, support)
    out: Tensor = _Aggregate.apply(q, keys, values, support, dropped)  # type: ignore[no-untyped-call]
    return (out, support.graph().tensor()) if return_graph else out


class _Dropout:
    """Factors on the weights, 0 or 1 / (1 − p); those of dense blocks from seeds."""

    def __init__(
        self, p: float, generator: torch.Generator | None, support: Support
    ) -> None:
        self.p = p
        self.sparse: Tensor | None = None
        self.seeds: list[int] = []
        if p == 0:
            return
        self.sparse = self._draw(support.sparse.entries, generator)
        if support.dense:
            device = None if generator is None else generator.device
            seeds = torch.randint(
                1 << 62, (len(support.dense),), generator=generator, device=device
            )
            self.seeds = seeds.tolist()

    def on_sparse(self, entries: Tensor) -> Tensor:
        return entries if self.sparse is None else entries * self.sparse

    def on_dense(self, index: int, block: Tensor) -> Tensor:
        if not self.seeds:
            return block
        generator = torch.Generator(block.device).manual_seed(self.seeds[index])
        return block * self._draw(block, generator)

    def _draw(self, like: Tensor, generator: torch.Generator | None) -> Tensor:
        # Four 16-bit numbers from each draw: several times faster than bernoulli_.
        words = torch.empty(
            -(-like.numel() // 4), dtype=torch.int64, device=like.device
        )
        words.random_(-(1 << 63), None, generator=generator)
        numbers = words.view(torch.int16)[: like.numel()].view_as(like)
        dropped = min(round(self.p * (1 << 16)), (1 << 16) - 1)
        keep = (numbers >= dropped - (1 << 15)).to(like.dtype)
        return keep.mul_((1 << 16) / ((1 << 16) - dropped))


class _Aggregate(torch.autograd.Function):
    """out = A values, with A a function of x = q keys^T; backward on the support.

    With r = a^(2−α) on the support, the Jacobian of a row of weights with respect to
    its scores x is (diag(r) − r r^T / sum(r)) / (α − 1), so that

        grad_values = A^T g                 d_ij = <g_i, value_j>
        dx_i = r_i ⊙ (d_i − <r_i, d_i> / sum(r_i)) / (α − 1)
        grad_q = dX keys                    grad_keys = dX^T q

    and every one of these needs the entries of the support alone.
    """

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        keys: Tensor,
        values: Tensor,
        support: Support,
        dropped: _Dropout,
    ) -> Tensor:
        ctx.save_for_backward(q, keys, values)
        ctx.support = support
        ctx.dropped = dropped
        A = support.sparse
        out = multiply(A.with_entries(dropped.on_sparse(A.entries)), values)
        for i, block in enumerate(support.dense):
            weights = dropped.on_dense(i, block.weights(support.scores))
            out[block.rows] = weights @ values
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        q, keys, values = ctx.saved_tensors
        support, dropped = ctx.support, ctx.dropped
        A, alpha = support.sparse, support.scores.alpha

        grad_values = multiply_transposed(
            A.with_entries(dropped.on_sparse(A.entries)), grad
        )
        d = dropped.on_sparse(sampled_product(A, grad, values))
        dX = A.with_entries(_through_entmax(A, d, alpha))
        grad_q = multiply(dX, keys)
        grad_keys = multiply_transposed(dX, q)

        for i, block in enumerate(support.dense):
            weights = block.weights(support.scores)
            g = grad[block.rows]
            grad_values.addmm_(dropped.on_dense(i, weights).T, g)
            d = dropped.on_dense(i, g @ values.T)
            dx = _through_entmax_dense(weights, d, alpha)
            grad_q[block.rows] = dx @ keys
            grad_keys.addmm_(dx.T, q[block.rows])
        return grad_q, grad_keys, grad_values, None, None


def _through_entmax(A: CSR, d: Tensor, alpha: float) -> Tensor:
    """Gradient with respect to the scores, from that of the weights, on the support."""
    r = _slope(A.entries, alpha)
    mean = row_sums(A, r * d) / row_sums(A, r)  # 0/0 only in rows without entries
    return r * (d - mean.index_select(0, A.rows()))


def _through_entmax_dense(weights: Tensor, d: Tensor, alpha: float) -> Tensor:
    r = torch.where(weights > 0, _slope(weights, alpha), 0)
    mean = torch.linalg.vecdot(r, d) / r.sum(dim=1)
    return d.sub_(mean[:, None]).mul_(r)


def _slope(weights: Tensor, alpha: float) -> Tensor:
    """a^(2−α) / (α − 1): how fast a weight of the support follows its score x."""
    if alpha == 1:
        return weights
    if alpha == 1.5:
        return weights.sqrt().mul_(2)
    if alpha == 2:
        return torch.ones_like(weights)
    return weights.pow(2 - alpha).div_(alpha - 1)


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
    exclude: Tensor | None,
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
    if m == 0 or n == 0:
        raise ValueError(f"attention of {m} queries to {n} keys has no answer")
    if exclude is not None and n == 1:
        raise ValueError("the only key is excluded: there is nothing to attend to")
    for name, vector in (("gate", gate), ("exclude", exclude)):
        if vector is not None and vector.shape != (m,):
            raise ValueError(
                f"{name} must have shape ({m},), one entry per query, "
                f"got {tuple(vector.shape)}"
            )
