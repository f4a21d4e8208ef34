"""``sagl report | info | graph``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from sagl.cli.options import (
    DEVICE,
    ID_COLUMN,
    JOIN,
    JSON,
    LABELS,
    QUIET,
    RUN,
    STORE,
    as_text,
    check_joining,
    option,
    print_json,
    refuse_idle,
    samples,
    say,
    show_table,
    takes,
    together,
)

if TYPE_CHECKING:
    from sagl.model import Model


def files_of(run: Path) -> list[str]:
    """What belongs to the run; other files may lie beside it."""
    from sagl.run import CONFIG, FEATURES, GRAPH, PARTS, SOURCE

    later = ("report.html", "names.json", "README.md")
    known = {CONFIG, *PARTS, GRAPH, FEATURES, SOURCE, *later}
    return sorted(path.name for path in run.iterdir() if path.name in known)


def describe(run: Path) -> dict[str, Any]:
    """The facts about a run that both forms of output show."""
    import numpy as np

    from sagl.run import read_config, read_run

    _, saved = read_run(run)
    config = read_config(run)
    sizes = np.bincount(saved.labels, minlength=saved.settings.n_clusters)
    return {
        "run": str(run),
        "sagl": config["sagl"],
        "recipe": config["params"]["recipe"],
        "views": config["views"],
        "n_samples": config["n_samples"],
        "n_clusters": saved.settings.n_clusters,
        "cluster_count": config.get("cluster_count"),
        "score": config.get("score"),
        "view_weights": config.get("view_weights"),
        "missing": config.get("missing"),
        "size_choice": config.get("cluster_sizes"),
        "anchors": len(saved.anchors[0]),
        "n_clusters_found": int((sizes > 0).sum()),
        "cluster_sizes": sizes.tolist(),
        "names": {str(k): name for k, name in sorted(saved.names.items())},
        "corrections": _corrections(saved),
        "stream": None if saved.stream is None else saved.stream._asdict(),
        "mean_confidence": float(saved.confidence.mean()),
        "n_steps": saved.n_steps,
        "settings": config["settings"],
        "last_record": saved.history[-1] if saved.history else None,
    }


def _corrections(saved: Model) -> dict[str, Any] | None:
    """What people said of the run's samples, and the same in words."""
    if saved.corrections is None:
        return None
    kept = saved.corrections._asdict()
    del kept["digests"]
    return {"text": saved.corrections.in_words(), **kept}


def show_run(facts: dict[str, Any]) -> None:
    """The same facts for people."""
    from sagl.schema import check
    from sagl.search.config import SearchConfig
    from sagl.search.count import ClusterCount

    record, sizes = facts["last_record"], sorted(facts["cluster_sizes"])
    names = [view["name"] for view in facts["views"]]
    settings = dict(facts["settings"])
    default = SearchConfig().as_dict()
    search = settings.pop("search", {}).items()
    found = (
        f"{facts['n_clusters_found']} of {facts['n_clusters']} in use, sizes "
        f"{sizes[0]:,} to {sizes[-1]:,}, median {sizes[len(sizes) // 2]:,}"
    )
    if facts["size_choice"] is not None:
        found += f" ({facts['size_choice']})"
    rows = {
        "samples": f"{facts['n_samples']:,}",
        "views": ", ".join(f"{v['name']} ({v['width']})" for v in facts["views"]),
        "clusters": found,
        "mean confidence": f"{facts['mean_confidence']:.3f}",
        "anchors": f"{facts['anchors']:,} samples that new ones attend to",
        "recipe": facts["recipe"],
        "settings": ", ".join(f"{k}={v}" for k, v in settings.items()),
        # Numbers of the search that are not those of today's default.
        "search": ", ".join(f"{k}={v}" for k, v in search if default.get(k) != v),
        "files": ", ".join(files_of(Path(facts["run"]))),
    }
    if record is not None:
        rows["training"] = f"{facts['n_steps']:,} steps, {record['epoch']:,} epochs"
        if not settings["refine"]:
            moved = f"{record['changed']:.1%} of samples still moved at the end"
            rows["training"] += f"; {moved}"
        rows["graph"] = f"{_each(names, record['sparsity'], '.2%')} of all pairs kept"
    if facts["view_weights"] is not None:
        rows["weights"] = _each(names, facts["view_weights"], ".0%")
    if facts["missing"] is not None:
        rows["missing"] = _each(names, facts["missing"], ",") + " samples"
    if facts["names"]:
        rows["names"] = ", ".join(facts["names"].values())
    if facts["corrections"] is not None:
        rows["corrected"] = facts["corrections"]["text"]
    if facts["stream"] is not None:
        seen, updates = facts["stream"]["seen"], facts["stream"]["updates"]
        rows["updated"] = f"{updates:,} times; {seen:,} samples seen in all"
    if facts["cluster_count"] is not None:
        rows["estimated"] = check(ClusterCount, facts["cluster_count"]).in_words()
    table = Table(show_header=False, title=as_text(f"run {facts['run']}"))
    table.add_column(style="bold")
    table.add_column()
    for name, value in rows.items():
        if value:
            table.add_row(name, as_text(value))
    Console().print(table)


