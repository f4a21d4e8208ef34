"""Writing predictions in the forms that people read back."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
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


def write_predictions(
    path: Path,
    clusters: NDArray[np.int64],
    confidence: NDArray[np.float64],
    ids: Sequence[str] | None = None,
) -> None:
    """Cluster and confidence per sample (.csv), or the clusters alone (.npy)."""
    if path.suffix == ".npy":
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.save(file, clusters)
        return
    write_text(path, prediction_table(clusters, confidence, ids))


def prediction_table(
    clusters: NDArray[np.int64],
    confidence: NDArray[np.float64],
    ids: Sequence[str] | None = None,
) -> str:
    """CSV text with the columns sample, cluster and confidence.

    A sample is called by its id, or by its number where there are no ids.
    """
    names = range(len(clusters)) if ids is None else ids
    if len(names) != len(clusters):
        raise ValueError(f"{len(names)} ids for {len(clusters)} samples")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["sample", "cluster", "confidence"])
    rows = zip(names, clusters.tolist(), confidence.tolist(), strict=True)
    writer.writerows((name, k, repr(c)) for name, k, c in rows)
    return text.getvalue()


def read_prediction_table(
    path: Path,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Clusters and confidences of a table, whatever its samples are called."""
    table = np.loadtxt(
        path,
        delimiter=",",
        skiprows=1,
        usecols=(1, 2),
        quotechar='"',
        comments=None,
        encoding="utf-8",
        ndmin=2,
    )
    return table[:, 0].astype(np.int64), table[:, 1]
