"""Aggregation over a support and its gradient, which touches the support alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from sagl.nn.dense import dropout_factors, scores_gradient, slope_of, weights_of
from sagl.nn.ranks import Ranks
from sagl.nn.sparse import CSR, multiply, row_sums, sampled_product
from sagl.nn.support import Place, Support


class Dropout:
    """Factors on the weights, 0 or 1 / (1 − p); those of dense blocks from seeds."""

    def __init__(
        self, p: float, generator: torch.Generator | None, support: Support
    ) -> None:
        self.p = p
        self.sparse: Tensor | None = None
        self.seeds: list[int] = []
        self.places = [support.scores.place(block.rows) for block in support.dense]
        if p == 0:
            return
        entries, scores = support.sparse.entries, support.scores
        total, before = len(entries), 0
        dense = [place.block for place in self.places]
        if scores.batch is not None:  # as one process with all rows would draw
            total, before, dense = _of_all(support, self.places, scores.batch.ranks)
        factors = dropout_factors(entries.new_empty(total), p, generator)
        self.sparse = factors[before : before + len(entries)]
        if dense:
            device = None if generator is None else generator.device
            drawn = torch.randint(
                1 << 62, (len(dense),), generator=generator, device=device
            )
            seed_of = dict(zip(dense, drawn.tolist(), strict=True))
            self.seeds = [seed_of[place.block] for place in self.places]

    def on_sparse(self, entries: Tensor) -> Tensor:
        return entries if self.sparse is None else entries * self.sparse

    def on_dense(self, index: int, block: Tensor) -> Tensor:
        if not self.seeds:
            return block
        generator = torch.Generator(block.device).manual_seed(self.seeds[index])
        place = self.places[index]
        whole = block.new_empty(place.size, block.shape[1])
        return block * dropout_factors(whole, self.p, generator)[place.rows]


def _of_all(
    support: Support, places: Sequence[Place], ranks: Ranks
) -> tuple[int, int, list[int]]:
    """Sparse entries of all processes, those before one's own, and dense blocks."""
    entries = support.sparse.entries
    sizes = [ranks.count, support.scores.n_blocks()]
    counted = torch.zeros(sum(sizes), dtype=torch.int64, device=entries.device)
    counted[ranks.index] = len(entries)
    counted[[ranks.count + place.block for place in places]] = 1
    counts, dense = ranks.sum_(counted).split_with_sizes(sizes)
    before = int(counts[: ranks.index].sum())
    return int(counts.sum()), before, dense.nonzero().flatten().tolist()


class Aggregate(torch.autograd.Function):
    """out = A values, with A a function of x = f ⊙ queries keys^T; f one per row.

    With r = a^(2−α) on the support, the Jacobian of a row of weights with respect to
    its scores x is (diag(r) − r r^T / sum(r)) / (α − 1), so that

        grad_values = A^T g                 d_ij = <g_i, value_j>
        dx_i = r_i ⊙ (d_i − <r_i, d_i> / sum(r_i)) / (α − 1)
        dq = dX keys                        grad_keys = dX^T (f ⊙ queries)
        grad_queries = f ⊙ dq               grad_f_i = <dq_i, query_i>

    and every one of these needs the entries of the support alone.
    """

    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        factor: Tensor,
        keys: Tensor,
        values: Tensor,
        support: Support,
        dropped: Dropout,
    ) -> Tensor:
        ctx.save_for_backward(queries, factor, keys, values)
        ctx.support = support
        ctx.dropped = dropped
        out = multiply(_weights(support, dropped), values)
        for i, block in enumerate(support.dense):
            weights = weights_of(block.gaps(support.scores), support.alpha)
            out[block.rows] = dropped.on_dense(i, weights) @ values
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        queries, factor, keys, values = ctx.saved_tensors
        support, dropped = ctx.support, ctx.dropped
        gaps, alpha = support.sparse, support.alpha

        turned, order = _weights(support, dropped).transposed()
        grad_values = multiply(turned, grad)
        d = dropped.on_sparse(sampled_product(gaps, grad, values))
        dx = _through_entmax(gaps, d, alpha)
        dq = multiply(gaps.with_entries(dx), keys)
        dx = dx * factor.index_select(0, gaps.rows())
        grad_keys = multiply(turned.with_entries(dx.index_select(0, order)), queries)

        for i, block in enumerate(support.dense):
            full = block.gaps(support.scores)
            g = grad[block.rows]
            grad_values.addmm_(dropped.on_dense(i, weights_of(full, alpha)).T, g)
            d = dropped.on_dense(i, g @ values.T)
            dx = scores_gradient(full, d, alpha)
            dq[block.rows] = dx @ keys
            grad_keys.addmm_(dx.T, support.scores.scaled(block.rows))
        needed = ctx.needs_input_grad[1]
        grad_factor = torch.linalg.vecdot(dq, queries) if needed else None
        grad_queries = dq.mul_(factor[:, None])
        return grad_queries, grad_factor, grad_keys, grad_values, None, None


def _weights(support: Support, dropped: Dropout) -> CSR:
    gaps = support.sparse
    return gaps.with_entries(dropped.on_sparse(weights_of(gaps.entries, support.alpha)))


def _through_entmax(gaps: CSR, d: Tensor, alpha: float) -> Tensor:
    """Gradient with respect to the scores, from that of the weights, on the support."""
    r = slope_of(gaps.entries, alpha)
    mean = row_sums(gaps, r * d) / row_sums(gaps, r)  # 0/0 only in rows without entries
    return r * (d - mean.index_select(0, gaps.rows()))
