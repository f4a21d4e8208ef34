"""What explorers of a run are given: ours in the page, and embedding-atlas.

Ours gets JSON, gzipped: plain lists, one entry per sample that is shown.

embedding-atlas opens a table: ``embedding-atlas FILE.parquet --x x --y y --neighbors
neighbors``. Its column of neighbours holds, per row, ``{"ids": [...], "distances":
[...]}`` with positions of rows counted from zero. Lists are equally long: it stacks
them when it ranks samples, and leaves a row's own position out.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from sagl.features.samples import Unreadable
from sagl.model import Facts
from sagl.report.beside import ABSENT, Beside
from sagl.report.embedding import Layout
from sagl.report.inputs import Column, category_column
from sagl.report.run_data import RunData
from sagl.report.style import cluster_colours, load, scale_colours
from sagl.run import run_checksum
from sagl.storage import replacing

SHOWN_ROWS = 200_000  # samples in the explorer; more make no page that opens
_COLOURS = 24  # all that there are; the explorer takes them in turn
_STEPS = 64  # of the scale for numbers
_NEIGHBOURS = 10
_MOST_EDGES = 3_300_000  # of all graphs together; beyond, each keeps fewer
SIDE = 80  # pixels of a thumbnail's longer side
_PIXELATED = 40  # pictures up to this size are kept pixel by pixel
_CLEAR = ("LA", "PA", "RGBA", "P")  # modes that may be transparent
_QUALITY = 72


class Thumbnails(NamedTuple):
    """Addresses of pictures by row, whether pixels stay squares, how many are unread.

    They are WebP, without loss where pictures have a few pixels only, or else PNG, and
    are in the address itself: no network is asked.
    """

    images: dict[int, str]
    pixelated: bool
    unreadable: int


def make_thumbnails(rows: Iterable[int], sample: Callable[[int], Any]) -> Thumbnails:
    """Thumbnails of the given rows; what cannot be read is left out and counted."""
    # As every wheel of Pillow has it; PNG passes over WebP's options.
    form = "WEBP" if load("PIL.features").check("webp") else "PNG"
    images: dict[int, str] = {}
    unreadable = 0
    pixelated = True
    for row in rows:
        try:
            image = sample(row)
        except Unreadable:
            unreadable += 1
            continue
        tiny = max(image.size) <= _PIXELATED
        pixelated &= tiny
        image = image.convert("RGBA" if tiny and image.mode in _CLEAR else "RGB")
        image.thumbnail((SIDE, SIDE))
        file = io.BytesIO()
        image.save(file, form, lossless=tiny, exact=tiny, quality=_QUALITY)
        content = base64.b64encode(file.getvalue()).decode()
        images[row] = f"data:image/{form.lower()};base64,{content}"
    return Thumbnails(images, pixelated and bool(images), unreadable)


def shown_rows(data: RunData, limit: int = SHOWN_ROWS) -> NDArray[np.int64]:
    """The samples that the explorer shows: all, or a sample with all that is named."""
    n = len(data)
    if n <= limit:
        return np.arange(n)
    named = [*data.inputs.names.wrong, *data.listed]
    begun = np.setdiff1d(data.standing_out, named)[: max(0, limit - len(set(named)))]
    needed = np.unique([*named, *begun]).astype(np.int64)
    others = np.setdiff1d(np.arange(n), needed)
    room = max(0, limit - len(needed))
    drawn = np.random.default_rng(0).choice(others, room, replace=False)
    return np.sort(np.concatenate([needed, drawn]))


def payload(data: RunData, thumbnails: Thumbnails, rows: NDArray[np.int64]) -> str:
    """The explorer's data of the given rows, packed as text."""
    place = {int(row): i for i, row in enumerate(rows)}
    inputs, names = data.inputs, data.inputs.names
    xy, extent = places(data.layout.points[rows])
    columns = list(inputs.columns)
    if inputs.labels is not None:
        numeric = inputs.labels.dtype.kind in "iu"
        truth = category_column("True label", inputs.labels.tolist(), numeric=numeric)
        columns.insert(0, truth)
    shown = [shown_column(column, rows) for column in columns]
    if data.beside is not None:
        shown.append(_beside_column(data.beside, rows))
    texts = [inputs.text(row) for row in place] if inputs.kind == "text" else None
    images = thumbnails.images
    return pack(
        {
            "run": run_checksum(data.directory),
            "sizes": [cluster.size for cluster in data.clusters],
            "palette": cluster_colours(_COLOURS),
            "scale": scale_colours(_STEPS),
            "labels": [names.label_of(c.number) for c in data.clusters],
            "names": dict(names.clusters),
            "layerNames": {
                f"{n}:{k}": name
                for n, of_layer in names.layers.items()
                for k, name in of_layer.items()
            },
            "wrong": [place[row] for row in sorted(names.wrong)],
            "words": data.layout.words,
            "extent": extent,
            "xy": xy.ravel().tolist(),
            "row": rows.tolist(),
            "cluster": data.labels[rows].tolist(),
            "confidence": data.confidence[rows].round(9).tolist(),
            "ids": [inputs.ids[row] for row in place],
            "texts": texts,
            "views": _graphs(data, rows),
            "columns": shown,
            "maps": [_map(name, layout, rows) for name, layout in data.maps.items()],
            "facts": None if data.facts is None else _facts(data.facts, rows),
            "layers": _layers(data, rows),
            "asking": [place[row] for row in data.worth_asking if row in place],
            "moved": None if data.beside is None else _moved(data, rows),
            "thumbnails": {place[row]: images[row] for row in images if row in place},
            "pixelated": thumbnails.pixelated,
        }
    )


