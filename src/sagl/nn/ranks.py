"""Processes that share a batch: each has a contiguous slice of its rows.

What is computed row by row, each process computes for its own rows. Two things need all
of them: whom a sample attends to, and means over the batch. For the first, keys and
values are gathered; the gradient of what was gathered is summed over the processes,
and each keeps that of its own rows. For the second, sums are added up; the gradient of
a sum with respect to one's own rows is the same as ever. So each process finds what its
own rows contribute to the gradients of the parameters, and these are summed, too: they
are those of one process with the whole batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate, pairwise
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable


class LostProcessError(ConnectionError):
    """Another process of the job has ended, or cannot be reached any more."""


class Ranks:
    """The processes of a job, of which this is one; by default this one alone.

    Parameters
    ----------
    group : torch.distributed.ProcessGroup, optional

    Attributes
    ----------
    index, count : int
        Which this is, and how many there are.
    """

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        self._group = group
        self.index = 0 if group is None else dist.get_rank(group)
        self.count = 1 if group is None else dist.get_world_size(group)

    @property
    def first(self) -> bool:
        """Whether this is the one that writes and shows."""
        return self.index == 0

    def sizes(self, n: int) -> list[int]:
        """How many of n rows each process has: the first ones one more, if any."""
        share, more = divmod(n, self.count)
        return [share + (i < more) for i in range(self.count)]

    def own(self, n: int) -> slice:
        """Which of n rows this process has."""
        ends = [0, *accumulate(self.sizes(n))]
        return [slice(*pair) for pair in pairwise(ends)][self.index]

    def gather(self, own: Tensor, n: int, dim: int = 0) -> Tensor:
        """All n rows, in order, of which this process has its own along ``dim``.

        Nobody waits for a gradient: see :meth:`SharedBatch.gather`.
        """
        if self.count == 1:
            return own
        rows = own.movedim(dim, 0)
        sizes = self.sizes(n)
        if len(rows) != sizes[self.index]:
            raise ValueError(
                f"process {self.index} has {len(rows)} of {n} rows, and should have "
                f"{sizes[self.index]}"
            )
        padded = rows.new_zeros(sizes[0], *rows.shape[1:])
        padded[: len(rows)] = rows
        parts = [torch.empty_like(padded) for _ in sizes]
        with _watched():
            dist.all_gather(parts, padded, group=self._group)
        whole = torch.cat([part[:k] for part, k in zip(parts, sizes, strict=True)])
        return whole.movedim(0, dim).contiguous()

    def gather_vectors(self, own: Tensor) -> list[Tensor]:
        """The vector of each process; they may be of different lengths."""
        if self.count == 1:
            return [own]
        length = torch.tensor([len(own)], device=own.device)
        lengths = self.gather(length, self.count).tolist()
        padded = own.new_zeros(max(lengths))
        padded[: len(own)] = own
        every = self.gather(padded[None], self.count)
        return [row[:k].clone() for row, k in zip(every, lengths, strict=True)]

    def sum_(self, x: Tensor) -> Tensor:
        """Replace x by its sum over all processes."""
        if self.count > 1:
            with _watched():
                dist.all_reduce(x, op=dist.ReduceOp.SUM, group=self._group)
        return x

    def barrier(self) -> None:
        """Wait until all processes are here."""
        self.sum_(torch.zeros(1))

    def batch(self, n: int) -> SharedBatch | None:
        """A batch of n rows shared by these processes; None for one alone."""
        return None if self.count == 1 else SharedBatch(n, self)


ALONE = Ranks()


class SharedBatch:
    """A batch of n rows of which each process has a slice.

    Attributes
    ----------
    n : int
    own : slice
        The rows of this process.
    """

    def __init__(self, n: int, ranks: Ranks) -> None:
        if n < ranks.count:
            raise ValueError(
                f"a batch of {n} samples is too small for {ranks.count} processes; "
                "use fewer processes or a larger batch_size"
            )
        self.n = n
        self.ranks = ranks
        self.own = ranks.own(n)

    def gather(self, *own: Tensor) -> list[Tensor]:
        """All rows, (..., n, C), of tensors of own rows, (..., m, C)."""
        joined = torch.cat(own, dim=-1)
        whole: Tensor = _Gather.apply(joined, self)  # type: ignore[no-untyped-call]
        return list(torch.split(whole, [x.shape[-1] for x in own], dim=-1))

    def sum(self, own: Tensor) -> Tensor:
        """The sum over the batch of what each process has summed over its rows."""
        whole: Tensor = _Sum.apply(own, self)  # type: ignore[no-untyped-call]
        return whole


class _Gather(torch.autograd.Function):
    """Each process's rows to all; backward, their gradients summed and sliced."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, batch: SharedBatch) -> Tensor:
        ctx.batch = batch
        return batch.ranks.gather(own, batch.n, dim=-2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        batch: SharedBatch = ctx.batch
        whole = batch.ranks.sum_(grad.clone(memory_format=torch.contiguous_format))
        return whole[..., batch.own, :], None


class _Sum(torch.autograd.Function):
    """A sum over processes; backward, with respect to this one's summand alone."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, batch: SharedBatch) -> Tensor:
        return batch.ranks.sum_(own.clone())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad, None


@contextmanager
def _watched() -> Iterator[None]:
    """A failure of the transport in words."""
    try:
        yield
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise LostProcessError(
            f"another process of this job has ended or cannot be reached ({reason}); "
            "the same command takes up what was done"
        ) from None
