"""A run's sparse graph as other programs read it: SciPy, tables, NetworkX, Gephi."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow.csv import write_csv
from pyarrow.parquet import write_table
from scipy.sparse import csr_array, csr_matrix, save_npz

from sagl.estimator import SAGL
from sagl.features.files import SUFFIXES, read_array, read_labels
from sagl.features.samples import file_error, reading
from sagl.features.split import read_input
from sagl.report.inputs import open_inputs
from sagl.run import GRAPH, read_config
from sagl.storage import check_writable, replacing
from sagl.views import Views

__all__ = [
    "RunGraph",
    "attention_graphs",
    "check_graph_path",
    "given_files",
    "open_graph",
    "write_graph",
]

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class RunGraph:
    """A graph and what is known about its samples."""

    weights: csr_array  # (n, n), who attends to whom
    ids: Sequence[str]  # the row's number where there is no name
    clusters: NDArray[np.int64]
    labels: NDArray[Any] | None = None  # true classes, for measures alone


def attention_graphs(model: SAGL, views: Views) -> dict[str, csr_matrix]:
    """Who attends to whom among the samples of these views, by the view's name."""
    return dict(zip(model.view_names_, model.attention_graph(views), strict=True))


def open_graph(
    run: Path,
    *,
    store: Path | None = None,
    views: Sequence[str] = (),
    join: str = "error",
    id_column: str | None = None,
    labels: Path | None = None,
    device: str = "auto",
) -> RunGraph:
    """The graph of a run's training samples, or of others that are given.

    ``views`` are names of the run's views, whose graph is wanted, and ``NAME=FILE``,
    which give samples; without a name the graph is that of all views. Without given
    samples it is that of the features that the run knows of, or its own
    ``graph.npz``.
    """
    names = _view_names(run)
    wanted = [text for text in views if text in names]
    files = given_files(run, views)
    truth = None if labels is None else read_labels(labels)
    model = SAGL.load(run, device)
    if store is not None or files:
        given = read_input(
            store,
            files,
            names,
            join,  # type: ignore[arg-type]
            id_column,
        )
        weights = _weights(model, given.views, wanted)
        known = given.labels if truth is None else truth
        return RunGraph(weights, given.ids, model.predict(given.views), known)
    inputs = open_inputs(run)
    stored = None if wanted else stored_graph(run, len(model.labels_))
    if stored is not None:
        weights = csr_array(stored)
    elif inputs.views is not None:
        weights = _weights(model, inputs.views, wanted)
    else:
        notes = "".join(f" ({note})" for note in inputs.notes)
        raise ValueError(
            f"{run} does not hold the features that this graph needs{notes}; give "
            "them as a store or with --view NAME=FILE"
        )
    known = inputs.labels if truth is None else truth
    return RunGraph(weights, list(inputs.ids), model.labels_, known)


def given_files(run: Path, views: Sequence[str]) -> list[str]:
    """Those that are not names of the run's views but name files."""
    names = _view_names(run)
    files = [text for text in views if text not in names]
    for text in files:
        suffix = Path(text.partition("::")[0]).suffix.lower()
        if "=" not in text and suffix not in SUFFIXES:
            raise ValueError(
                f"--view {text}: {run} has no view of this name, only "
                f"{', '.join(names)}; files are given as NAME=FILE"
            )
    return files


def _view_names(run: Path) -> list[str]:
    return [view["name"] for view in read_config(run)["views"]]


def _weights(model: SAGL, views: Views, wanted: Sequence[str]) -> csr_array:
    """That of all views, or the average over the wanted ones: rows sum to one."""
    if not wanted:
        return csr_array(model.attention_graph(views, together=True))
    graphs = attention_graphs(model, views)
    chosen = [graphs[name] for name in wanted]
    return csr_array(sum(chosen[1:], start=chosen[0]) / len(chosen))


def stored_graph(run: Path, n: int) -> csr_matrix | None:
    """The graph in the run, if there is one; refused unless it is of n samples."""
    path = run / GRAPH
    if not path.is_file():
        return None
    # Not by SciPy's own reader: that one inflates what it finds, and does not look
    # whether indices lead out of the matrix.
    with reading(path, "remove it or fit again"):
        names = ("shape", "indptr", "indices", "data")
        shape, *parts = (read_array(path, name).copy() for name in names)
        if (form := tuple(shape.tolist())) != (n, n):
            raise file_error(
                path, f"has shape {form} and the run {n} samples; remove it"
            )
        indptr, indices, data = parts
        graph = csr_matrix((data, indices, indptr), (n, n))
        graph.check_format()
        if not np.isfinite(graph.data).all():
            raise ValueError("its weights are no finite numbers")
    return graph


def check_graph_path(path: Path) -> None:
    """Refuse an output that could not be written, before any work is done."""
    check_writable(path, "graphs are written as", *_WRITERS)


def write_graph(path: Path, graph: RunGraph) -> None:
    """Write the graph, whole or not at all, in the form that the suffix names.

    ``.npz`` is SciPy's CSR. ``.csv`` and ``.parquet`` are lists of edges: source,
    target, weight. ``.graphml`` and ``.gexf`` are for NetworkX and Gephi, directed,
    with each sample's cluster.
    """
    check_graph_path(path)
    with replacing(path) as temporary, temporary.open("wb") as file:
        _WRITERS[path.suffix.lower()](file, graph)


def _edges(graph: RunGraph) -> pa.Table:
    """Ids of the sources and targets, and weights; zeros are no edges."""
    pairs = graph.weights.tocoo()
    held = pairs.data != 0
    ids = pa.array(graph.ids, pa.string())
    columns = {
        "source": ids.take(pa.array(pairs.row[held])),
        "target": ids.take(pa.array(pairs.col[held])),
        "weight": pairs.data[held].astype(np.float64),
    }
    return pa.table(columns)


def _write_xml(file: Any, graph: RunGraph, form: str) -> None:
    import networkx as nx

    bad = next((name for name in graph.ids if _NOT_XML.search(name)), None)
    if bad is not None:
        raise ValueError(
            f"the sample id {bad!r} has a character that XML cannot hold; write .csv, "
            ".parquet or .npz"
        )
    network = nx.DiGraph()
    clusters = ({"cluster": k} for k in graph.clusters.tolist())
    network.add_nodes_from(zip(graph.ids, clusters, strict=True))
    edges = (column.to_pylist() for column in _edges(graph).columns)
    network.add_weighted_edges_from(zip(*edges, strict=True))
    getattr(nx, f"write_{form}")(network, file)


_WRITERS: dict[str, Callable[[Any, RunGraph], None]] = {
    ".npz": lambda file, graph: save_npz(file, graph.weights),
    ".parquet": lambda file, graph: write_table(_edges(graph), file),
    ".csv": lambda file, graph: write_csv(_edges(graph), file),
    ".graphml": lambda file, graph: _write_xml(file, graph, "graphml"),
    ".gexf": lambda file, graph: _write_xml(file, graph, "gexf"),
}