def _map(name: str, layout: Layout, rows: NDArray[np.int64]) -> dict[str, Any]:
    """Where a view has the samples."""
    xy, extent = places(layout.points[rows])
    about = {"name": name, "words": layout.words, "extent": extent}
    return {**about, "xy": xy.ravel().tolist()}


def _facts(facts: Facts, rows: NDArray[np.int64]) -> dict[str, list[float]]:
    """What is known of single samples: scores, and groups of near-duplicates."""
    return {
        "outlier": facts.outlier[rows].round(4).tolist(),
        "disagreement": facts.disagreement[rows].round(4).tolist(),
        "duplicate": facts.duplicate[rows].tolist(),
    }


def _layers(data: RunData, rows: NDArray[np.int64]) -> dict[str, Any] | None:
    """Partitions from coarse to fine; which cluster of the coarser each is in."""
    if len(data.layers) < 2:
        return None
    return {
        "sizes": [layer.n_clusters for layer in data.layers],
        "parents": [layer.parents for layer in data.layers],
        "stability": [round(layer.stability, 4) for layer in data.layers],
        "leaf": None if data.leaves is None else data.leaves[rows].tolist(),
    }


def _beside_column(beside: Beside, rows: NDArray[np.int64]) -> dict[str, Any]:
    """The other run's clusters, each in the colour of its counterpart."""
    column = beside.column()
    colours = beside.places()
    known = sorted(set(beside.labels.tolist()))
    shown = shown_column(column, rows)
    return shown | {"colours": [None if k == ABSENT else colours[k] for k in known]}


def _moved(data: RunData, rows: NDArray[np.int64]) -> list[int]:
    """Places of the samples that another run has elsewhere."""
    assert data.beside is not None
    moved: list[int] = np.flatnonzero(data.beside.moved(data.labels)[rows]).tolist()
    return moved


def pack(content: dict[str, Any]) -> str:
    """JSON, gzipped, as base64 text; the same content is the same text."""
    # Escaped to ASCII: half characters in file names survive the way, too.
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("ascii"), mtime=0)).decode()


def _graphs(data: RunData, rows: NDArray[np.int64]) -> list[dict[str, Any]]:
    """The strongest neighbours of the given rows in each graph, as their places."""
    k = neighbour_count(len(rows), len(data.graphs))
    graphs = []
    for name, graph in data.graphs.items():
        shown = graph if len(rows) == graph.shape[0] else graph[rows][:, rows]
        others, weights = strongest_neighbours(shown, k)
        listed = {"rows": others.ravel(), "weights": weights.ravel().round(4)}
        listed["own"] = shown.diagonal().astype(np.float64).round(4)
        graphs.append(
            {"name": name, "k": k} | {n: v.tolist() for n, v in listed.items()}
        )
    return graphs


