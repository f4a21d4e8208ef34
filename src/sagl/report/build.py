"""Everything about a run in one plain structure, and the report made from it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, load_npz

from sagl.estimator import SAGL
from sagl.report.clusters import Cluster, describe_clusters
from sagl.report.inputs import Inputs, check_length
from sagl.report.layout import Layout, lay_out
from sagl.report.names import run_checksum
from sagl.run import GRAPH, read_config

MEAN_GRAPH = "mean of the views"
# All samples attend to all: beyond this, graphs are computed only when asked for.
GRAPH_LIMIT = 50_000
_DENSE_LIMIT = 5_000  # a dense graph has a number for every pair of samples
_MOST_CHANGED = 0.01  # share of samples whose cluster may differ by rounding
_EXAMPLES = 1_500  # shown in all clusters together

Progress = Callable[[str], None]


@dataclass(frozen=True)
class RunData:
    """A run and what is known about it, ready to be shown.

    Attributes
    ----------
    directory : Path
    config : dict
        ``config.json``.
    checksum : str
        What tells this run from all others.
    model : SAGL
    inputs : Inputs
    graphs : dict of str to csr_matrix
        One per view, or one mean graph, or none.
    mean_graph : csr_matrix or None
    representations : ndarray of shape (n, L · C) or None
        Of the views, side by side.
    view_labels : ndarray of shape (L, n) or None
        The cluster that each view alone would choose.
    clusters : list of Cluster
        Those that hold samples.
    layout : Layout
    """

    directory: Path
    config: dict[str, Any]
    checksum: str
    model: SAGL
    inputs: Inputs
    graphs: dict[str, csr_matrix]
    mean_graph: csr_matrix | None
    representations: NDArray[np.float32] | None
    view_labels: NDArray[np.int64] | None
    clusters: list[Cluster]
    layout: Layout

    @property
    def labels(self) -> NDArray[np.int64]:
        labels: NDArray[np.int64] = self.model.labels_
        return labels

    @property
    def confidence(self) -> NDArray[np.float64]:
        return self.model.confidence_

    @property
    def n_clusters(self) -> int:
        return int(self.model.settings_.n_clusters)

    def __len__(self) -> int:
        return len(self.labels)


def collect(
    run: Path,
    inputs: Inputs,
    *,
    graph: bool | None = None,
    device: str = "auto",
    seed: int = 0,
    progress: Progress = lambda what: None,
) -> RunData:
    """Read the run and compute what its views, where given, allow.

    ``graph`` says whether to compute a graph per view; by default up to 50,000
    samples. Without views the run's own ``graph.npz`` is used.
    """
    model = SAGL.load(run, device)
    n = len(model.labels_)
    check_length(len(inputs.ids), n, "ids", run)
    representations = view_labels = None
    graphs: dict[str, csr_matrix] = {}
    if inputs.views is not None:
        progress("representations")
        check_length(len(inputs.views), n, "views", run)
        representations, view_labels = _represent(model, inputs, run)
        if _wants_graphs(model, n, graph):
            progress("graphs")
            names = inputs.views.names
            graphs = dict(zip(names, model.attention_graph(inputs.views), strict=True))
    mean_graph = _mean(list(graphs.values())) if graphs else _stored_graph(run, n)
    if not graphs and mean_graph is not None:
        graphs = {MEAN_GRAPH: mean_graph}
    n_clusters = model.settings_.n_clusters
    clusters = describe_clusters(
        model.labels_,
        model.confidence_,
        n_clusters,
        mean_graph,
        examples=int(np.clip(_EXAMPLES // (2 * n_clusters), 2, 8)),
    )
    progress("layout")
    layout = lay_out(
        model.labels_, model.confidence_, representations, mean_graph, seed
    )
    return RunData(
        run,
        read_config(run),
        run_checksum(run),
        model,
        inputs,
        graphs,
        mean_graph,
        representations,
        view_labels,
        clusters,
        layout,
    )


def _wants_graphs(model: SAGL, n: int, wish: bool | None) -> bool:
    if wish is not None:
        return wish
    limit = _DENSE_LIMIT if model.settings_.graph == "dense" else GRAPH_LIMIT
    return n <= limit


def _represent(
    model: SAGL, inputs: Inputs, run: Path
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Representations of all samples, and each view's own choice of cluster."""
    parts, choices, labels = [], [], []
    for answer in model.answers(inputs.views):
        labels.append(answer.q.argmax(dim=1).cpu().numpy())
        choices.append(torch.stack(answer.p).argmax(dim=2).cpu().numpy())
        parts.append(torch.cat(answer.p, dim=1).float().cpu().numpy())
    changed = int((np.concatenate(labels) != model.labels_).sum())
    n = len(model.labels_)
    if changed > max(1, _MOST_CHANGED * n):
        raise ValueError(
            f"the views are not those that {run} was fitted on: {changed:,} of {n:,} "
            "samples get another cluster; give the same files in the same order"
        )
    return np.concatenate(parts), np.concatenate(choices, axis=1)


def _stored_graph(run: Path, n: int) -> csr_matrix | None:
    path = run / GRAPH
    if not path.is_file():
        return None
    try:
        graph = csr_matrix(load_npz(path))
    except (ValueError, OSError, KeyError) as error:
        raise ValueError(
            f"{path} is damaged ({error}); remove it or fit again"
        ) from None
    if graph.shape != (n, n):
        warnings.warn(
            f"{path} has shape {graph.shape} and the run {n} samples: it is not used",
            stacklevel=2,
        )
        return None
    return graph


def _mean(graphs: list[csr_matrix]) -> csr_matrix:
    return csr_matrix(sum(graphs[1:], start=graphs[0]) / len(graphs))
