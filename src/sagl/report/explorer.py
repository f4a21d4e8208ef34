"""What explorers of a run are given: ours in the page, and embedding-atlas.

Ours gets one block of bytes. After a length (four bytes, little-endian) comes JSON;
then, from the next multiple of eight bytes, plain arrays one after the other, each at
a multiple of eight. In the JSON, type, offset and length stand for an array. All of it
is gzipped. Places are 16-bit, neighbours 32-bit rows with 16-bit weights, so that
100,000 samples with three graphs stay well below 30 MB in the page.

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
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from sagl.features.samples import Unreadable
from sagl.report.inputs import Column, category_column, run_checksum
from sagl.report.run_data import RunData
from sagl.report.style import cluster_colours, load
from sagl.storage import replacing

SHOWN_ROWS = 200_000  # samples in the explorer; more make no page that opens
_COLOURS = 24  # all that there are; the explorer takes them in turn
_FULL = 65_535  # what 16 bits call one
_NEIGHBOURS = 10
_NEIGHBOUR_BYTES = 20_000_000  # of all graphs together; beyond, each keeps fewer
_BYTES_EACH = 6
_GZIP_LEVEL = 6
SIDE = 80  # pixels of a thumbnail's longer side
_PIXELATED = 40  # pictures up to this size are kept pixel by pixel
_CLEAR = ("LA", "PA", "RGBA", "P")  # modes that may be transparent
_QUALITY = 72


class Thumbnails(NamedTuple):
    """Encoded pictures by row, whether pixels stay squares, how many were unreadable.

    They are WebP, without loss where pictures have a few pixels only, or else PNG.
    """

    images: dict[int, bytes]
    pixelated: bool
    unreadable: int


def make_thumbnails(rows: Iterable[int], sample: Callable[[int], Any]) -> Thumbnails:
    """Thumbnails of the given rows; what cannot be read is left out and counted."""
    # As every wheel of Pillow has it; PNG passes over WebP's options.
    form = "WEBP" if load("PIL.features").check("webp") else "PNG"
    images: dict[int, bytes] = {}
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
        images[row] = file.getvalue()
    return Thumbnails(images, pixelated and bool(images), unreadable)


def data_address(picture: bytes) -> str:
    """A thumbnail as an address that needs no network."""
    form = "png" if picture.startswith(b"\x89PNG") else "webp"
    return f"data:image/{form};base64,{base64.b64encode(picture).decode()}"


def shown_rows(data: RunData, limit: int = SHOWN_ROWS) -> NDArray[np.int64]:
    """The samples that the explorer shows: all, or a sample with all that is named."""
    n = len(data)
    if n <= limit:
        return np.arange(n)
    needed = np.array(sorted({*data.inputs.names.wrong, *data.listed}), dtype=np.int64)
    others = np.setdiff1d(np.arange(n), needed)
    room = max(0, limit - len(needed))
    drawn = np.random.default_rng(0).choice(others, room, replace=False)
    return np.sort(np.concatenate([needed, drawn]))


def payload(data: RunData, thumbnails: Thumbnails, rows: NDArray[np.int64]) -> str:
    """The explorer's data of the given rows."""
    row_of = {int(row): place for place, row in enumerate(rows)}
    inputs, names = data.inputs, data.inputs.names
    xy, extent = places(data.layout.points[rows])
    k = neighbour_count(len(rows), len(data.graphs))
    columns = list(inputs.columns)
    if inputs.labels is not None:
        numeric = inputs.labels.dtype.kind in "iu"
        truth = category_column("True label", inputs.labels.tolist(), numeric=numeric)
        columns.insert(0, truth)
    content = {
        "run": run_checksum(data.directory),
        "n": len(rows),
        "clusters": data.n_clusters,
        "sizes": data.sizes.tolist(),
        "palette": cluster_colours(_COLOURS),
        "names": {str(k): name for k, name in names.clusters.items()},
        "wrong": [row_of[row] for row in sorted(names.wrong)],
        "extent": extent,
        "xy": xy,
        "row": rows.astype(np.int32),
        "cluster": data.labels[rows].astype(np.uint16),
        "confidence": data.confidence[rows].astype(np.float32),
        "ids": [inputs.ids[row] for row in rows],
        "texts": None,
        "views": [
            {"name": name, "k": k, **_strongest(graph, rows, k)._asdict()}
            for name, graph in data.graphs.items()
        ],
        "columns": [shown_column(column, rows) for column in columns],
        "thumbnails": joined_thumbnails(thumbnails, row_of),
    }
    if inputs.kind == "text":
        content["texts"] = [inputs.text(int(row)) for row in rows]
    return pack(content)


def _strongest(graph: csr_matrix, rows: NDArray[np.int64], k: int) -> Neighbours:
    everything = len(rows) == graph.shape[0]
    return strongest_neighbours(graph if everything else graph[rows][:, rows], k)


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
        columns["neighbors"] = _neighbours(data.graph)
    with replacing(path) as temporary:
        pq.write_table(pa.table(columns), temporary, compression="zstd")


