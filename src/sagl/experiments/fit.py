"""Fit into a run directory: resumable while it lasts, complete when it is done."""

from __future__ import annotations

from pathlib import Path

from scipy.sparse import csr_matrix, save_npz

from sagl.estimator import SAGL
from sagl.run import GRAPH, refuse_existing_run
from sagl.storage import replacing
from sagl.training.checkpoint import FILE_NAME
from sagl.views import Views

# All samples attend to all: beyond this the graph takes longer than the training.
GRAPH_LIMIT = 50_000


def fit_run(model: SAGL, views: Views, out: Path, *, graph: bool | None = None) -> SAGL:
    """Fit ``model`` and write it to ``out``, with the graph of its training samples.

    A fit that was interrupted is taken up from the checkpoint in ``out``. ``graph``
    says whether to write ``graph.npz``; by default up to 50,000 samples.
    """
    refuse_existing_run(out)
    model.set_params(checkpoint_dir=out).fit(views)
    if graph if graph is not None else len(views) <= GRAPH_LIMIT:
        with replacing(out / GRAPH) as temporary, temporary.open("wb") as file:
            save_npz(file, mean_graph(model.graph(views)))
    model.save(out)
    (out / FILE_NAME).unlink(missing_ok=True)
    return model


def mean_graph(graphs: list[csr_matrix]) -> csr_matrix:
    """The average of the views' graphs: rows still sum to one."""
    return csr_matrix(sum(graphs[1:], start=graphs[0]) / len(graphs))