def write_atlas(path: Path, data: RunData) -> None:
    """Write places, clusters, confidences, columns and neighbours as parquet."""
    inputs = data.inputs
    columns: dict[str, Any] = {
        "id": list(inputs.ids),
        "x": data.layout.points[:, 0].astype(np.float32),
        "y": data.layout.points[:, 1].astype(np.float32),
        "cluster": data.labels,
        "cluster_name": [inputs.names.name_of(int(k)) for k in data.labels],
        "confidence": data.confidence,
    }
    if inputs.kind == "text":
        columns["text"] = [inputs.text(row) for row in range(len(data))]
    if inputs.labels is not None:
        columns["true_label"] = inputs.labels.astype(str).tolist()
    for column in inputs.columns:
        values: Any = column.values
        if column.kind == "category":
            values = [column.categories[code] for code in column.values]
        columns.setdefault(column.name, values)
    if data.graph is not None and len(data) > 1:
        columns["neighbors"] = _atlas_neighbours(data.graph)
    with replacing(path) as temporary:
        pq.write_table(pa.table(columns), temporary, compression="zstd")


def _atlas_neighbours(graph: csr_matrix) -> pa.Array:
    n = graph.shape[0]
    k = min(_NEIGHBOURS, n - 1)
    others, weights = strongest_neighbours(graph, k)
    itself = np.arange(n)[:, None]
    # Nearest first: itself, and itself again in place of neighbours it does not have.
    rows = np.hstack([itself, np.where(others < 0, itself, others)])
    distances = np.hstack([0.0 * itself, np.where(others < 0, 0, 1 - weights)])
    order = np.argsort(distances, axis=1, kind="stable")
    offsets = np.arange(0, rows.size + 1, k + 1, dtype=np.int32)
    lists = [
        pa.ListArray.from_arrays(offsets, np.take_along_axis(v, order, axis=1).ravel())
        for v in (rows, distances)
    ]
    return pa.StructArray.from_arrays(lists, ["ids", "distances"])


def neighbour_count(n: int, n_graphs: int) -> int:
    """How many neighbours fit: ten, fewer when there are very many samples."""
    fitting = _MOST_EDGES // max(1, n * n_graphs)
    return max(1, min(_NEIGHBOURS, fitting, n - 1))


def strongest_neighbours(
    graph: csr_matrix, k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Columns and values, (n, k), of each row's k largest weights without its own.

    The largest come first; a column of −1 stands for one that is not there.
    """
    n = graph.shape[0]
    entries = graph.tocoo()
    kept = (entries.row != entries.col) & (entries.data > 0)
    row, column, weight = entries.row[kept], entries.col[kept], entries.data[kept]
    order = np.lexsort((column, -weight, row))
    row, column, weight = row[order], column[order], weight[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    best = rank < k
    rows, weights = np.full((n, k), -1), np.zeros((n, k))
    rows[row[best], rank[best]] = column[best]
    weights[row[best], rank[best]] = weight[best]
    return rows, weights


def places(points: ArrayLike) -> tuple[NDArray[np.float64], tuple[float, float]]:
    """Points in the unit square, both axes on one scale, and the extent of each."""
    points = np.asarray(points, dtype=np.float64)
    low = points.min(axis=0)
    span = points.max(axis=0) - low
    scale = span.max() or 1.0
    # A line of points would have no extent to fit into a picture.
    extent = np.maximum(span / scale, 0.05)
    return ((points - low) / scale).round(5), (float(extent[0]), float(extent[1]))


def shown_column(column: Column, rows: NDArray[np.int64]) -> dict[str, Any]:
    """A column of the given rows; missing numbers are null."""
    values = column.values[rows]
    about: dict[str, Any] = {"name": column.name, "kind": column.kind}
    if column.kind == "category":
        about["categories"] = column.categories
    elif column.kind == "number":
        known = values[~np.isnan(values)]
        limits = (float(known.min()), float(known.max())) if len(known) else (0, 1)
        about |= zip(("low", "high"), limits, strict=True)
        values = values.astype(object)
        values[np.isnan(column.values[rows])] = None
    return about | {"values": values.tolist()}
