"""Fit into a run directory: resumable while it lasts, complete when it is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from scipy.sparse import save_npz

from sagl.estimator import RESTARTS, SAGL
from sagl.features.backbones import parse_backbones
from sagl.features.extraction import extract_source
from sagl.features.split import Input, open_input, read_input
from sagl.features.store import Join, is_store
from sagl.run import (
    COUNT,
    FEATURES,
    GRAPH,
    GRAPH_LIMIT,
    SOURCE,
    refuse_existing_run,
)
from sagl.storage import replacing, write_json
from sagl.training.checkpoint import FILE_NAME
from sagl.views import Views


def fit_run(
    model: SAGL,
    views: Views,
    out: Path,
    *,
    graph: bool | None = None,
    ids: Sequence[str] | None = None,
    source: Mapping[str, Any] | None = None,
) -> SAGL:
    """Fit ``model`` and write it to ``out``, with the graph of its training samples.

    A fit that was interrupted is taken up from the checkpoint in ``out``. ``graph``
    says whether to write ``graph.npz``; by default up to 50,000 samples. ``ids`` are
    what the samples are called in ``labels.csv``; ``source`` says where they are, in
    ``source.json``.
    """
    refuse_existing_run(out)
    model.set_params(checkpoint_dir=out).fit(views)
    if graph if graph is not None else len(views) <= GRAPH_LIMIT:
        with replacing(out / GRAPH) as temporary, temporary.open("wb") as file:
            save_npz(file, model.attention_graph(views, together=True))
    if source is not None:
        write_json(out / SOURCE, dict(source))
    model.save(out, ids=ids)
    for checkpoint in (out / FILE_NAME, *out.glob(f"{RESTARTS}*/{FILE_NAME}")):
        checkpoint.unlink(missing_ok=True)
    (out / COUNT).unlink(missing_ok=True)
    for directory in out.glob(f"{RESTARTS}*"):
        directory.rmdir()
    return model


def run_input(
    out: Path,
    source: str | None,
    files: Sequence[str] | None,
    backbones: Sequence[str] | None,
    *,
    names: Sequence[str] | None = None,
    join: Join | None = None,
    **options: Any,
) -> Input:
    """The views to fit: from files, from a store, or extracted into ``out/features``.

    ``options`` are those of ``extract_source``. An interrupted extraction is taken up.
    """
    if source is None or is_store(Path(source)):
        if backbones:
            what = f"{source} holds features already" if source else "there is none"
            raise ValueError(f"--backbone needs a SOURCE of samples: {what}")
        return read_input(source, files, names, join or "error")
    if files:
        raise ValueError("give a SOURCE, or views with --view; not both")
    wanted = list(parse_backbones(backbones or ()))
    extract_source(source, backbones or (), out / FEATURES, **options)
    # What one model could not read, all do without.
    found = open_input(out / FEATURES, names or wanted, join or "inner")
    return replace(found, source={**(found.source or {}), "store": FEATURES})
