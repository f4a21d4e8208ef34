"""Small sources and models of our own: any class with these methods will do.

As a program it extracts, so that it can be killed:

    python -m tests.features.toy_extraction STORE --samples 900 --workers 2
"""

from __future__ import annotations

import argparse
import string
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import sagl.features.store_write
from sagl.environment import share_of_process
from sagl.features.extraction import extract
from sagl.features.samples import Kind, Unreadable


def tree(directory: Path) -> dict[str, bytes]:
    """Every file below a directory, hidden ones included, with its content."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def small_pieces(rows: int) -> None:
    """Let stores made from now on be done in small pieces and a few files."""
    sagl.features.store_write._PIECE_ROWS = rows
    sagl.features.store_write._FILES = 5


class Words:
    """Made-up texts whose ids are not in sorted order; every 17th cannot be read."""

    kind: Kind = "text"

    def __init__(self, n: int = 100, labelled: bool = True, broken: int = 17) -> None:
        rng = np.random.default_rng(0)
        self.ids: Sequence[str] = [f"text {i}" for i in rng.permutation(n)]
        self.labels = [f"class {i % 3}" for i in range(n)] if labelled else None
        self.broken = broken
        letters = list(string.ascii_lowercase)
        lengths = rng.integers(3, 80, n)
        self._texts = ["".join(rng.choice(letters, size)) for size in lengths]

    def __getitem__(self, row: int) -> str:
        if row % self.broken == self.broken - 1:
            raise Unreadable("the text is missing")
        return self._texts[row]

    def describe(self) -> dict[str, Any]:
        return {"reader": "made up", "samples": len(self.ids)}

    @property
    def readable(self) -> list[str]:
        """Ids of the samples that can be read, sorted."""
        n = self.broken
        return sorted(i for row, i in enumerate(self.ids) if row % n != n - 1)


class Letters:
    """Counts letters and mixes the counts: the product's last bits need its batch."""

    kind: Kind = "text"

    def __init__(self, name: str = "letters", dim: int = 24, pause: float = 0) -> None:
        self.name = name
        self.dim = dim
        self.pause = pause
        generator = torch.Generator().manual_seed(dim)
        self._mix: Tensor | None = torch.randn(26, dim, generator=generator)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_mix": None}

    def prepare(self, sample: str) -> Tensor:
        codes = torch.tensor([ord(letter) - ord("a") for letter in sample])
        return torch.bincount(codes, minlength=26).float() / len(sample)

    def embed(self, prepared: Sequence[Tensor]) -> Tensor:
        time.sleep(self.pause)
        assert self._mix is not None
        return torch.stack(list(prepared)) @ self._mix

    def describe(self) -> dict[str, Any]:
        return {"model": self.name, "sizes": (26, self.dim)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("store", type=Path)
    parser.add_argument("--samples", type=int, default=900)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--pause", type=float, default=0.0)
    options = parser.parse_args()
    small_pieces(48)
    models = {
        "narrow": Letters("narrow", 24, options.pause),
        "wide": Letters("wide", 40, options.pause),
    }
    extract(
        Words(options.samples),
        models,
        options.store,
        batch_size=20,
        workers=options.workers,
        share=share_of_process(options.shard),
    )


if __name__ == "__main__":
    main()
