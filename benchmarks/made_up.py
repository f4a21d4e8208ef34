"""Made-up features of any number of samples, as hard as real ones, rows on demand.

Classes come in families of four, lie around their middles in low-dimensional pieces
of their own, each with its own size and share of the samples, and overlap; two views
see half of what varies in common, turn and bend it, and hide it in columns of unequal
loudness with noise. The spread is set so that k-means has an ACC of about 0.6; with 50
classes and 20,000 samples the nearest neighbour is of another class in 24 of 100 cases.

A sample is decided by the seed and its number alone: the first rows of a large set are
those of a small one.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sagl import Views
from sagl.storage import replacing

COLUMNS, VIEWS = 256, 2
_DIRECTIONS, _RANK, _COMMON, _FAMILY = 64, 4, 8, 4
_BLOCK = 4096  # rows that are drawn together
_OWN, _LONG, _UNEQUAL, _HEAVY, _NOISE = 0.7, 0.8, 0.3, 0.4, 1.0
_LOUD = 0.7  # what varies in all classes alike
_SPREAD = {50: 1.1, 400: 0.78, 1000: 0.68}  # by number of classes


class MadeUp:
    """Samples of so many classes; the same for the same seed."""

    def __init__(self, classes: int, seed: int = 0) -> None:
        rng = np.random.default_rng([seed, 0])
        C, D = classes, _DIRECTIONS
        self._seed = seed
        families = rng.normal(size=(C, D))[np.arange(C) // _FAMILY]
        middles = families + _OWN * rng.normal(size=(C, D))
        self._middles = middles / (1 + _OWN**2) ** 0.5
        longer = _LONG * rng.lognormal(0, _UNEQUAL, size=(C, _RANK, 1))
        self._long = longer * rng.normal(size=(C, _RANK, D)) / _RANK**0.5
        alike = _LOUD * rng.lognormal(0, _UNEQUAL, size=(_COMMON, 1))
        self._alike = alike * rng.normal(size=(_COMMON, D)) / _COMMON**0.5
        self._round = rng.lognormal(0, _UNEQUAL, size=(C, 1))
        shares = rng.lognormal(0, _UNEQUAL, size=C)
        self._shares = shares / shares.sum()
        known = sorted(_SPREAD)
        spreads = [_SPREAD[k] for k in known]
        self._spread = float(np.interp(np.log(C), np.log(known), spreads))
        self._turns = rng.normal(size=(VIEWS, D, COLUMNS)) / D**0.5
        self._loud = rng.lognormal(0, _HEAVY, size=(VIEWS, COLUMNS))

    def block(self, number: int) -> tuple[list[NDArray[np.float16]], NDArray[np.int64]]:
        """Views and true classes of the rows from 4096 · number on."""
        rng = np.random.default_rng([self._seed, 1, number])
        labels = rng.choice(len(self._shares), size=_BLOCK, p=self._shares)
        spread = self._spread * rng.lognormal(0, _HEAVY, size=(_BLOCK, 1))

        def away() -> NDArray[np.float64]:
            along = rng.normal(size=(_BLOCK, _RANK))
            around = rng.normal(size=(_BLOCK, _DIRECTIONS))
            piece = np.einsum("nr,nrd->nd", along, self._long[labels])
            style = rng.normal(size=(_BLOCK, _COMMON)) @ self._alike
            return (piece + style + around * self._round[labels]) * 0.5**0.5

        common, views = away(), []
        for turn, loud in zip(self._turns, self._loud, strict=True):
            x = self._middles[labels] + spread * (common + away())
            noise = _NOISE * rng.normal(size=(_BLOCK, COLUMNS))
            views.append(((np.tanh(x @ turn) + noise) * loud).astype(np.float16))
        return views, labels


def samples(
    n: int, classes: int, seed: int = 0
) -> tuple[list[NDArray[np.float16]], NDArray[np.int64]]:
    """The first n samples in memory: views and true classes."""
    made = MadeUp(classes, seed)
    blocks = [made.block(i) for i in range(-(-n // _BLOCK))]
    views = [
        np.concatenate(parts)[:n] for parts in zip(*(v for v, _ in blocks), strict=True)
    ]
    return views, np.concatenate([labels for _, labels in blocks])[:n]


def files(
    place: Path, n: int, classes: int, seed: int = 0
) -> tuple[Views, NDArray[np.int64]]:
    """The first n samples as memory maps, of at least so many that are written once."""
    whole = place / f"{classes}-{seed}"
    done = whole / "rows.json"
    if not done.exists() or json.loads(done.read_text()) < n:
        _write(whole, n, classes, seed)
        with replacing(done) as temporary:
            temporary.write_text(json.dumps(n))
    maps = [np.load(whole / f"view{v}.npy", mmap_mode="r")[:n] for v in range(VIEWS)]
    return Views(maps), np.load(whole / "labels.npy")[:n]


def _write(place: Path, n: int, classes: int, seed: int) -> None:
    place.mkdir(parents=True, exist_ok=True)
    made, labels = MadeUp(classes, seed), np.empty(n, np.int64)
    shape = (n, COLUMNS)
    maps = [
        np.lib.format.open_memmap(
            place / f"view{v}.npy", mode="w+", dtype=np.float16, shape=shape
        )
        for v in range(VIEWS)
    ]
    for start in range(0, n, _BLOCK):
        views, truth = made.block(start // _BLOCK)
        rows = slice(start, min(start + _BLOCK, n))
        labels[rows] = truth[: rows.stop - start]
        for view, of_view in zip(maps, views, strict=True):
            view[rows] = of_view[: rows.stop - start]
    np.save(place / "labels.npy", labels)
