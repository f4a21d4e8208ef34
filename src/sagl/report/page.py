"""``report.html`` of a run, from start to end.

The page is one HTML file that needs nothing else and asks nobody.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from html import escape
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sagl._version import __version__
from sagl.report import figures, style, summary
from sagl.report.embedding import (
    LEVELS,
    Method,
    check_method,
    embed,
    stratified_rows,
    three_levels,
)
from sagl.report.explorer import (
    Thumbnails,
    make_thumbnails,
    payload,
    shown_rows,
    write_atlas,
)
from sagl.report.inputs import Inputs
from sagl.report.run_data import Progress, RunData, collect
from sagl.report.saving import check_format, picture, save
from sagl.search.count import ClusterCount
from sagl.storage import check_writable, write_text

__all__ = ["STAGES", "draw_count", "load_extra", "render", "write_report"]

FILE_NAME = "report.html"
STAGES = 7  # how often ``progress`` is called at most
_THUMBNAILS = 5_000  # pictures in one page
_TSNE_ROWS = 1_500  # of each view, at each level
_MOST_SVG = 600_000  # characters of a figure; beyond, a PNG is smaller
_SCRIPTS = (
    *("dom", "data", "corrections", "layers", "camera", "points", "colours"),
    *("overlay", "stage"),
    *("gallery", "tree", "panel", "explorer", "search"),
    "controls",  # begins
)
_LINE = 160  # characters of a text in the list of a cluster's samples


class Drawing(NamedTuple):
    """A figure for the page: markup of our own making, and plain words."""

    title: str
    content: str
    caption: str
    wide: bool = False


def write_report(
    run: Path,
    inputs: Inputs,
    out: Path | None = None,
    *,
    thumbnails: bool = True,
    tsne_rows: int | None = None,
    graph: bool | None = None,
    embedding: Method = "tsne",
    view_maps: bool = False,
    beside: Path | None = None,
    map_file: Path | None = None,
    parquet: Path | None = None,
    device: str = "auto",
    progress: Progress = lambda stage: None,
) -> dict[str, Any]:
    """Write the report of a run, by default ``report.html`` in it.

    ``inputs`` are those of :func:`~sagl.report.inputs.open_inputs`, or made by hand. A
    ``graph`` per view is computed by default up to 50,000 samples; ``tsne_rows`` is how
    many samples the t-SNE figures show, 0 for none. The map is made by ``embedding``,
    "tsne" or "umap"; with ``view_maps`` each view has a map of its own as well.
    ``beside`` is another run to compare with. ``map_file`` names a labelled map (.png,
    .svg, .pdf) and ``parquet`` a table for embedding-atlas to be written as well.
    Returned are path and size of the page, its headline numbers and its warnings.
    """
    out = run / FILE_NAME if out is None else out
    check_writable(out, "the name must end in", ".html")
    if parquet is not None:
        check_writable(parquet, "the name must end in", ".parquet")
    if map_file is not None:
        check_format(map_file)
        check_writable(map_file, "the name must end in", map_file.suffix)
    load_extra()
    check_method(embedding)
    data = collect(
        run,
        inputs,
        graph=graph,
        embedding=embedding,
        view_maps=view_maps,
        beside=beside,
        device=device,
        progress=progress,
    )
    rows = shown_rows(data)
    progress("figures")
    drawings = list(draw_run(data, _TSNE_ROWS if tsne_rows is None else tsne_rows))
    progress("warnings")
    warnings = summary.concerns(data)
    progress("thumbnails")
    images = Thumbnails({}, False, 0)
    if thumbnails and inputs.kind == "image":
        # First those in lists and galleries, then others at random.
        first = list(dict.fromkeys([*data.listed, *data.standing_out]))
        others = np.setdiff1d(rows, first)
        more = np.random.default_rng(0).permutation(others)[:_THUMBNAILS]
        pictured = [*first, *more.tolist()][: max(_THUMBNAILS, len(first))]
        images = make_thumbnails(sorted(pictured), inputs.sample)
    progress("page")
    write_text(out, render(data, drawings, warnings, images, rows))
    if map_file is not None:
        ax = figures.draw_map(data.layout.points, data.labels, names=_names(data))
        save(ax, map_file)
    if parquet is not None:
        write_atlas(parquet, data)
    return {
        "out": str(out),
        "bytes": out.stat().st_size,
        "n_samples": len(data),
        "protocol": summary.protocol(data),
        "headline": {n.label: n.value for n in summary.headline(data)},
        "warnings": [f"{c.title}. {c.text}" for c in warnings],
        "moved": None if data.beside is None else data.beside.n_moved,
        "map": None if map_file is None else str(map_file),
        "parquet": None if parquet is None else str(parquet),
    }


def load_extra() -> None:
    """Refuse at once, and not after minutes of work, when a library is missing."""
    for module in ("jinja2", "matplotlib", "openTSNE"):
        style.load(module)


def draw_run(data: RunData, tsne_rows: int = _TSNE_ROWS) -> Iterator[Drawing]:
    """All figures that the data of a run allow; no t-SNE with ``tsne_rows=0``."""
    model, views, truth = data.model, data.inputs.views, data.inputs.labels
    history = model.history_
    numbers = count()

    def drawing(title: str, ax: style.Axes, *, wide: bool = False) -> Drawing:
        return _drawing(title, ax, f"figure-{next(numbers)}", wide)

    names = None
    if data.inputs.names.clusters:
        names = _names(data)
    ax = figures.draw_cluster_sizes(data.labels, len(data.clusters), names=names)
    yield drawing("Cluster sizes", ax)
    yield drawing("Confidence", figures.draw_confidence(data.confidence))
    if getattr(model, "cluster_count_", None) is not None:
        yield drawing("How many clusters", draw_count(model.cluster_count_))
    if truth is not None:
        ax = figures.draw_confusion(truth, data.labels)
        yield drawing("Clusters and true classes", ax)
    if data.cka is not None:
        ax = figures.draw_cka(data.cka, model.view_names_)
        yield drawing("How alike the views are", ax)
    if history and "loss" in history[0]:
        gamma, beta = model.settings_.gamma, model.settings_.beta
        yield drawing("Loss", figures.draw_losses(history, gamma=gamma, beta=beta)[0])
    if sum(record.get("sparsity") is not None for record in history) > 1:
        ax = figures.draw_sparsity(history, model.view_names_)
        yield drawing("Sparsity of the graphs in training", ax)
    for name, graph in data.graphs.items():
        ax = figures.draw_graph(graph, data.labels, name=name)
        yield drawing(f"Graph: {name}", ax)
    if views is None or not tsne_rows:
        return
    rows = stratified_rows(data.labels, tsne_rows)
    for name, levels in three_levels(model, views, rows).items():
        there = ~np.isnan(levels[LEVELS[0]][:, 0])  # not of those that miss the view
        points = {level: embed(of[there]) for level, of in levels.items()}
        ax = figures.draw_tsne_levels(points, data.labels[rows[there]], name=name)[0]
        yield drawing(f"From features to representations: {name}", ax, wide=True)


def draw_beside(data: RunData) -> Drawing | None:
    """Who went where, between this run's clusters and those of another."""
    beside = data.beside
    if beside is None:
        return None
    ax = figures.draw_flow(
        beside.flow,
        _names(data),
        beside.names,
        titles=(data.directory.resolve().name, beside.name),
        match=beside.match,
    )
    return _drawing("Who went where", ax, "flow", wide=True)


