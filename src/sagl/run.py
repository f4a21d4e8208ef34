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

A directory without ``config.json`` is not a run, so a killed save leaves none.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sagl._version import __version__
from sagl.clusters.names import FILE as NAMES
from sagl.clusters.names import name_of, names_content, read_names
from sagl.features.files import prediction_table, predictions_in
from sagl.features.tables import Columns, read_columns
from sagl.model import Facts, Layer, Leaves, Model, build_network
from sagl.nn.inference import Voters
from sagl.search.config import SearchConfig
from sagl.search.count import ClusterCount
from sagl.search.score import Score
from sagl.search.stability import DoubtCurve
from sagl.settings import Settings
from sagl.storage import (
    make_writable,
    read_tensors,
    sha256,
    write_json,
    write_tensors,
    write_text,
)
from sagl.training.checkpoint import FILE_NAME as CHECKPOINT

FORMAT = 5
_OLDEST = 3  # that is read; 3 has no voters, 4 no heads
CONFIG = "config.json"
MODEL = "model.safetensors"
ANCHORS = "anchors.safetensors"
HISTORY = "history.jsonl"
LABELS = "labels.csv"
GRAPH = "graph.npz"
SOURCE = "source.json"
FEATURES = "features"
_LABELS = "labels"  # the tensor of the anchors' clusters
_LEAVES = "leaves"  # that of their clusters in the finest layer
_LEAF = "leaf"  # the column of the samples' clusters there
_BETWEEN = "between"  # that of how clusters are near each other
ALL_VIEWS = "all views"  # what graph.npz is called where views have names
# All samples attend to all: beyond so many, graphs are computed only when asked for.
GRAPH_LIMIT = 50_000
_VOTERS = "voters."  # how their tensors are called, beside those of the anchors
_FORMER_SIZES = {"even": "balanced", "free": "any"}  # words of formats 3 and 4
_PER_SAMPLE = ("outlier", "disagreement", "duplicate")  # columns of labels.csv
_PARTS = (MODEL, ANCHORS, HISTORY, LABELS)


# What not every run has: as JSON, and back.
_EXTRAS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "score": (Score._asdict, lambda saved: Score(**saved)),
    "cluster_count": (ClusterCount.as_dict, ClusterCount.from_dict),
    "doubt": (DoubtCurve.as_dict, DoubtCurve.from_dict),
    "view_weights": (list, tuple),
    "cluster_sizes": (str, str),
    "layers": (
        lambda layers: [layer._asdict() for layer in layers],
        lambda saved: tuple(
            Layer(**{**x, "parents": tuple(x["parents"])}) for x in saved
        ),
    ),
}


def refuse_existing_run(directory: Path) -> None:
    """Refuse a place that is taken; nothing is touched."""
    if (directory / CONFIG).exists():
        raise ValueError(
            f"{directory} already holds a run; choose another directory or remove it"
        )
    if directory.exists() and not directory.is_dir():
        raise ValueError(f"{directory} is a file; a run needs a directory")
    if (directory / CHECKPOINT).exists():
        return  # an unfinished run: its files may be replaced
    for name in (*_PARTS, GRAPH):
        if (directory / name).exists():
            raise ValueError(
                f"{directory / name} would be overwritten, and it belongs to no run; "
                "move it or choose another directory"
            )


def write_run(
    directory: Path,
    run: Model,
    params: dict[str, Any],
    ids: Sequence[str] | None = None,
) -> None:
    """Write all files, ``config.json`` last; leave none of them if one fails."""
    refuse_existing_run(directory)
    make_writable(directory)
    history = "".join(json.dumps(record) + "\n" for record in run.history)
    try:
        write_tensors(directory / MODEL, run.network.state_dict())
        write_tensors(directory / ANCHORS, _anchor_tensors(run))
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
            **{
                name: _optional(getattr(run, name), to_json)
                for name, (to_json, _) in _EXTRAS.items()
            },
            "voters": _optional(run.voters, _voting_rules),
            "sha256": {name: sha256(directory / name) for name in _PARTS},
        }
        write_json(directory / CONFIG, config)
        if run.names:
            save_names(directory, run.names)
    except OSError as error:
        for name in _PARTS:
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
        config = json.loads(path.read_text(encoding="utf-8"))
        version = int(config["format"])
        if version < 1:
            raise ValueError
    except FileNotFoundError:
        raise ValueError(
            f"{directory} holds no run: there is no {CONFIG} in it"
        ) from None
    except OSError:
        raise ValueError(f"{directory} is not a run directory") from None
    except (KeyError, TypeError, ValueError, RecursionError):
        raise ValueError(f"{path} is damaged: not a run's configuration") from None
    if version < _OLDEST:
        raise ValueError(
            f"{directory} is of format {version}, by an older sagl; this one reads "
            f"formats {_OLDEST} to {FORMAT}: fit again"
        )
    if version > FORMAT:
        raise ValueError(
            f"{directory} is of format {version}, by sagl {config.get('sagl')}; "
            f"this sagl {__version__} reads format {FORMAT}: upgrade sagl"
        )
    return dict(config)


