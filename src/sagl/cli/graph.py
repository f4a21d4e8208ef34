"""``sagl graph``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sagl.cli.options import (
    DEVICE,
    ID_COLUMN,
    JOIN,
    JSON,
    LABELS,
    RUN,
    STORE,
    check_joining,
    option,
    print_json,
    refuse_idle,
    say,
    show_table,
    together,
)

_NAMES = {
    "samples": "samples",
    "neighbours": "neighbours per row, mean",
    "neighbours_p5": "5th percentile",
    "neighbours_p95": "95th percentile",
    "no_neighbour": "rows with no neighbour",
    "sparsity": "sparsity (non-zeros of all entries)",
    "asymmetry": "asymmetry",
    "components": "connected components",
    "inside": "weight inside the classes per row",
    "inside_off_diagonal": "without the diagonal",
    "edges_inside": "edges inside the classes",
    "components_per_class": "components per class",
    "propagation": "label propagation, ACC",
    "spectral": "spectral clustering, ACC",
}


def graph(
    run: Path = RUN,
    store: Path | None = STORE,
    view: list[str] | None = option(
        None,
        "The view whose graph is wanted; by default that of all together. NAME=FILE "
        "gives samples, as for sagl predict; by default those that the run was fitted "
        "on. Repeat.",
        metavar="NAME",
    ),
    out: Path | None = option(
        None,
        ".npz (SciPy CSR), .parquet or .csv (edges), .graphml or .gexf.",
        metavar="FILE",
    ),
    labels: Path | None = LABELS,
    id_column: str | None = ID_COLUMN,
    join: str | None = JOIN,
    device: str = DEVICE,
    as_json: bool = JSON,
) -> None:
    """Write or measure the sparse graph: who attends to whom.

    Example: sagl graph run --out graph.graphml
    """
    from sagl.environment import pick_device
    from sagl.evaluation.graphs import graph_measures
    from sagl.report.graph_file import (
        check_graph_path,
        given_files,
        open_graph,
        write_graph,
    )

    if out is not None:
        check_graph_path(out)
        if not as_json:
            refuse_idle("with --out nothing is measured but by --json", "labels")
    files = given_files(run, view or ())
    check_joining(store, files, id_column)
    if store is None and not files:
        refuse_idle("the samples are those of the fit", "join", "id_column")
    given: dict[str, Any] = {"store": store, "views": view or (), "labels": labels}
    given["id_column"] = id_column
    with together(pick_device(device)) as ranks:
        opened = open_graph(run, **given, join=join or "error", device=device)
    if not ranks.first:
        return
    measures = {}
    if as_json or out is None:  # before anything is written: it may refuse the labels
        measures = graph_measures(opened.weights, opened.labels).as_dict()
    if out is not None:
        write_graph(out, opened)
    if as_json:
        print_json({"out": None if out is None else str(out), **measures})
    elif out is not None:
        n, edges = len(opened.ids), opened.weights.count_nonzero()
        say(f"{n:,} samples and {edges:,} edges in {out}")
    else:
        rows = [
            [_NAMES[key], f"{value:{',' if isinstance(value, int) else '.4f'}}"]
            for key, value in measures.items()
            if value is not None
        ]
        show_table(f"graph of {run}", ("measure", "value"), rows)
