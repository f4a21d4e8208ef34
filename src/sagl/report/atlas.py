"""A table that embedding-atlas opens as it is.

    embedding-atlas FILE.parquet --x x --y y --neighbors neighbors

Its column of neighbours holds, per row, ``{"ids": [...], "distances": [...]}`` with
positions of rows counted from zero. Lists are equally long: embedding-atlas stacks
them when it ranks samples, and leaves a row's own position out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sagl.report.build import RunData
from sagl.report.explorer import strongest_neighbours
from sagl.report.style import load
from sagl.storage import replacing

_NEIGHBOURS = 10


def write_atlas(path: Path, data: RunData) -> None:
    """Write places, clusters, confidences, columns and neighbours as parquet."""
    pa, parquet = load("pyarrow"), load("pyarrow.parquet")
    names = data.inputs.names
    columns: dict[str, Any] = {
        "id": list(data.inputs.ids),
        "x": data.layout.points[:, 0].astype(np.float32),
        "y": data.layout.points[:, 1].astype(np.float32),
        "cluster": data.labels,
        "cluster_name": [names.name_of(int(k)) for k in data.labels],
        "confidence": data.confidence,
    }
    samples = data.inputs.samples
    if samples is not None and samples.kind == "text":
        columns["text"] = [data.inputs.text(row) for row in range(len(data))]
    if data.inputs.labels is not None:
        columns["true_label"] = data.inputs.labels.astype(str).tolist()
    for column in data.inputs.columns:
        values: Any = column.values
        if column.kind == "category":
            values = [column.categories[code] for code in column.values]
        columns.setdefault(column.name, values)
    if data.mean_graph is not None and len(data) > 1:
        columns["neighbors"] = _neighbours(pa, data)
    with replacing(path) as temporary:
        parquet.write_table(pa.table(columns), temporary, compression="zstd")


def _neighbours(pa: Any, data: RunData) -> Any:
    k = min(_NEIGHBOURS, len(data) - 1)
    found = strongest_neighbours(data.mean_graph, k)
    itself = np.arange(len(data))[:, None]
    rows = np.where(found.rows < 0, itself, found.rows)
    distances = np.where(found.rows < 0, 0.0, 1 - found.weights / 65_535)
    # Nearest first: itself, and itself again in place of neighbours it does not have.
    order = np.argsort(distances, axis=1, kind="stable")
    rows = np.hstack([itself, np.take_along_axis(rows, order, axis=1)])
    distances = np.hstack(
        [np.zeros((len(data), 1)), np.take_along_axis(distances, order, axis=1)]
    )
    offsets = np.arange(0, rows.size + 1, k + 1, dtype=np.int32)
    lists = [
        pa.ListArray.from_arrays(offsets, pa.array(values.ravel(), kind))
        for values, kind in ((rows, pa.int64()), (distances, pa.float64()))
    ]
    return pa.StructArray.from_arrays(lists, ["ids", "distances"])