def _neighbours(graph: csr_matrix) -> pa.Array:
    n = graph.shape[0]
    k = min(_NEIGHBOURS, n - 1)
    strongest = strongest_neighbours(graph, k)
    itself = np.arange(n)[:, None]
    none = strongest.rows < 0
    # Nearest first: itself, and itself again in place of neighbours it does not have.
    rows = np.hstack([itself, np.where(none, itself, strongest.rows)])
    distances = np.hstack(
        [0.0 * itself, np.where(none, 0, 1 - strongest.weights / _FULL)]
    )
    order = np.argsort(distances, axis=1, kind="stable")
    offsets = np.arange(0, rows.size + 1, k + 1, dtype=np.int32)
    lists = [
        pa.ListArray.from_arrays(offsets, np.take_along_axis(v, order, axis=1).ravel())
        for v in (rows, distances)
    ]
    return pa.StructArray.from_arrays(lists, ["ids", "distances"])


class Neighbours(NamedTuple):
    """The strongest neighbours of every sample in one graph."""

    rows: NDArray[np.int32]  # (n, k), −1 where there are fewer
    weights: NDArray[np.uint16]  # (n, k), of 65,535
    own: NDArray[np.uint16]  # (n,), the weight of the sample itself


def neighbour_count(n: int, n_graphs: int) -> int:
    """How many neighbours fit: ten, fewer when there are very many samples."""
    fitting = _NEIGHBOUR_BYTES // max(1, n * n_graphs * _BYTES_EACH)
    return max(1, min(_NEIGHBOURS, fitting, n - 1))


def strongest_neighbours(graph: csr_matrix, k: int) -> Neighbours:
    """The k largest weights of each row without its own, largest first."""
    n = graph.shape[0]
    entries = graph.tocoo()
    kept = (entries.row != entries.col) & (entries.data > 0)
    row, column, weight = entries.row[kept], entries.col[kept], entries.data[kept]
    order = np.lexsort((column, -weight, row))
    row, column, weight = row[order], column[order], weight[order]
    starts = np.searchsorted(row, np.arange(n))
    rank = np.arange(len(row)) - starts[row]
    best = rank < k
    rows = np.full((n, k), -1, dtype=np.int32)
    weights = np.zeros((n, k), dtype=np.uint16)
    rows[row[best], rank[best]] = column[best]
    weights[row[best], rank[best]] = _sixteen_bits(weight[best])
    return Neighbours(rows, weights, _sixteen_bits(graph.diagonal()))


def places(points: ArrayLike) -> tuple[NDArray[np.uint16], tuple[float, float]]:
    """Points as 16-bit places, both axes on one scale, and the extent of each axis."""
    points = np.asarray(points, dtype=np.float64)
    low = points.min(axis=0)
    span = points.max(axis=0) - low
    scale = span.max() or 1.0
    scaled = (points - low) / scale
    # A line of points would have no extent to fit into a picture.
    extent = np.maximum(span / scale, 0.05)
    return _sixteen_bits(scaled), (float(extent[0]), float(extent[1]))


def pack(content: Mapping[str, Any]) -> str:
    """JSON as base64 text, with the arrays in it laid behind it."""
    parts: list[bytes] = []
    offset = 0

    def place(values: NDArray[Any]) -> dict[str, Any]:
        nonlocal offset
        plain = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
        parts.append(_padded(plain.tobytes()))
        placed = {"type": plain.dtype.name, "offset": offset, "length": plain.size}
        offset += len(parts[-1])
        return placed

    # Escaped to ASCII: half characters in file names survive the way, too.
    head = json.dumps(content, allow_nan=False, separators=(",", ":"), default=place)
    block = _padded(len(head).to_bytes(4, "little") + head.encode("ascii"))
    # Without a time, so that the same report is the same file.
    packed = gzip.compress(block + b"".join(parts), _GZIP_LEVEL, mtime=0)
    return base64.b64encode(packed).decode()


def _padded(content: bytes) -> bytes:
    return content + b"\0" * (-len(content) % 8)


def joined_thumbnails(
    thumbnails: Thumbnails, row_of: Mapping[int, int]
) -> dict[str, Any]:
    """Pictures one after the other, where each begins, and whose they are."""
    kept = {row_of[row]: p for row, p in thumbnails.images.items() if row in row_of}
    return {
        "pixelated": thumbnails.pixelated,
        "rows": np.array(list(kept), dtype=np.int32),
        "starts": np.cumsum([0, *map(len, kept.values())], dtype=np.uint32),
        "bytes": np.frombuffer(b"".join(kept.values()), dtype=np.uint8),
    }


def shown_column(column: Column, rows: NDArray[np.int64]) -> dict[str, Any]:
    """A column of the given rows."""
    values = column.values[rows]
    about: dict[str, Any] = {"name": column.name, "kind": column.kind}
    if column.kind == "category":
        codes = values.astype(np.uint16)
        return about | {"values": codes, "categories": column.categories}
    if column.kind == "text":
        return about | {"values": values.tolist()}
    known = values[~np.isnan(values)] if not np.isnan(values).all() else [0, 1]
    low, high = float(np.min(known)), float(np.max(known))
    return about | {"values": values.astype(np.float32), "low": low, "high": high}


def _sixteen_bits(values: NDArray[Any]) -> NDArray[np.uint16]:
    whole: NDArray[np.uint16] = np.round(np.clip(values, 0, 1) * _FULL).astype(
        np.uint16
    )
    return whole
