"""Features that another tool has computed, row by row for our samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sagl.features.backbones.npy import SavedFeatures


@dataclass(frozen=True)
class SavedRows:
    """Saved features, and where each sample is among them."""

    array: Any
    row_of: Mapping[str, int]

    @classmethod
    def of(cls, name: str, saved: SavedFeatures, ids: Sequence[str]) -> SavedRows:
        """Joined by id where the file has ids, else in the order of the samples."""
        known = ids if saved.ids is None else saved.ids
        if len(known) != len(saved.array):
            raise ValueError(
                f"view {name!r}: {len(saved.array):,} saved rows for {len(known):,} "
                "samples; without ids there must be one row per sample, in order"
            )
        row_of = {sample: row for row, sample in enumerate(known)}
        if not any(sample in row_of for sample in ids):
            raise ValueError(
                f"view {name!r}: not one sample is among the saved features; a sample "
                f"is called {ids[0]!r}, a saved row {known[0]!r}"
            )
        return cls(saved.array, row_of)

    def take(self, ids: Sequence[str]) -> tuple[NDArray[Any], list[int]]:
        """Features of those of these samples that are there, and which ones."""
        found = [i for i, sample in enumerate(ids) if sample in self.row_of]
        rows = np.array([self.row_of[ids[i]] for i in found], dtype=np.int64)
        return np.asarray(self.array[rows]), found
