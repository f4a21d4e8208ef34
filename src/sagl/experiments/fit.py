"""Fit into a run directory: resumable while it lasts, complete when it is done.

Also SAGL with given settings: checked, as a method of a study, as a command.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from scipy.sparse import save_npz

from sagl.baselines.registry import METHODS, Method
from sagl.estimator import RESTARTS, SAGL
from sagl.experiments.table import shown
from sagl.features.backbones import parse_backbones
from sagl.features.extraction import extract_source
from sagl.features.split import Input, Part, open_input, read_input
from sagl.features.store import Join, is_store
from sagl.parameters import option_of, sagl_parameters
from sagl.run import (
    COUNT,
    FEATURES,
    GRAPH,
    GRAPH_LIMIT,
    SOURCE,
    refuse_existing_run,
)
from sagl.settings import Settings
from sagl.storage import replacing, write_json
from sagl.training.checkpoint import FILE_NAME
from sagl.views import Views

__all__ = ["fit_command", "fit_run", "python_call", "run_input"]


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
    given = open_input(out / FEATURES, names or wanted, join or "inner")
    return replace(given, source={**(given.source or {}), "store": FEATURES})


def fit_command(part: Part, n_clusters: int, params: Mapping[str, Any]) -> str:
    """``sagl fit`` with these views and parameters of SAGL.

    >>> part = Part(("clip=clip.npy", "dino=dino.npy"))
    >>> fit_command(part, 10, {"gamma": 20.0, "refine": False})
    'sagl fit --view clip=clip.npy --view dino=dino.npy --clusters 10 --gamma 20.0 \
--no-refine --out RUN'
    """
    words = ["sagl", "fit"]
    if part.store is not None:
        words += [part.store, "--views", ",".join(part.views)]
    else:
        words += [word for view in part.views for word in ("--view", view)]
    words += ["--clusters", str(n_clusters)]
    for name, value in params.items():
        if isinstance(value, bool):
            option = option_of(name)
            words.append(option if value else option.replace("--", "--no-", 1))
        elif value is not None:  # None is what `sagl fit` takes anyway
            words += [option_of(name), str(value)]
    return shlex.join([*words, "--out", "RUN"])


def python_call(n_clusters: int, params: Mapping[str, Any]) -> str:
    """The estimator with these settings.

    >>> python_call(10, {"gamma": 20.0, "gate": "none"})
    "SAGL(n_clusters=10, gamma=20.0, gate='none')"
    """
    given = "".join(f", {name}={value!r}" for name, value in params.items())
    return f"SAGL(n_clusters={n_clusters}{given})"


def variant(settings: Mapping[str, Any], params: Mapping[str, Any]) -> Method:
    """SAGL with ``params`` and, before them, ``settings``, which name the method."""
    name = ",".join(f"{key}={shown(value)}" for key, value in settings.items())
    return Method(name, METHODS["sagl"].path, name, {**params, **settings})


def resolved(params: Mapping[str, Any], n_clusters: int, n_samples: int) -> Settings:
    """The complete settings; what SAGL would refuse is refused here."""
    free = sagl_parameters()
    for name in params:
        if name not in free:
            listed = ", ".join(sorted(free))
            raise ValueError(f"{name!r} cannot be set here; there are {listed}")
    return SAGL(n_clusters, **params).resolved(n_samples)


def distinct(name: str, values: Iterable[Any]) -> list[Any]:
    """The values of a setting, refused if there is none or one of them twice."""
    listed = list(values)
    if not listed:
        raise ValueError(f"{name}: no value; give at least one")
    for i, value in enumerate(listed):
        if value in listed[:i]:
            raise ValueError(f"{name}: {shown(value)} is given twice")
    return listed
