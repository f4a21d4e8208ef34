"""The figures of a run, drawn for its report."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from sagl.evaluation.cka import cka_matrix
from sagl.partition.count import ClusterCount
from sagl.report.build import RunData
from sagl.report.saving import picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TSNE_ROWS = 1_500  # of each view, at each level
_MOST_SVG = 600_000  # characters; beyond, a PNG is smaller


@dataclass(frozen=True)
class Drawing:
    """A figure for the page: markup of our own making, and plain words."""

    title: str
    content: str
    caption: str
    wide: bool = False


def draw_run(data: RunData, *, tsne_rows: int = _TSNE_ROWS) -> Iterator[Drawing]:
    """All figures that the data of a run allow; no t-SNE with ``tsne_rows=0``."""
    from sagl.report import figures

    model, views, truth = data.model, data.inputs.views, data.inputs.labels
    names = [data.inputs.names.name_of(k) for k in range(data.n_clusters)]
    if not data.inputs.names.clusters:
        names = [str(k) for k in range(data.n_clusters)]
    yield _drawing(
        "Cluster sizes",
        figures.draw_cluster_sizes(data.labels, data.n_clusters, names=names),
        "sizes",
    )
    yield _drawing("Confidence", figures.draw_confidence(data.confidence), "confidence")
    count = getattr(model, "cluster_count_", None)
    if count is not None:
        drawn = draw_count(count)
        yield _drawing("How many clusters", drawn, "cluster-count")
    if truth is not None:
        drawn = figures.draw_confusion(truth, data.labels)
        yield _drawing("Clusters and true classes", drawn, "confusion")
    if views is not None and len(views.names) > 1 and len(views) >= 4:
        drawn = figures.draw_cka(cka_matrix(views, batch_size="auto"), views.names)
        yield _drawing("How alike the views are", drawn, "cka")
    if model.history_:
        gamma, beta = model.settings_.gamma, model.settings_.beta
        drawn = figures.draw_losses(model.history_, gamma=gamma, beta=beta)[0]
        yield _drawing("Loss", drawn, "loss")
        drawn = figures.draw_sparsity(model.history_, model.view_names_)
        yield _drawing("Sparsity of the graphs in training", drawn, "sparsity")
    for i, (name, graph) in enumerate(data.graphs.items()):
        drawn = figures.draw_graph(graph, data.labels, name=name)
        yield _drawing(f"Graph: {name}", drawn, f"graph{i}")
    if views is not None and tsne_rows:
        yield from _tsne(data, tsne_rows)


def draw_count(count: ClusterCount) -> Axes:
    """The curve behind an estimated number of clusters."""
    from sagl.report import figures

    return figures.draw_cluster_count(
        [point.n_clusters for point in count.curve],
        [point.value for point in count.curve],
        [point.value - point.deviation for point in count.curve],
        [point.value + point.deviation for point in count.curve],
        chosen=count.best,
        measure="information × agreement",
    )


def _tsne(data: RunData, size: int) -> Iterator[Drawing]:
    from sagl.report import figures
    from sagl.report.embedding import stratified_rows, three_levels, tsne

    assert data.inputs.views is not None
    rows = stratified_rows(data.labels, size)
    found = three_levels(data.model, data.inputs.views, rows)
    for i, (name, levels) in enumerate(found.items()):
        points = {level: tsne(features) for level, features in levels.named().items()}
        drawn = figures.draw_tsne_levels(points, data.labels[rows], name=name)[0]
        title = f"From features to representations: {name}"
        yield _drawing(title, drawn, f"tsne{i}", wide=True)


def _drawing(title: str, drawn: Axes, name: str, *, wide: bool = False) -> Drawing:
    made = picture(drawn, f"figure-{name}")
    content = made.svg
    if len(content) > _MOST_SVG:
        encoded = base64.b64encode(made.png).decode()
        address = f"data:image/png;base64,{encoded}"
        content = f'<img src="{address}" alt="{escape(made.alt)}">'
    return Drawing(title, content, made.caption, wide)
