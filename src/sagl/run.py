"""A run directory: a trained model on disk, whole or not there at all.

    config.json          format version, settings, views, checksums; written last
    model.safetensors    the network
    anchors.safetensors  linear features of the anchors, one tensor per view; features
                         and clusters of the voters, where there are any
    history.jsonl        one record per line
    labels.csv           sample, cluster and confidence of the training samples, names
                         of clusters, and what is known about single samples
    names.json           names of clusters, as a report's explorer exports them, where
                         there are any
    graph.npz            the graph of all views, SciPy CSR; written by `sagl fit`
    source.json          where the samples and features are; written by `sagl fit`
    features/            the features, when `sagl fit` extracted them: a feature store

``config.json`` has a checksum of itself and of all others. What it may hold is in
``run_files.py``.

A directory without ``config.json`` is not a run, so a killed save leaves none.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from sagl._version import __version__
from sagl.card import CARD, write_card
from sagl.clusters.names import FILE as NAMES
from sagl.clusters.names import Names, name_of, read_names
from sagl.features.files import are_rows, prediction_table, predictions_in
from sagl.features.manifest import MANIFEST, is_store
from sagl.features.tables import Columns, read_columns
from sagl.model import COUNT, RESTARTS, Facts, Leaves, Model, clear_unfinished
from sagl.run_files import (
    BETWEEN,
    EXTRAS,
    FORMAT,
    LATER,
    LEAVES,
    OLDEST,
    anchor_tensors,
    check_config,
    check_history,
    read_anchors,
    read_network,
    read_voters,
    voting_rules,
)
from sagl.schema import (
    Positive,
    check,
    check_signed,
    parse_json,
    plain,
    read_json,
    signed,
)
from sagl.settings import Settings
from sagl.storage import (
    LOCK,
    make_writable,
    read_tensors,
    sha256,
    write_json,
    write_tensors,
    write_text,
)
from sagl.training.checkpoint import FILE_NAME as CHECKPOINT

CONFIG = "config.json"
MODEL = "model.safetensors"
ANCHORS = "anchors.safetensors"
HISTORY = "history.jsonl"
LABELS = "labels.csv"
GRAPH = "graph.npz"
SOURCE = "source.json"
FEATURES = "features"
_LEAF = "leaf"  # the column of the samples' clusters in the finest layer
_PER_SAMPLE = ("outlier", "disagreement", "duplicate")  # columns of labels.csv
ALL_VIEWS = "all views"  # what graph.npz is called where views have names
# All samples attend to all: beyond so many, graphs are computed only when asked for.
GRAPH_LIMIT = 50_000
PARTS = (MODEL, ANCHORS, HISTORY, LABELS)  # of every run
MORE_PARTS = (GRAPH, SOURCE, f"{FEATURES}/{MANIFEST}")  # of some; by sagl fit


def refuse_existing_run(directory: Path) -> None:
    """Refuse a place that is taken; what is there stays.

    A run that was killed behind its last step is whole, and only tidied up.
    """
    if (directory / CONFIG).exists():
        clear_unfinished(directory)
        raise ValueError(
            f"{directory} already holds a run; choose another directory or remove it"
        )
    if directory.exists() and not directory.is_dir():
        raise ValueError(f"{directory} is a file; a run needs a directory")
    if (directory / CHECKPOINT).exists():
        return  # an unfinished run: its files may be replaced
    for name in (*PARTS, GRAPH, SOURCE):
        if (directory / name).exists():
            raise ValueError(
                f"{directory / name} would be overwritten, and it belongs to no run; "
                "move it or choose another directory"
            )


def refuse_foreign(directory: Path) -> None:
    """Refuse a directory that holds what is no unfinished run; nothing is touched."""
    ours = (CONFIG, CHECKPOINT, COUNT, FEATURES, *PARTS, GRAPH, SOURCE, CARD)
    if not directory.is_dir() or (directory / CHECKPOINT).exists():
        return
    for path in sorted(directory.iterdir()):
        name = path.name
        # A store begins with what is hidden.
        new = path.is_dir() and all(each.name[0] == "." for each in path.iterdir())
        begun = name == COUNT or (name == FEATURES and (new or is_store(path)))
        left = name.startswith((LOCK, ".probe-", *(f".{each}." for each in ours)))
        if not (begun or left or name.startswith(RESTARTS)):
            raise ValueError(
                f"{directory} is not empty: it holds {name}, which is of no run; "
                "choose another directory, or --force to write there all the same"
            )


def write_run(
    directory: Path,
    run: Model,
    params: dict[str, Any],
    ids: Sequence[str] | None = None,
) -> None:
    """Write all files, ``config.json`` after its parts; none if one fails."""
    refuse_existing_run(directory)
    make_writable(directory)
    history = "".join(json.dumps(record) + "\n" for record in run.history)
    carded = (directory / CARD).exists()
    try:
        write_tensors(directory / MODEL, run.network.state_dict())
        write_tensors(directory / ANCHORS, anchor_tensors(run))
        write_text(directory / HISTORY, history)
        table = prediction_table(run.labels, run.confidence, ids, _more_columns(run))
        write_text(directory / LABELS, table)
        config = {
            "format": FORMAT,
            "sagl": __version__,
            "params": params,
            "settings": run.settings.as_dict(),
            "views": [
                {"name": name, "width": width}
                for name, width in zip(run.view_names, run.view_widths, strict=True)
            ],
            "n_samples": len(run.labels),
            "n_steps": run.n_steps,
            **{name: plain(getattr(run, name)) for name in EXTRAS},
            "voters": run.voters and voting_rules(run.voters),
            **{
                name: plain(getattr(run, name))
                for name in LATER
                if getattr(run, name) is not None
            },
            "sha256": {
                name: sha256(directory / name)
                for name in (*PARTS, *MORE_PARTS)
                if (directory / name).is_file()
            },
        }
        write_card(directory, run)
        # After its parts: what is there without it is no run.
        write_json(directory / CONFIG, signed(config))
        if run.names:
            save_names(directory, run.names)
    except OSError as error:
        for name in (CONFIG, *PARTS, *(() if carded else (CARD,))):
            (directory / name).unlink(missing_ok=True)
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        cure = "free some space or choose another place" if full else "nothing was kept"
        raise ValueError(
            f"{directory}: could not be written: {error.strerror}; {cure}"
        ) from None


def read_config(directory: Path) -> dict[str, Any]:
    """``config.json`` of a run, refused when it is missing, damaged or too new."""
    path = directory / CONFIG
    try:
        config = read_json(path)
        version = config["format"]
        check(Positive, version, "format")
    except FileNotFoundError:
        raise ValueError(
            f"{directory} holds no run: there is no {CONFIG} in it; give a directory "
            "that a finished sagl fit or SAGL.save wrote"
        ) from None
    except OSError:
        raise ValueError(f"{directory} is not a run directory") from None
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{path} is damaged: not a run's configuration") from None
    if version < OLDEST:
        raise ValueError(
            f"{directory} is of format {version}, by an older sagl; this one reads "
            f"formats {OLDEST} to {FORMAT}: fit again"
        )
    if version > FORMAT:
        by = config.get("sagl")
        by = f"by sagl {by[:20]}" if isinstance(by, str) else "of a later sagl"
        raise ValueError(
            f"{directory} is of format {version}, {by}; this sagl {__version__} reads "
            f"format {FORMAT}: upgrade sagl"
        )
    try:
        check_signed(config)
        return check_config(config, version)
    except ValueError as error:
        raise damaged(directory, error) from None


def check_part(directory: Path, config: dict[str, Any], name: str) -> None:
    """Refuse a part of a run that is not the one that was written with it."""
    path, written = directory / name, config["sha256"].get(name)
    if written is None:
        if not path.exists() or config["format"] < FORMAT:
            return  # before format 6 not all parts were entered
        raise ValueError(f"{path} is not of this run: {CONFIG} has none; remove it")
    if not path.is_file():
        raise ValueError(f"{path} is missing: the run is damaged")
    if sha256(path) != written:
        raise ValueError(
            f"{path} is damaged: its content is not what was written; restore it or "
            "fit again"
        )


def read_run(directory: Path) -> tuple[dict[str, Any], Model]:
    """Parameters and model of a run; no file may be missing or altered."""
    config = read_config(directory)
    for name in PARTS:
        if name not in config["sha256"]:
            raise damaged(directory, ValueError(f"{name!r} is missing in sha256"))
    for name in (*PARTS, GRAPH, SOURCE):  # features are looked at when they are read
        check_part(directory, config, name)
    weights, _ = read_tensors(directory / MODEL)
    tensors, _ = read_tensors(directory / ANCHORS)
    columns = read_columns(directory / LABELS, [None])
    labels, confidence = predictions_in(directory / LABELS, columns)
    try:
        history = _read_history(directory / HISTORY, len(config["views"]))
        model = _read_model(config, weights, tensors)
        _check_labels(labels, confidence, config)
        model.facts = _facts(columns, tensors.get(BETWEEN))
        model.leaves = _leaves(columns, tensors.get(LEAVES))
    except (KeyError, TypeError, AttributeError, RuntimeError, ValueError) as error:
        raise damaged(directory, error) from None
    model.history, model.labels, model.confidence = history, labels, confidence
    model.names = _names(directory, model.settings.n_clusters)
    model.ids = _ids(columns)
    return config["params"], model


def _more_columns(run: Model) -> dict[str, Any]:
    """Columns of labels.csv beside cluster and confidence."""
    more: dict[str, Any] = {}
    if run.names:
        more["name"] = [name_of(run.names, k) for k in run.labels.tolist()]
    if run.facts is not None:
        more |= {name: getattr(run.facts, name).tolist() for name in _PER_SAMPLE}
    if run.leaves is not None:
        more[_LEAF] = run.leaves.labels.tolist()
    return more


def _facts(columns: Columns, between: Tensor | None) -> Facts | None:
    if between is None:  # a run of before 0.2
        return None
    outlier, disagreement, duplicate = (columns[name] for name in _PER_SAMPLE)
    return Facts(
        np.array(outlier, dtype=np.float64),
        np.array(disagreement, dtype=np.float64),
        np.array(duplicate, dtype=np.int64),
        between.numpy(),
    )


def _leaves(columns: Columns, anchors: Tensor | None) -> Leaves | None:
    if anchors is None:
        return None
    return Leaves(anchors, np.array(columns[_LEAF], dtype=np.int64))


def _ids(columns: Columns) -> list[str] | None:
    """The samples' ids; None where they are but numbered."""
    if "row" in columns:
        return None
    ids = [name or "" for name in columns["sample"]]
    return None if are_rows(ids) else ids  # before 0.2 rows were called samples


