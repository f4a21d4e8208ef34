"""Which scores get weight: blocks of rows, pruned, projected, kept sparse or dense."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from sagl.nn.dense import gaps_, row_threshold, weights_of
from sagl.nn.entmax import threshold
from sagl.nn.ranks import SharedBatch
from sagl.nn.sparse import CSR

# Scores of a block: 2^21 float32 are 8 MiB, which stay in the cache while the block is
# pruned. With many keys that is few rows, and the matrix product, which goes through
# all keys once per block, wants some hundreds: up to 2^23 scores are then taken.
_BLOCK_SCORES = 1 << 21
_BLOCK_ROWS = 512
_MAX_BLOCK_SCORES = 1 << 23
# A block is kept dense when more than this share of it survives, or when one of its
# rows keeps more than half: sparse bookkeeping would cost more than it saves.
_DENSE_SHARE = 0.12
_DENSE_ROW = 0.5
# Dense weights kept for the backward pass; beyond this they are computed again.
_KEPT_BYTES = 1 << 30
# Sparse entries kept of one view; what comes after counts as dense. An entry takes 12
# bytes, and more than ten times as much in the backward pass.
_KEPT_ENTRIES = 1 << 24


class Place(NamedTuple):
    """Where rows are in the block that one process with all of them would look at."""

    block: int
    rows: slice
    size: int


class Scores(NamedTuple):
    """x = factor ⊙ queries keys^T, in the units of entmax, never as a whole matrix."""

    queries: Tensor  # (m, C)
    factor: Tensor  # (m,) the gate with 1/sqrt(C) and α − 1 in it
    keys: Tensor  # (n, C); in bfloat16, say, if the product is to be taken in it
    alpha: float
    exclude: Tensor | None  # (m,) the one key each query may not see
    batch: SharedBatch | None = None  # whose own rows the queries are

    def rows(self, rows: slice) -> Tensor:
        """The scores of some queries, (b, n)."""
        x = (self.scaled(rows).to(self.keys.dtype) @ self.keys.T).to(self.queries.dtype)
        if self.exclude is not None:
            x.scatter_(1, self.exclude[rows, None], -torch.inf)
        return x

    def scaled(self, rows: slice) -> Tensor:
        """factor ⊙ queries, (b, C)."""
        return self.queries[rows] * self.factor[rows, None]

    def step(self) -> int:
        """How many rows are looked at together."""
        n = len(self.keys)
        step = max(1, _BLOCK_SCORES // n, min(_BLOCK_ROWS, _MAX_BLOCK_SCORES // n))
        return step - (step % 8 if step > 8 else 0)  # see true_positions

    def blocks(self) -> Iterator[slice]:
        """Rows that are looked at together, from first to last.

        Own rows of a batch are cut where one process with all of them would cut.
        """
        step, m = self.step(), len(self.queries)
        before = 0 if self.batch is None else self.batch.own.start
        for start in range(before - before % step, before + m, step):
            yield slice(max(start - before, 0), min(start - before + step, m))

    def place(self, rows: slice) -> Place:
        """Where a block of own rows is among those of all processes."""
        before, n = 0, len(self.queries)
        if self.batch is not None:
            before, n = self.batch.own.start, self.batch.n
        step = self.step()
        block = (before + rows.start) // step
        first = block * step
        within = slice(before + rows.start - first, before + rows.stop - first)
        return Place(block, within, min(step, n - first))

    def n_blocks(self) -> int:
        """Of all processes together."""
        m = len(self.queries) if self.batch is None else self.batch.n
        return -(-m // self.step())


class Sparse(NamedTuple):
    """What is above the threshold in one block of rows."""

    counts: Tensor  # (b,) entries of each row
    cols: Tensor  # (nnz,)
    gaps: Tensor  # (nnz,) see nn/dense.py


@dataclass
class Dense:
    """One block of rows that is too full to be sparse."""

    rows: slice
    tau: Tensor  # (b, 1) the threshold; for softmax the log of the normaliser
    kept: Tensor | None  # (b, n) gaps, or None: they are computed when needed

    def gaps(self, scores: Scores) -> Tensor:
        if self.kept is not None:
            return self.kept
        return gaps_(scores.rows(self.rows), self.tau, scores.alpha)


@dataclass
class Support:
    """All gaps: a CSR matrix, and dense blocks for the rows that it leaves empty."""

    scores: Scores
    sparse: CSR
    dense: list[Dense]

    @property
    def alpha(self) -> float:
        return self.scores.alpha

    def graph(self) -> CSR:
        """All weights as one CSR matrix."""
        gaps = self._as_one()
        return gaps.with_entries(weights_of(gaps.entries, self.alpha))

    def _as_one(self) -> CSR:
        if not self.dense:
            return self.sparse
        crow, cols, gaps, shape = self.sparse
        full = {block.rows.start: block for block in self.dense}
        parts = []
        for rows in self.scores.blocks():
            if rows.start in full:
                parts.append(non_zeros(full[rows.start].gaps(self.scores)))
            else:
                entries = slice(int(crow[rows.start]), int(crow[rows.stop]))
                counts = crow[rows.start : rows.stop + 1].diff()
                parts.append(Sparse(counts, cols[entries], gaps[entries]))
        return stack(parts, shape[1])


def find_support(scores: Scores, *, alike: bool = False) -> Support:
    """Project every row of the scores, a block at a time.

    With ``alike``, processes that share a batch keep those blocks dense that one with
    all rows would keep dense.
    """
    parts: list[Sparse] = []
    dense: list[Dense] = []
    room, entries_left = _KEPT_BYTES, _KEPT_ENTRIES
    full = _full_blocks(scores) if alike and scores.batch is not None else None
    for rows in scores.blocks():
        x = scores.rows(rows)
        top = x.amax(dim=1, keepdim=True)
        part, limit = None, _DENSE_SHARE
        if full is not None:  # decided already
            limit = 0.0 if full[scores.place(rows).block] else 1.0
        if scores.alpha != 1 and entries_left > 0 and limit > 0:
            part = _project_sparse(x, top, scores.alpha, limit)
        if part is not None:
            entries_left -= len(part.cols)
        else:
            x.sub_(top)
            tau = row_threshold(x, scores.alpha)
            gaps = gaps_(x, tau, scores.alpha)
            room -= gaps.numel() * gaps.element_size()
            dense.append(Dense(rows, tau + top, gaps if room >= 0 else None))
            part = _no_entries(gaps)
        parts.append(part)
    return Support(scores, stack(parts, len(scores.keys)), dense)


def _full_blocks(scores: Scores) -> list[bool]:
    """Which blocks of a shared batch one process would keep dense.

    Survivors are counted, and rows that rule a block out, and added up over processes:
    a block may have rows of several. That takes the product of the scores once more.
    """
    assert scores.batch is not None
    n, device = len(scores.keys), scores.keys.device
    seen = torch.zeros(scores.n_blocks(), 3, dtype=torch.int64, device=device)
    for rows in scores.blocks():
        x = scores.rows(rows)
        counts = (x > x.amax(dim=1, keepdim=True) - 1).sum(dim=1)
        wide, none = (counts > _DENSE_ROW * n).sum(), (counts == 0).sum()
        seen[scores.place(rows).block] = torch.stack([counts.sum(), wide, none])
    entries, wide, none = scores.batch.ranks.sum_(seen).T
    starts = torch.arange(len(seen), device=device) * scores.step()
    sizes = (scores.batch.n - starts).clamp_max(scores.step())
    full = (entries > _DENSE_SHARE * n * sizes) | (wide > 0) | (none > 0)
    return [bool(x) for x in full]


def _project_sparse(
    x: Tensor, top: Tensor, alpha: float, limit: float
) -> Sparse | None:
    """Prune, then project the survivors; None where more than a share survive.

    The largest entry weighs at most one, so τ is at most 1 below it, and so is every
    entry that has weight.
    """
    b, n = x.shape
    mask = x > top - 1
    flat = true_positions(mask, int(limit * mask.numel()))  # in row order
    if flat is None:
        return None
    rows = flat // n
    counts = torch.bincount(rows, minlength=b)
    if int(counts.max()) > _DENSE_ROW * n:
        return None
    if int(counts.min()) == 0:  # NaN or infinity: shown, not hidden, by dense weights
        return None
    below = x.view(-1).index_select(0, flat) - top.view(-1).index_select(0, rows)
    inside, gaps = _project_narrow(rows, below, b, alpha)
    rows, flat = rows.index_select(0, inside), flat.index_select(0, inside)
    return Sparse(torch.bincount(rows, minlength=b), flat - rows * n, gaps)


def project_survivors(
    rows: Tensor, below: Tensor, b: int, alpha: float
) -> tuple[Tensor, Tensor]:
    """Which entries of b rows have weight, and the weights.

    ``rows``, (m,), rising, are the rows of the entries; ``below``, (m,), their scores
    less the largest of their row.
    """
    inside, gaps = _project_narrow(rows, below, b, alpha)
    return inside, weights_of(gaps, alpha)


def _project_narrow(
    rows: Tensor, below: Tensor, b: int, alpha: float
) -> tuple[Tensor, Tensor]:
    """As ``project_survivors``, with gaps: entries are moved to the left of a narrow
    matrix, on which the threshold is cheap to find."""
    counts = torch.bincount(rows, minlength=b)
    width = int(counts.max())
    place = torch.arange(len(rows), device=rows.device) + (
        torch.arange(b, device=rows.device) * width - counts.cumsum(0) + counts
    ).index_select(0, rows)
    narrow = below.new_full((b * width,), -torch.inf)
    narrow.index_copy_(0, place, below)
    narrow = narrow.view(b, width)
    gaps = gaps_(narrow, threshold(narrow, alpha, settle=False), alpha)
    gaps = gaps.view(-1).index_select(0, place)
    inside = gaps.nonzero().squeeze(1)
    return inside, gaps.index_select(0, inside)


def true_positions(mask: Tensor, most: int | None = None) -> Tensor | None:
    """Where a mask is true, flat and in order; None where that is more than ``most``.

    Eight entries are looked at as one integer, which is several times faster than to
    look at each of them when few are true.
    """
    flat = mask.view(-1)
    if flat.numel() % 8:
        positions = flat.nonzero().squeeze(1)
    else:
        words = flat.view(torch.int64).nonzero().squeeze(1)
        if most is not None and len(words) > most:
            return None
        word, byte = flat.view(-1, 8).index_select(0, words).nonzero(as_tuple=True)
        positions = words.index_select(0, word) * 8 + byte
    return None if most is not None and len(positions) > most else positions


def non_zeros(block: Tensor) -> Sparse:
    rows, cols = block.nonzero(as_tuple=True)
    counts = torch.bincount(rows, minlength=len(block))
    return Sparse(counts, cols, block[rows, cols])


def _no_entries(like: Tensor) -> Sparse:
    none = torch.zeros(0, dtype=torch.int64, device=like.device)
    return Sparse(none.new_zeros(len(like)), none, like.new_zeros(0))


def stack(parts: list[Sparse], n: int) -> CSR:
    counts, cols, gaps = (torch.cat(field) for field in zip(*parts, strict=True))
    crow = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return CSR(crow, cols, gaps, (len(counts), n))
