"""``report.html`` of a run, from start to end.

The page is one HTML file that needs nothing else and asks nobody.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sagl._version import __version__
from sagl.evaluation.cka import cka_matrix
from sagl.report import figures, style, summary
from sagl.report.embedding import stratified_rows, three_levels, tsne
from sagl.report.explorer import payload, shown_rows, write_atlas
from sagl.report.inputs import (
    Inputs,
    Thumbnails,
    data_address,
    first_words,
    make_thumbnails,
)
from sagl.report.run_data import Cluster, RunData, collect
from sagl.report.saving import Drawing, drawing
from sagl.search.count import ClusterCount
from sagl.storage import write_text

__all__ = ["STAGES", "draw_count", "load_extra", "render", "write_report"]

FILE_NAME = "report.html"
STAGES = 7  # how often ``progress`` is called at most
_THUMBNAILS = 5_000  # pictures in one page
_TSNE_ROWS = 1_500  # of each view, at each level
_HERE = Path(__file__).parent
_SCRIPTS = (
    *("dom", "payload", "camera", "points", "colours", "memory", "export"),
    *("overlay", "legend", "panel", "gestures", "search", "explorer", "page"),
)
_LINE = 160  # characters of a text in the list of a cluster's samples

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
    warnings = summary.concerns(data)
    progress("thumbnails")
    images = _thumbnails(data, rows, thumbnails)
    progress("page")
    write_text(out, render(data, drawings, warnings, images, rows))
    if parquet is not None:
        write_atlas(parquet, data)
    return {
        "out": str(out),
        "bytes": out.stat().st_size,
        "n_samples": len(data),
        "protocol": summary.protocol(data),
        "headline": {
            n.label: f"{n.value} {n.unit}".strip() for n in summary.headline(data)
        },
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
    if model.history_ and "loss" in model.history_[0]:
        gamma, beta = model.settings_.gamma, model.settings_.beta
        ax = figures.draw_losses(model.history_, gamma=gamma, beta=beta)[0]
        yield drawing("Loss", ax, "loss")
    if sum(record.get("sparsity") is not None for record in model.history_) > 1:
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


def render(
    data: RunData,
    figures: Sequence[Drawing],
    concerns: Sequence[summary.Concern],
    thumbnails: Thumbnails,
    rows: NDArray[np.int64],
) -> str:
    """The report as HTML. ``rows`` are the samples that the explorer shows."""
    colours = style.cluster_colours(data.n_clusters)
    row_of = {int(row): place for place, row in enumerate(rows)}
    sections = [("explorer", "Explorer"), ("clusters", "Clusters")]
    sections += [("figures", "Figures")] * bool(figures) + [("run", "What was run")]
    drawn = f" {len(rows):,} of {len(data):,} are drawn." * (len(rows) < len(data))
    kind = "text" if data.inputs.kind == "text" else "ids"
    page = {
        "title": data.directory.resolve().name,
        "lead": summary.lead(data),
        "sections": sections,
        "headline": summary.headline(data),
        "protocol": summary.protocol(data),
        "concerns": concerns,
        "checked": summary.CHECKED,
        "explorer_lead": f"Each point is a sample. {data.layout.words}{drawn}",
        "clusters_lead": _clusters_lead(data),
        "kind": "image" if thumbnails.images else kind,
        "pixelated": thumbnails.pixelated,
        "clusters": [
            _cluster(data, cluster, colours, thumbnails, row_of)
            for cluster in data.clusters
        ],
        "empty_clusters": ", ".join(map(str, data.empty)),
        "figures": figures,
        "tables": summary.tables(data),
        "notes": summary.notes(data, thumbnails, len(rows)),
        "footer": f"Made by sagl {__version__}. This page loads nothing and sends "
        "nothing; names and marks stay in your browser until you export them.",
    }
    jinja = style.load("jinja2")
    environment = jinja.Environment(
        loader=jinja.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    markup = style.load("markupsafe").Markup  # what is ours and must not be escaped
    css = _static("report.css")
    script = "\n".join(_static(f"{name}.js") for name in _SCRIPTS)
    script = f'(() => {{\n"use strict";\n{script}}})();\n'
    text: str = environment.get_template("report.html").render(
        page=page,
        markup=markup,
        policy=_policy(css, script),
        css=markup(css),
        script=markup(script),
        payload=markup(payload(data, thumbnails, rows)),
    )
    # Half a character, as in file names that are not UTF-8, cannot be written.
    return text.encode("utf-8", "replace").decode("utf-8")


def _static(name: str) -> str:
    return (_HERE / "static" / name).read_text(encoding="utf-8")


def _policy(css: str, script: str) -> str:
    """Nothing may be loaded, and no script may run but ours."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_digest(script)}'",
            "style-src 'unsafe-inline'",  # for browsers that do not know the next two
            f"style-src-elem '{_digest(css)}'",
            "style-src-attr 'unsafe-inline'",  # inside the figures
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ]
    )


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _clusters_lead(data: RunData) -> str:
    words = (
        "Typical samples have the highest confidence"
        + (" and most attention from their cluster" if data.graphs else "")
        + "; doubtful ones have the lowest. The number is the confidence."
    )
    if data.graph is not None:
        words += " Shares say how much of a cluster's graph weight goes to another."
    return words


def _cluster(
    data: RunData,
    cluster: Cluster,
    colours: Sequence[str],
    thumbnails: Thumbnails,
    row_of: dict[int, int],
) -> dict[str, Any]:
    names = data.inputs.names
    groups = [("Typical", cluster.typical), ("Doubtful", cluster.doubtful)]
    return {
        "number": cluster.number,
        "name": names.name_of(cluster.number),
        "colour": colours[cluster.number],
        "facts": f"{cluster.size:,} {'sample' if cluster.size == 1 else 'samples'} "
        f"({summary.percent(cluster.size / len(data))}), mean confidence "
        f"{cluster.confidence:.3f}",
        "groups": [
            (title, [_example(data, int(row), thumbnails, row_of) for row in rows])
            for title, rows in groups
            if len(rows)
        ],
        "neighbours": [
            {
                "number": k,
                "name": names.name_of(k),
                "colour": colours[k],
                "share": summary.percent(share),
            }
            for k, share in cluster.neighbours
        ],
    }


def _example(
    data: RunData, row: int, thumbnails: Thumbnails, row_of: dict[int, int]
) -> dict[str, Any]:
    """A sample in the list of its cluster; ``row`` is its place in the explorer."""
    text = name = data.inputs.ids[row]
    picture = thumbnails.images.get(row)
    if picture is None and data.inputs.kind == "text":
        text = first_words(" ".join(data.inputs.text(row).split()), _LINE) or name
    return {
        "row": row_of[row],
        "id": name,
        "text": text,
        "picture": "" if picture is None else data_address(picture),
        "confidence": f"{data.confidence[row]:.2f}",
    }
