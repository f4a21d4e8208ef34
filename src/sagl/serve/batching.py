"""Threads that ask the model, for several requests at once where these are small.

A model computes a block of rows in about the time of one row, and what it says of a row
does not depend on the others. So rows of requests that wait at the same time share a
block, and each gets what it would get alone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sagl.clusters.neighbours import Neighbour
from sagl.estimator import SAGL
from sagl.views import Views

ROWS = 256  # that are asked about together


class Said(NamedTuple):
    """What the model says of some rows."""

    q: NDArray[np.float64]  # (n, C)
    neighbours: list[list[Neighbour]]  # (n,), or none if they were not asked for


@dataclass
class _Piece:
    """Rows of one request; whoever waits for them may have given up."""

    views: Views
    neighbours: int
    future: Future[Said] = field(default_factory=Future)

    def __len__(self) -> int:
        return len(self.views)


class Batcher:
    """A model, and the threads in which it is asked.

    Parameters
    ----------
    model : SAGL
    threads : int
    on_block : callable, optional
        Gets the number of rows whenever the model is asked.
    """

    def __init__(
        self,
        model: SAGL,
        threads: int = 1,
        on_block: Callable[[int], object] = lambda rows: None,
    ) -> None:
        self.model = model
        self._on_block = on_block
        self._waiting: deque[_Piece] = deque()
        self._changed = Condition()
        self._closed = False
        self._threads = [
            Thread(target=self._work, name=f"sagl-serve-{i}", daemon=True)
            for i in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    async def ask(self, views: Views, neighbours: int = 0) -> Said:
        """What the model says of views that it has checked.

        If the caller is cancelled, what has not begun is left out.
        """
        pieces = [
            _Piece(views[start : start + ROWS], neighbours)
            for start in range(0, len(views), ROWS)
        ]
        with self._changed:
            self._waiting.extend(pieces)
            self._changed.notify(len(pieces))
        waits = [asyncio.wrap_future(piece.future) for piece in pieces]
        parts = await asyncio.gather(*waits)
        q = np.concatenate([part.q for part in parts])
        return Said(q, [row for part in parts for row in part.neighbours])

    def close(self) -> None:
        """End the threads when they have done what waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while pieces := self._next():
            running = [p for p in pieces if p.future.set_running_or_notify_cancel()]
            if running:
                self._answer(running)

    def _next(self) -> list[_Piece]:
        """The next pieces that fit into a block; none when all is done."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            pieces: list[_Piece] = []
            rows = 0
            while self._waiting and rows + len(self._waiting[0]) <= ROWS:
                pieces.append(self._waiting.popleft())
                rows += len(pieces[-1])
            return pieces

    def _answer(self, pieces: list[_Piece]) -> None:
        try:
            q = self.model.predict_proba(_together([piece.views for piece in pieces]))
            self._on_block(len(q))
            said = []
            for piece in pieces:
                own, q = q[: len(piece)], q[len(piece) :]
                n = piece.neighbours
                near = self.model.neighbours(piece.views, n) if n else []
                said.append(Said(own, near))
        except BaseException as error:  # whoever waits must hear of it
            for piece in pieces:
                piece.future.set_exception(error)
            return
        for piece, each in zip(pieces, said, strict=True):
            piece.future.set_result(each)


def _together(views: list[Views]) -> Views:
    """The rows of all, one after another."""
    if len(views) == 1:
        return views[0]
    names = views[0].names
    return Views({name: np.concatenate([v[name] for v in views]) for name in names})