def _each(names: list[str], values: list[float], form: str) -> str:
    pairs = zip(names, values, strict=True)
    return ", ".join(f"{name} {value:{form}}" for name, value in pairs)


@takes(show=show_run)
def info(run: Path = RUN) -> dict[str, Any]:
    """Show what a run is: its views, settings, clusters and last record.

    Example: sagl info run
    """
    return describe(run)


drawn = partial(option, panel="The page")


@dataclass
class Known:
    """What is known about the samples: arguments of ``open_inputs``."""

    store: Path | None = samples(
        None, "The feature store that the run was fitted on.", metavar="STORE"
    )
    views: list[str] | None = samples(
        None, "Or its views, as for sagl fit.", "--view", metavar="NAME=FILE"
    )
    id_column: str | None = ID_COLUMN
    source: str | None = samples(
        None, "Pictures or texts to show: a folder, list or table.", metavar="SOURCE"
    )
    labels: Path | None = LABELS
    columns: Path | None = samples(
        None, "A table of more columns to colour by, joined by id.", metavar="FILE"
    )
    names: Path | None = samples(
        None, "Names and marks that the explorer exported (.json).", metavar="FILE"
    )


@dataclass
class Page:
    """What the page has: arguments of ``write_report``."""

    out: Path | None = drawn(None, "By default report.html in RUN.", metavar="FILE")
    embedding: str = drawn(
        "tsne",
        "How the map is made: tsne, or umap (of the extra peers).",
        metavar="HOW",
    )
    view_maps: bool = drawn(
        False, "A map of each view as well, side by side.", "--view-maps"
    )
    beside: Path | None = drawn(
        None, "Another run of these samples: which of them moved.", metavar="RUN"
    )
    map_file: Path | None = drawn(
        None, "Also draw the labelled map: .png, .svg or .pdf.", "--map", metavar="FILE"
    )
    parquet: Path | None = drawn(
        None, "Also write a table for embedding-atlas.", metavar="FILE"
    )
    thumbnails: bool = drawn(True, "Show pictures, at most 5,000.")
    graph: bool | None = drawn(
        None, "A graph per view; by default up to 50,000 samples."
    )
    device: str = DEVICE


def _show_report(result: dict[str, Any]) -> None:
    for label, value in result["headline"].items():
        say(f"{label}: {value}")
    for warning in result["warnings"]:
        say(f"warning: {warning}")
    if result["moved"] is not None:
        say(f"moved between the two runs: {result['moved']:,} samples")
    if result["map"]:
        say(f"map: {result['map']}")
    if result["parquet"]:
        say(f"embedding-atlas {result['parquet']} --x x --y y --neighbors neighbors")
    say(f"{result['out']} ({result['bytes'] / 1e6:.1f} MB)", style="bold")


@takes(Known, Page, show=_show_report)
def report(
    known: Known,
    page: Page,
    run: Path = RUN,
    tsne: bool = drawn(True, "Draw t-SNE figures of the views."),
    quiet: bool = QUIET,
) -> dict[str, Any]:
    """Write what a run found as one page that opens without a server or network.

    Example: sagl report run --labels labels.csv
    """
    from sagl.report.inputs import open_inputs
    from sagl.report.page import write_report

    check_joining(known.store, known.views, known.id_column)
    if not known.views:
        refuse_idle("it is of --view files", "id_column")
    known.views = known.views or []
    inputs = open_inputs(run, **vars(known))
    if inputs.kind != "image":
        refuse_idle("there are no pictures to show", "thumbnails")
    if inputs.views is None:
        idle = ("tsne", "graph", "view_maps")
        refuse_idle("the views are not there; give --view or --store", *idle)
    rows = None if tsne else 0
    with report_progress(quiet) as begun:
        return write_report(run, inputs, tsne_rows=rows, progress=begun, **vars(page))


@contextmanager
def report_progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    """A bar on stderr with the name of what is being done."""
    from sagl.progress import progress
    from sagl.report.page import STAGES

    with progress(STAGES, "report", "parts", show=not quiet) as bar:

        def begun(stage: str) -> None:
            bar.note(stage)
            bar.update(1)

        yield begun


_MEASURES = {
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
            [_MEASURES[key], f"{value:{',' if isinstance(value, int) else '.4f'}}"]
            for key, value in measures.items()
            if value is not None
        ]
        show_table(f"graph of {run}", ("measure", "value"), rows)