def read_run(directory: Path) -> tuple[dict[str, Any], Model]:
    """Parameters and model of a run; no file may be missing or altered."""
    config = read_config(directory)
    try:
        for name in _PARTS:
            path = directory / name
            if not path.is_file():
                raise ValueError(f"{path} is missing: the run is damaged")
            if sha256(path) != config["sha256"][name]:
                raise ValueError(
                    f"{path} is damaged: its content is not what was written; "
                    "restore it or fit again"
                )
        weights, _ = read_tensors(directory / MODEL)
        anchors, _ = read_tensors(directory / ANCHORS)
        history = (directory / HISTORY).read_text(encoding="utf-8").splitlines()
        columns = read_columns(directory / LABELS, [None])
        labels, confidence = predictions_in(directory / LABELS, columns)
        for part in (config, config["settings"], config["params"]):
            if part.get("cluster_sizes") in _FORMER_SIZES:
                part["cluster_sizes"] = _FORMER_SIZES[part["cluster_sizes"]]
        known = {field.name for field in fields(Settings)}
        kept = {k: v for k, v in config["settings"].items() if k in known}
        search = SearchConfig.of(kept.pop("search", None))
        settings = Settings(**kept, search=search)
        widths = tuple(view["width"] for view in config["views"])
        network = build_network(settings, widths, torch.Generator())
        network.load_state_dict(weights)
        model = Model(
            settings=settings,
            view_names=tuple(view["name"] for view in config["views"]),
            view_widths=widths,
            network=network,
            anchors=[anchors[str(i)] for i in range(len(config["views"]))],
            anchor_labels=anchors.get(_LABELS),
            voters=_optional(config.get("voters"), lambda r: _voters(r, anchors)),
            history=[json.loads(line) for line in history],
            n_steps=config["n_steps"],
            labels=labels,
            confidence=confidence,
            facts=_facts(columns, anchors.get(_BETWEEN)),
            leaves=_leaves(columns, anchors.get(_LEAVES)),
            names=_names(directory, settings.n_clusters),
            ids=_ids(columns),
            **{
                name: _optional(config.get(name), from_json)
                for name, (_, from_json) in _EXTRAS.items()
            },
        )
        return config["params"], model
    except (KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise damaged(directory, error) from None


def _anchor_tensors(run: Model) -> dict[str, Tensor]:
    tensors = {str(i): z for i, z in enumerate(run.anchors)}
    if run.anchor_labels is not None:
        tensors[_LABELS] = run.anchor_labels
    if run.leaves is not None:
        tensors[_LEAVES] = run.leaves.anchors
    if run.facts is not None:
        tensors[_BETWEEN] = torch.from_numpy(run.facts.between)
    if run.voters is not None:
        tensors |= {f"{_VOTERS}{i}": x for i, x in enumerate(run.voters.features)}
        tensors[f"{_VOTERS}labels"] = run.voters.labels
    return tensors


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
    ids = [name or "" for name in columns["sample"]]
    numbered = all(name == str(row) for row, name in enumerate(ids))
    return None if numbered else ids


def _names(directory: Path, n_clusters: int) -> dict[int, str]:
    path = directory / NAMES
    return given_names(directory, path, n_clusters) if path.is_file() else {}


def given_names(directory: Path, path: Path, n_clusters: int) -> dict[int, str]:
    """The names in a file that the explorer of this run's report exported."""
    return read_names(path, sha256(directory / CONFIG), n_clusters).clusters


def save_names(directory: Path, names: Mapping[int, str]) -> None:
    """Write the names of a run's clusters beside it; samples marked there stay so."""
    path, run = directory / NAMES, sha256(directory / CONFIG)
    wrong = read_names(path, run, None).wrong if path.is_file() else []
    write_json(path, names_content(names, run, wrong))


def _voting_rules(voters: Voters) -> dict[str, Any]:
    """What is not a tensor."""
    return {name: getattr(voters, name) for name in ("shares", "nearest", "weight")}


def _voters(rules: dict[str, Any], tensors: dict[str, Tensor]) -> Voters:
    features = [tensors[f"{_VOTERS}{i}"] for i in range(len(rules["shares"]))]
    return Voters(features, tensors[f"{_VOTERS}labels"], **rules)


def _optional(value: Any, convert: Callable[[Any], Any]) -> Any:
    return None if value is None else convert(value)


def plain(value: Any) -> Any:
    """A parameter as JSON can hold it; a random generator as None."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if isinstance(value, str | int | float | None) else None


def damaged(directory: Path, error: Exception) -> ValueError:
    """The error for a configuration that does not fit the files or this library."""
    reason = " ".join(str(error).split())
    return ValueError(
        f"{directory / CONFIG} is damaged: {type(error).__name__} {reason}; "
        "restore it or fit again"
    )
