"""What the explorer of a report knows: the samples that it shows and all about them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sagl.report.build import RunData
from sagl.report.columns import Column, category_column
from sagl.report.explorer import (
    column_arrays,
    graph_arrays,
    pack,
    places,
    thumbnail_arrays,
)
from sagl.report.style import cluster_colours
from sagl.report.thumbnails import Thumbnails

SHOWN_ROWS = 200_000  # samples in the explorer; more make no page that opens
_COLOURS = 24  # all that there are; the explorer takes them in turn


def shown_rows(data: RunData, limit: int = SHOWN_ROWS) -> NDArray[np.int64]:
    """The samples that the explorer shows: all, or a sample with all that is named."""
    n = len(data)
    if n <= limit:
        return np.arange(n)
    wanted = [np.array(sorted(data.inputs.names.wrong), dtype=np.int64)]
    for cluster in data.clusters:
        wanted += [cluster.typical, cluster.doubtful]
    needed = np.unique(np.concatenate(wanted))
    others = np.setdiff1d(np.arange(n), needed)
    room = max(0, limit - len(needed))
    drawn = np.random.default_rng(0).choice(others, room, replace=False)
    return np.sort(np.concatenate([needed, drawn]))


def payload(data: RunData, thumbnails: Thumbnails, rows: NDArray[np.int64]) -> str:
    """The explorer's data of the given rows."""
    row_of = {int(row): place for place, row in enumerate(rows)}
    everything = len(rows) == len(data)
    graphs = {
        name: graph if everything else graph[rows][:, rows]
        for name, graph in data.graphs.items()
    }
    about_views, of_graphs = graph_arrays(graphs, len(rows))
    about_columns, of_columns = column_arrays(_columns(data), rows)
    xy, extent = places(data.layout.points[rows])
    names = data.inputs.names
    header = {
        "run": data.checksum,
        "name": data.directory.name,
        "n": len(rows),
        "clusters": data.n_clusters,
        "sizes": np.bincount(data.labels, minlength=data.n_clusters).tolist(),
        "palette": cluster_colours(_COLOURS),
        "extent": extent,
        "views": about_views,
        "columns": about_columns,
        "names": {str(k): name for k, name in names.clusters.items()},
        "wrong": [row_of[row] for row in sorted(names.wrong)],
        "pixelated": thumbnails.pixelated,
    }
    arrays: dict[str, Any] = {
        "xy": xy,
        "row": rows.astype(np.int32),
        "cluster": data.labels[rows].astype(np.uint16),
        "confidence": data.confidence[rows].astype(np.float32),
        "ids": [data.inputs.ids[row] for row in rows],
        **of_graphs,
        **of_columns,
    }
    samples = data.inputs.samples
    if samples is not None and samples.kind == "text":
        arrays["texts"] = [data.inputs.text(int(row)) for row in rows]
    kept = {row: p for row, p in thumbnails.pictures.items() if row in row_of}
    if kept:
        arrays |= thumbnail_arrays(kept, row_of)
    return pack(header, arrays)


def _columns(data: RunData) -> list[Column]:
    columns = list(data.inputs.columns)
    if data.inputs.labels is not None:
        truth = data.inputs.labels
        numeric = truth.dtype.kind in "iub"
        classes = category_column("True label", truth.tolist(), numeric=numeric)
        columns.insert(0, classes)
    return columns