def _drawing(title: str, ax: style.Axes, name: str, wide: bool) -> Drawing:
    svg, png, alt, caption = picture(ax, name)
    if len(svg) > _MOST_SVG:
        address = f"data:image/png;base64,{base64.b64encode(png).decode()}"
        svg = f'<img src="{address}" alt="{escape(alt)}">'
    return Drawing(title, svg, caption, wide)


def _names(data: RunData) -> list[str]:
    return [data.inputs.names.name_of(cluster.number) for cluster in data.clusters]


def draw_count(count: ClusterCount) -> style.Axes:
    """The curve behind an estimated number of clusters."""
    values = np.array([point.value for point in count.curve])
    deviations = np.array([point.deviation for point in count.curve])
    return figures.draw_cluster_count(
        [point.n_clusters for point in count.curve],
        values,
        values - deviations,
        values + deviations,
        chosen=count.best,
        measure="information × agreement",
    )


def render(
    data: RunData,
    figures: Sequence[Drawing],
    concerns: Sequence[summary.Concern],
    thumbnails: Thumbnails,
    rows: NDArray[np.int64],
) -> str:
    """The report as HTML. ``rows`` are the samples that the explorer shows."""
    inputs = data.inputs

    def line(row: int) -> str:
        """What stands for a sample without a picture in the list of its cluster."""
        text = inputs.text(row) if inputs.kind == "text" else ""
        return style.plain(text, _LINE) or inputs.ids[row]

    jinja = style.load("jinja2")
    template = jinja.Template(
        _read("templates/report.html"),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = "\n".join(_read(f"static/{name}.js") for name in _SCRIPTS)
    script = f'(() => {{\n"use strict";\n{script}}})();\n'
    text: str = template.render(
        data=data,
        summary=summary,
        figures=figures,
        flow=draw_beside(data),
        concerns=concerns,
        thumbnails=thumbnails,
        kind="image" if thumbnails.images else inputs.kind,
        colours=style.cluster_colours(len(data.clusters)),
        place={int(row): place for place, row in enumerate(rows)},
        line=line,
        digest=_digest,
        version=__version__,
        css=_read("static/report.css"),
        script=script,
        payload=payload(data, thumbnails, rows),
    )
    # Half a character, as in file names that are not UTF-8, cannot be written.
    return text.encode("utf-8", "replace").decode("utf-8")


def _read(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """What the page's policy knows our script and style by."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