def run_checksum(directory: Path) -> str:
    """What tells a run from all others: its configuration names all other files."""
    return sha256(directory / CONFIG)


def _names(directory: Path, n_clusters: int) -> dict[int, str]:
    path = directory / NAMES
    if not path.is_file():
        return {}
    return dict(given_names(directory, path, n_clusters).clusters)


def given_names(directory: Path, path: Path, n_clusters: int) -> Names:
    """The names in a file that the explorer of this run's report exported."""
    return read_names(path, run_checksum(directory), n_clusters)


def save_names(
    directory: Path, names: Mapping[int, str], given: Names | None = None
) -> None:
    """Write the names of a run's clusters beside it; all else said there stays.

    Names in other layers are those ``given``, where some are.
    """
    path, run = directory / NAMES, run_checksum(directory)
    known = read_names(path, run) if path.is_file() else Names()
    layers = known.layers if given is None else {**known.layers, **given.layers}
    write_json(path, replace(known, clusters=names, layers=layers).content(run))


def _read_model(
    config: dict[str, Any], weights: dict[str, Tensor], tensors: dict[str, Tensor]
) -> Model:
    settings: Settings = check(Settings, config["settings"], version=config["format"])
    widths = tuple(view["width"] for view in config["views"])
    rules = config.get("voters")
    voters = rules and read_voters(rules, tensors)
    hints = get_type_hints(Model)
    if len(widths) > len(tensors):
        raise ValueError(f"there are {len(widths)} views, and anchors of fewer")
    network = read_network(settings, widths, weights)
    anchors, labels = read_anchors(tensors, network, voters)
    return Model(
        settings=settings,
        view_names=tuple(view["name"] for view in config["views"]),
        view_widths=widths,
        network=network,
        anchors=anchors,
        anchor_labels=labels,
        voters=voters,
        n_steps=config["n_steps"],
        **{
            name: check(hints[name], config[name])
            for name in (*EXTRAS, *LATER)
            if name in config
        },
    )


def _read_history(path: Path, n_views: int) -> list[dict[str, Any]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    try:
        history = [parse_json(line) for line in lines]
        check_history(history, n_views)
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None
    return history


def _check_labels(
    labels: NDArray[np.int64], confidence: NDArray[np.float64], config: dict[str, Any]
) -> None:
    n, C = config["n_samples"], config["settings"]["n_clusters"]
    if len(labels) != n:
        raise ValueError(f"{LABELS} has {len(labels)} samples, expected {n}")
    if not ((labels >= 0) & (labels < C)).all():
        raise ValueError(f"{LABELS} has clusters that are not among 0 to {C - 1}")
    if not ((confidence >= 0) & (confidence <= 1 + 1e-9)).all():
        raise ValueError(f"{LABELS} has confidences that are not among 0 to 1")


def damaged(directory: Path, error: Exception) -> ValueError:
    """The error for a configuration that does not fit the files or this library."""
    reason = " ".join(str(error).split())
    if not isinstance(error, ValueError):
        reason = f"{type(error).__name__} {reason}"
    return ValueError(
        f"{directory / CONFIG} is damaged: {reason[:300]}; restore it or fit again"
    )
