"""Writing predictions in the forms that people read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sagl.storage import replacing, write_text

_SUFFIXES = (".csv", ".npy")


def check_prediction_path(path: Path) -> None:
    """Refuse an output that could not be written, before any work is done."""
    if path.suffix not in _SUFFIXES:
        raise ValueError(f"{path}: predictions are written as .csv or .npy")
    if path.is_dir():
        raise ValueError(f"{path} is a directory; name a file in it")
    if not path.parent.is_dir():
        raise ValueError(f"{path}: there is no directory {path.parent}; make it first")


def write_predictions(path: Path, probabilities: NDArray[np.float64]) -> None:
    """Cluster and confidence per sample (.csv), or the clusters alone (.npy)."""
    clusters = probabilities.argmax(axis=1)
    if path.suffix == ".npy":
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.save(file, clusters)
        return
    write_text(path, prediction_table(clusters, probabilities.max(axis=1)))


def prediction_table(
    clusters: NDArray[np.int64], confidence: NDArray[np.float64]
) -> str:
    """CSV text with the columns sample, cluster and confidence."""
    rows = zip(clusters.tolist(), confidence.tolist(), strict=True)
    lines = (f"{i},{k},{c!r}\n" for i, (k, c) in enumerate(rows))
    return "sample,cluster,confidence\n" + "".join(lines)
