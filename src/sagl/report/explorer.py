"""The data of the explorer as one block of bytes that a page can carry.

After a length (four bytes, little-endian) comes a JSON header; then, from the next
multiple of eight bytes, plain arrays one after the other, each at a multiple of eight.
All of it is gzipped. Places are 16-bit, neighbours 32-bit rows with 16-bit weights, so
that 100,000 samples with three graphs stay well below 30 MB in the page.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

_FULL = 65_535  # what 16 bits call one
_NEIGHBOURS = 10
_NEIGHBOUR_BYTES = 20_000_000  # of all graphs together; beyond, each keeps fewer
_BYTES_EACH = 6
_GZIP_LEVEL = 6


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
    own = np.zeros(n)
    diagonal = entries.row == entries.col
    own[entries.row[diagonal]] = entries.data[diagonal]
    kept = ~diagonal & (entries.data > 0)
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
    return Neighbours(rows, weights, _sixteen_bits(own))


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


def pack(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> str:
    """Header and arrays as base64 text. Lists of strings are written as JSON."""
    parts: list[bytes] = []
    places: dict[str, Any] = {}
    offset = 0
    for name, values in arrays.items():
        if isinstance(values, np.ndarray):
            content = np.ascontiguousarray(values, _little(values.dtype)).tobytes()
            kind, length = values.dtype.name, values.size
        else:
            content = _json(list(values))
            kind, length = "json", len(content)
        places[name] = {"type": kind, "offset": offset, "length": length}
        parts.append(_padded(content))
        offset += len(parts[-1])
    head = _json({**header, "arrays": places})
    block = _padded(len(head).to_bytes(4, "little") + head) + b"".join(parts)
    # Without a time, so that the same report is the same file.
    packed = gzip.compress(block, _GZIP_LEVEL, mtime=0)
    return base64.b64encode(packed).decode()


def thumbnail_arrays(
    pictures: Mapping[int, bytes], row_of: Mapping[int, int]
) -> dict[str, Any]:
    """Pictures one after the other, where each begins, and whose they are."""
    kept = [(row_of[row], content) for row, content in pictures.items()]
    lengths = [len(content) for _, content in kept]
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint32)
    block = np.frombuffer(b"".join(content for _, content in kept), dtype=np.uint8)
    return {
        "thumbnailRows": np.array([row for row, _ in kept], dtype=np.int32),
        "thumbnailStarts": starts,
        "thumbnails": block,
    }


def graph_arrays(
    graphs: Mapping[str, csr_matrix], n: int
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What the header says about the graphs, and their arrays."""
    k = neighbour_count(n, len(graphs))
    about: list[dict[str, Any]] = []
    arrays: dict[str, Any] = {}
    for i, (name, graph) in enumerate(graphs.items()):
        keys = {"rows": f"rows{i}", "weights": f"weights{i}", "own": f"own{i}"}
        found = strongest_neighbours(graph, k)
        arrays |= {keys[field]: getattr(found, field) for field in keys}
        about.append({"name": name, "k": k, **keys})
    return about, arrays


def column_arrays(
    columns: Sequence[Any], rows: NDArray[np.int64]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The same for columns, of the given rows."""
    about: list[dict[str, Any]] = []
    arrays: dict[str, Any] = {}
    for i, column in enumerate(columns):
        entry = {"name": column.name, "kind": column.kind, "array": f"column{i}"}
        values = column.values[rows]
        if column.kind == "category":
            entry["categories"] = list(column.categories)
            arrays[entry["array"]] = values.astype(np.uint16)
        elif column.kind == "number":
            entry["low"], entry["high"] = _range(values)
            arrays[entry["array"]] = values.astype(np.float32)
        else:
            arrays[entry["array"]] = values.tolist()
        about.append(entry)
    return about, arrays


def _range(values: NDArray[np.float64]) -> tuple[float, float]:
    known = values[~np.isnan(values)]
    return (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)


def _sixteen_bits(values: NDArray[Any]) -> NDArray[np.uint16]:
    whole: NDArray[np.uint16] = np.round(np.clip(values, 0, 1) * _FULL).astype(
        np.uint16
    )
    return whole


def _little(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype.newbyteorder("<")


def _json(value: Any) -> bytes:
    # Escaped to ASCII: half characters in file names survive the way, too.
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")


def _padded(content: bytes) -> bytes:
    return content + b"\0" * (-len(content) % 8)
