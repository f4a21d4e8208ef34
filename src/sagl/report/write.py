"""``report.html`` of a run, from start to end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sagl.evaluation.cka import cka_matrix
from sagl.partition.count import ClusterCount
from sagl.report import figures, style
from sagl.report.embedding import stratified_rows, three_levels, tsne
from sagl.report.explorer import shown_rows, write_atlas
from sagl.report.inputs import Inputs, Thumbnails, make_thumbnails
from sagl.report.page import render
from sagl.report.run_data import RunData, collect
from sagl.report.saving import Drawing, drawing
from sagl.report.summary import concerns, headline, protocol
from sagl.storage import write_text

FILE_NAME = "report.html"
STAGES = 7  # how often ``progress`` is called at most
_THUMBNAILS = 5_000  # pictures in one page
_TSNE_ROWS = 1_500  # of each view, at each level

Progress = Callable[[str], None]


def write_report(
    run: Path,
    inputs: Inputs,
    out: Path | None = None,
    *,
    thumbnails: bool = True,
    tsne_rows: int | None = None,
    graph: bool | None = None,
    parquet: Path | None = None,
    device: str = "auto",
    progress: Progress = lambda what: None,
) -> dict[str, Any]:
    """Write the report of a run and say what is in it.

    Parameters
    ----------
    run : Path
        A run directory.
    inputs : Inputs
        From :func:`~sagl.report.inputs.open_inputs`, or made by hand.
    out : Path, optional
        By default ``report.html`` in the run.
    thumbnails : bool, default=True
        Whether pictures are shown, where there are any.
    tsne_rows : int, optional
        Samples in the t-SNE figures; 0 leaves those figures out.
    graph : bool, optional
        Whether to compute a graph per view; by default up to 50,000 samples.
    parquet : Path, optional
        Where to write a table for embedding-atlas.
    device : str, default="auto"
    progress : callable
        Told what is done next.

    Returns
    -------
    dict
        Path and size of the page, headline numbers, warnings.
    """
    out = run / FILE_NAME if out is None else out
    check_writable(out, ".html")
    if parquet is not None:
        check_writable(parquet, ".parquet")
        style.load("pyarrow.parquet")
    load_extra()
    data = collect(run, inputs, graph=graph, device=device, progress=progress)
    rows = shown_rows(data)
    progress("figures")
    drawings = list(draw_run(data, _TSNE_ROWS if tsne_rows is None else tsne_rows))
    progress("warnings")
    warnings = concerns(data)
    progress("thumbnails")
    pictures = _thumbnails(data, rows, thumbnails)
    progress("page")
    write_text(out, render(data, drawings, warnings, pictures, rows))
    if parquet is not None:
        write_atlas(parquet, data)
    return {
        "out": str(out),
        "bytes": out.stat().st_size,
        "n_samples": len(data),
        "protocol": protocol(data),
        "headline": {n.label: f"{n.value} {n.unit}".strip() for n in headline(data)},
        "warnings": [f"{c.title}. {c.text}" for c in warnings],
        "parquet": None if parquet is None else str(parquet),
    }


def load_extra() -> None:
    """Refuse at once, and not after minutes of work, when a library is missing."""
    for module in ("jinja2", "matplotlib", "openTSNE"):
        style.load(module)


def check_writable(path: Path, suffix: str) -> None:
    """Refuse a file that could not be written, before any work is done."""
    if path.suffix.lower() != suffix:
        raise ValueError(f"{path}: the name must end in {suffix}")
    if path.is_dir():
        raise ValueError(f"{path} is a directory; name a file in it")
    if not path.parent.is_dir():
        raise ValueError(f"{path}: there is no directory {path.parent}; make it first")


def _thumbnails(data: RunData, rows: NDArray[np.int64], wanted: bool) -> Thumbnails:
    if not wanted or data.inputs.kind != "image":
        return Thumbnails({}, False, 0)
    # First those in the lists of the clusters, then others at random.
    listed = [row for c in data.clusters for row in (*c.typical, *c.doubtful)]
    others = np.random.default_rng(0).permutation(np.setdiff1d(rows, listed))
    some = [*listed, *others][: max(_THUMBNAILS, len(listed))]
    return make_thumbnails(sorted(int(row) for row in some), data.inputs.sample)


def draw_run(data: RunData, tsne_rows: int = _TSNE_ROWS) -> Iterator[Drawing]:
    """All figures that the data of a run allow; no t-SNE with ``tsne_rows=0``."""
    model, views, truth = data.model, data.inputs.views, data.inputs.labels
    given = data.inputs.names
    numbers = range(data.n_clusters)
    names = [given.name_of(k) if given.clusters else str(k) for k in numbers]
    ax = figures.draw_cluster_sizes(data.labels, data.n_clusters, names=names)
    yield drawing("Cluster sizes", ax, "sizes")
    yield drawing("Confidence", figures.draw_confidence(data.confidence), "confidence")
    count = getattr(model, "cluster_count_", None)
    if count is not None:
        yield drawing("How many clusters", draw_count(count), "cluster-count")
    if truth is not None:
        ax = figures.draw_confusion(truth, data.labels)
        yield drawing("Clusters and true classes", ax, "confusion")
    if views is not None and len(views.names) > 1 and len(views) >= 4:
        ax = figures.draw_cka(cka_matrix(views, batch_size="auto"), views.names)
        yield drawing("How alike the views are", ax, "cka")
    if model.history_:
        gamma, beta = model.settings_.gamma, model.settings_.beta
        ax = figures.draw_losses(model.history_, gamma=gamma, beta=beta)[0]
        yield drawing("Loss", ax, "loss")
    if any(record.get("sparsity") is not None for record in model.history_):
        ax = figures.draw_sparsity(model.history_, model.view_names_)
        yield drawing("Sparsity of the graphs in training", ax, "sparsity")
    for i, (name, graph) in enumerate(data.graphs.items()):
        ax = figures.draw_graph(graph, data.labels, name=name)
        yield drawing(f"Graph: {name}", ax, f"graph{i}")
    if views is None or not tsne_rows:
        return
    rows = stratified_rows(data.labels, tsne_rows)
    for i, (name, levels) in enumerate(three_levels(model, views, rows).items()):
        points = {level: tsne(features) for level, features in levels.items()}
        ax = figures.draw_tsne_levels(points, data.labels[rows], name=name)[0]
        title = f"From features to representations: {name}"
        yield drawing(title, ax, f"tsne{i}", wide=True)


def draw_count(count: ClusterCount) -> style.Axes:
    """The curve behind an estimated number of clusters."""
    return figures.draw_cluster_count(
        [point.n_clusters for point in count.curve],
        [point.value for point in count.curve],
        [point.value - point.deviation for point in count.curve],
        [point.value + point.deviation for point in count.curve],
        chosen=count.best,
        measure="information × agreement",
    )
