"""Everything about a run in one plain structure, ready to be shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix

from sagl.clusters.asking import worth_asking
from sagl.estimator import SAGL
from sagl.evaluation.cka import cka_matrix, with_all_views
from sagl.model import Facts, Layer
from sagl.report.beside import Beside, open_beside
from sagl.report.embedding import Layout, Method, lay_out, lay_out_views
from sagl.report.graph_file import attention_graphs, stored_graph
from sagl.report.inputs import Inputs, check_length
from sagl.run import ALL_VIEWS, GRAPH_LIMIT
from sagl.views import Views

_DENSE_LIMIT = 5_000  # a dense graph has a number for every pair of samples
_MOST_CHANGED = 0.01  # share of samples whose cluster may differ by rounding
_EXAMPLES = 1_500  # shown in all clusters together
_IN_GALLERY = 120
_ASKED = 36  # samples worth asking about
_NEIGHBOURS = 3
_LEAST_SHARE = 0.001  # of a cluster's weight, to count as a neighbour
# Confidences that differ by less are equally typical; then the graph decides.
_CONFIDENCE_STEP = 0.01

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Cluster:
    """One cluster of a run; one without samples has no confidence and no examples."""

    number: int
    size: int
    confidence: float  # mean over its samples
    typical: list[int]  # rows of samples, the most typical first
    doubtful: list[int]  # the most doubtful first; none is both
    # Other clusters, and the share of this one's graph weight that goes there.
    neighbours: list[tuple[int, float]]


@dataclass(frozen=True)
class RunData:
    """A run and what is known about it, ready to be shown."""

    directory: Path
    model: SAGL
    inputs: Inputs
    labels: NDArray[np.int64]  # the cluster of each sample
    confidence: NDArray[np.float64]
    graphs: dict[str, csr_matrix]  # one per view, or that of all, or none
    graph: csr_matrix | None  # of all views
    # Share of samples for which every view alone would choose the same cluster.
    view_agreement: float | None
    clusters: list[Cluster]  # all, by number
    layout: Layout
    maps: dict[str, Layout] = field(default_factory=dict)  # of each view, if asked for
    facts: Facts | None = None  # about single samples
    layers: tuple[Layer, ...] = ()
    leaves: NDArray[np.int64] | None = None  # clusters in the finest layer
    beside: Beside | None = None  # another run
    worth_asking: tuple[int, ...] = ()  # rows, the one that would say most first

    @property
    def used(self) -> list[Cluster]:
        """The clusters that hold samples."""
        return [cluster for cluster in self.clusters if cluster.size]

    @property
    def listed(self) -> list[int]:
        """Rows of the samples that clusters are shown by."""
        return [row for c in self.clusters for row in (*c.typical, *c.doubtful)]

    @property
    def standing_out(self) -> list[int]:
        """Rows of the samples that galleries begin with."""
        scores = [-self.confidence]
        if self.facts is not None:
            repeated = self.facts.duplicate >= 0
            scores += [self.facts.outlier, self.facts.disagreement]
            scores += [np.where(repeated, -self.facts.duplicate, -np.inf)]
        if self.beside is not None:
            moved = self.beside.moved(self.labels)
            scores += [np.where(moved, -self.confidence, -np.inf)]
        rows = set(self.worth_asking)
        for score in scores:
            first = np.argsort(-score, kind="stable")[:_IN_GALLERY]
            rows.update(first[score[first] > -np.inf].tolist())
        return sorted(rows)

    @cached_property
    def cka(self) -> NDArray[np.float64] | None:
        """How alike the views are, where there are two and at least four samples."""
        views = self.inputs.views
        if views is None or len(views.names) < 2 or len(with_all_views(views)) < 4:
            return None
        return cka_matrix(views, batch_size="auto")

    def __len__(self) -> int:
        return len(self.labels)


def collect(
    run: Path,
    inputs: Inputs,
    *,
    graph: bool | None = None,
    embedding: Method = "tsne",
    view_maps: bool = False,
    beside: Path | None = None,
    device: str = "auto",
    progress: Progress = lambda stage: None,
) -> RunData:
    """Read the run and compute what its views, where given, allow.

    ``graph`` says whether to compute a graph per view; by default up to 50,000
    samples. Without views the run's own ``graph.npz`` is used. With ``view_maps`` each
    view has a map of its own; ``beside`` is another run of the same samples.
    """
    model = SAGL.load(run, device)
    settings, labels, confidence = model.settings_, model.labels_, model.confidence_
    n, views = len(labels), inputs.views
    check_length(len(inputs.ids), n, "ids", run)
    other = None
    if beside is not None:
        other = open_beside(beside, run, inputs.ids, labels, settings.n_clusters)
    representations = agreement = None
    graphs: dict[str, csr_matrix] = {}
    if views is not None:
        progress("representations")
        check_length(len(views), n, "views", run)
        representations, agreement = _represent(model, views, run)
        limit = _DENSE_LIMIT if settings.graph == "dense" else GRAPH_LIMIT
        if n <= limit if graph is None else graph:
            progress("graphs")
            graphs = attention_graphs(model, views)
            together = model.attention_graph(views, together=True)
    if not graphs:
        together = stored_graph(run, n)
        graphs = {} if together is None else {ALL_VIEWS: together}
    examples = int(np.clip(_EXAMPLES // (2 * settings.n_clusters), 2, 8))
    progress("layout")
    layout = lay_out(labels, confidence, representations, together, method=embedding)
    maps = {}
    if view_maps and views is not None:
        maps = lay_out_views(views, labels, embedding)
    leaves = getattr(model, "leaves_", None)
    return RunData(
        directory=run,
        model=model,
        inputs=inputs,
        labels=labels,
        confidence=confidence,
        graphs=graphs,
        graph=together,
        view_agreement=agreement,
        clusters=describe_clusters(
            labels, confidence, settings.n_clusters, together, examples
        ),
        layout=layout,
        maps=maps,
        facts=getattr(model, "facts_", None),
        layers=getattr(model, "layers_", ()),
        leaves=None if leaves is None else leaves.labels,
        beside=other,
        worth_asking=_worth_asking(model, views),
    )


def _worth_asking(model: SAGL, views: Views | None) -> tuple[int, ...]:
    """Samples whose clusters a person should tell, where they can be found."""
    if views is None:
        return ()
    try:
        return tuple(worth_asking(model._model, views, _ASKED).tolist())
    except ValueError:  # a run that does not say which samples its anchors are
        return ()


def _represent(
    model: SAGL, views: Views, run: Path
) -> tuple[NDArray[np.float32], float | None]:
    """Representations of all samples, and how often all views choose alike."""
    parts, alike, labels = [], [], []
    for answer in model.answers(views):
        labels.append(answer.q.argmax(dim=1).cpu().numpy())
        choices = torch.stack(answer.p).argmax(dim=2)  # (L, batch)
        alike.append((choices == choices[0]).all(dim=0).cpu().numpy())
        parts.append(torch.cat(answer.p, dim=1).float().cpu().numpy())
    moved = np.concatenate(labels) != model.labels_
    if hasattr(model, "corrections_"):  # they are where people put them
        moved[model.corrections_.rows] = False
    changed, n = int(moved.sum()), len(moved)
    if changed > max(1, _MOST_CHANGED * n):
        raise ValueError(
            f"the views are not those that {run} was fitted on: {changed:,} of {n:,} "
            "samples get another cluster; give the same files in the same order"
        )
    agreement = float(np.concatenate(alike).mean()) if len(views.names) > 1 else None
    return np.concatenate(parts), agreement


def describe_clusters(
    labels: NDArray[np.int64],
    confidence: NDArray[np.float64],
    n_clusters: int,
    graph: csr_matrix | None = None,
    examples: int = 6,
) -> list[Cluster]:
    """Every cluster, by number.

    Typical samples are those of the highest confidence and, among these, those that
    most of their cluster attend to; doubtful ones have the lowest confidence.
    """
    attention, share = np.zeros(len(labels)), np.zeros((n_clusters, n_clusters))
    if graph is not None:
        attention = attended(graph, labels)
        share = weight_between(graph, labels, n_clusters)
        np.fill_diagonal(share, 0)
    clusters = []
    for k in range(n_clusters):
        rows = np.flatnonzero(labels == k)
        sure = np.round(confidence[rows] / _CONFIDENCE_STEP)
        best = rows[np.lexsort((rows, -attention[rows], -sure))]
        typical = best[: min(examples, max(1, len(rows) // 2))]
        rest = np.setdiff1d(rows, typical)
        doubtful = rest[np.lexsort((rest, confidence[rest]))][:examples]
        nearest = np.argsort(-share[k], kind="stable")[:_NEIGHBOURS].tolist()
        beside = [(j, s) for j in nearest if (s := float(share[k, j])) >= _LEAST_SHARE]
        mean = float(confidence[rows].mean()) if len(rows) else 0.0
        lists = typical.tolist(), doubtful.tolist(), beside
        clusters.append(Cluster(k, len(rows), mean, *lists))
    return clusters


def attended(graph: csr_matrix, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """How much weight each sample gets from the others of its cluster."""
    entries = graph.tocoo()
    others = (labels[entries.row] == labels[entries.col]) & (entries.row != entries.col)
    weights = entries.data[others].astype(np.float64)
    total = np.bincount(entries.col[others], weights, minlength=len(labels))
    return total.astype(np.float64)


def weight_between(
    graph: csr_matrix, labels: NDArray[np.int64], n_clusters: int
) -> NDArray[np.float64]:
    """Share of cluster a's weight that goes to cluster b, (C, C); rows sum to one."""
    n = len(labels)
    member = csr_array((np.ones(n), (np.arange(n), labels)), shape=(n, n_clusters))
    mass = np.asarray((member.T @ csr_array(graph) @ member).todense(), np.float64)
    total = mass.sum(axis=1, keepdims=True)
    share: NDArray[np.float64] = mass / np.where(total > 0, total, 1)
    return share
