"""What was found, as tables: one row per cluster, or one per sample."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import csv

from sagl.clusters.layers import labels_at
from sagl.clusters.names import name_of
from sagl.model import Model
from sagl.storage import check_writable, replacing

_SUFFIXES = (".csv", ".parquet")
_CONFIDENCE_STEP = 0.01  # differences below are none when typical samples are chosen
_LEAST_SHARE = 0.01  # of a cluster's probability, to be called near it


class Cluster(NamedTuple):
    """One cluster; samples are called by their ids, or by their numbers.

    Examples
    --------
    >>> from sagl.clusters import Cluster
    >>> cluster = Cluster(3, "cats", 120, 0.9, typical=[5], doubtful=[7], nearest=[1])
    >>> cluster.name, cluster.size
    ('cats', 120)
    """

    number: int
    name: str
    size: int
    confidence: float  # mean of its samples
    typical: list[Any]
    doubtful: list[Any]
    nearest: list[int]  # clusters that its samples might be in as well


def cluster_table(model: Model, n: int = 5) -> list[Cluster]:
    """Every cluster that holds samples, with at most ``n`` of what is named."""
    clusters = []
    for k in np.unique(model.labels).tolist():
        rows = np.flatnonzero(model.labels == k)
        confidence = model.confidence[rows]
        typical = typical_rows(model, k, min(n, max(1, len(rows) // 2)))
        rest = np.setdiff1d(rows, typical)
        doubtful = rest[np.lexsort((rest, model.confidence[rest]))][:n]
        clusters.append(
            Cluster(
                k,
                name_of(model.names, k),
                len(rows),
                float(confidence.mean()),
                called(model, typical),
                called(model, doubtful),
                _nearest(model, k)[:n],
            )
        )
    return clusters


def typical_rows(model: Model, cluster: int, n: int) -> NDArray[np.int64]:
    """The most typical samples of a cluster, the most typical first.

    The surest, and among samples about as sure the one most like its neighbours.
    """
    rows = np.flatnonzero(model.labels == cluster)
    sure = np.round(model.confidence[rows] / _CONFIDENCE_STEP)
    apart = np.zeros(len(rows)) if model.facts is None else model.facts.outlier[rows]
    return rows[np.lexsort((rows, apart, -sure))][:n]


def called(model: Model, rows: NDArray[np.int64]) -> list[Any]:
    """Ids of training samples, or their numbers where there are none."""
    if model.ids is None:
        return list(rows.tolist())
    return [model.ids[row] for row in rows]


def check_cluster(model: Model, cluster: int) -> int:
    """A number of a cluster, refused if there is none of it."""
    C = model.settings.n_clusters
    if not isinstance(cluster, int | np.integer) or not 0 <= cluster < C:
        raise ValueError(f"there is no cluster {cluster!r}; they are 0 to {C - 1}")
    return int(cluster)


def sample_table(model: Model, ids: Sequence[Any] | None = None) -> dict[str, Any]:
    """Columns of what is known about the training samples."""
    n = len(model.labels)
    if ids is not None and len(ids) != n:
        raise ValueError(f"{len(ids)} ids for {n} samples; give one per sample")
    samples = called(model, np.arange(n)) if ids is None else list(ids)
    columns: dict[str, Any] = {
        "sample": samples,
        "cluster": model.labels,
        "confidence": model.confidence,
        "name": [name_of(model.names, int(k)) for k in model.labels],
    }
    if model.facts is not None:
        columns |= {
            "outlier": model.facts.outlier,
            "disagreement": model.facts.disagreement,
            "duplicate": model.facts.duplicate,
        }
    for layer in model.layers or ():
        k = layer.n_clusters
        if k != model.settings.n_clusters:
            columns[f"of_{k}"] = labels_at(model, k, None, model.labels)
    return columns


def check_table_path(path: Path) -> None:
    """Refuse an output that could not be written, before any work is done."""
    check_writable(path, "a table of samples is written as", *_SUFFIXES)


def write_table(path: Path, columns: dict[str, Any]) -> None:
    """Columns as .csv or .parquet."""
    table = pa.table(columns)
    write = pq.write_table if path.suffix.lower() == ".parquet" else csv.write_csv
    with replacing(path) as temporary:
        write(table, temporary)


def as_frame(columns: dict[str, Any]) -> Any:
    """A data frame of pandas where that is installed, else the columns as they are."""
    if find_spec("pandas") is None:
        return columns
    return import_module("pandas").DataFrame(columns)


def _nearest(model: Model, cluster: int) -> list[int]:
    if model.facts is None:
        return []
    share = model.facts.between[cluster].copy()
    share[cluster] = 0
    order = np.argsort(-share, kind="stable")
    return [int(k) for k in order if share[k] >= _LEAST_SHARE]
