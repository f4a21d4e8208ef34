"""What the files of a run hold: JSON, field by field, and tensors.

``sagl.schema`` checks the JSON. Of tensors all is compared before memory is taken for a
network of the sizes that a file claims.

Formats of runs: 3 has no voters, 4 (of sagl 0.1) no heads, and from 6 on a
configuration holds a checksum of itself and of every part of its run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import torch
from torch import Tensor

from sagl.later import CORRECTIONS, Corrected, Stream
from sagl.model import Layer, Model, build_network
from sagl.nn.inference import Voters
from sagl.nn.network import Network
from sagl.recipes import RecipeName
from sagl.schema import AtLeast0, Count, Positive, Share, Since, Within, check
from sagl.search.anneal import Sizes
from sagl.search.count import ClusterCount
from sagl.search.score import Score
from sagl.search.stability import DoubtCurve
from sagl.settings import Settings

FORMAT = 6
OLDEST = 3  # that is read
_LABELS = "labels"  # the anchors' clusters
LEAVES = "leaves"  # their clusters in the finest layer
BETWEEN = "between"  # how clusters are near each other, (C, C)
_VOTERS = "voters."  # what names of the voters' tensors begin with
_FORMER_SIZES = {"even": "balanced", "free": "any"}  # words of formats 3 and 4

Checksum = str


class SavedView(TypedDict):
    """A view that the run was fitted on."""

    name: str
    width: Annotated[int, Within(1, 1 << 31)]


class SavedVoters(TypedDict):
    """``Voters`` but for their tensors."""

    shares: list[float]
    nearest: Positive
    weight: float


class SavedParams(TypedDict):
    """Parameters that commands look at; a fit looks at all of them."""

    n_clusters: int | str
    recipe: RecipeName


class Config(TypedDict):
    """``config.json``."""

    format: int
    sagl: str
    params: dict[str, Any]
    settings: Settings
    views: list[SavedView]
    n_samples: Positive
    n_steps: Count
    score: Annotated[Score | None, Since(4)]
    cluster_count: Annotated[ClusterCount | None, Since(4)]
    doubt: Annotated[DoubtCurve | None, Since(4)]
    view_weights: Annotated[list[AtLeast0] | None, Since(4)]
    cluster_sizes: Annotated[Sizes | None, Since(5)]
    missing: NotRequired[list[Count] | None]
    layers: Annotated[list[Layer] | None, Since(6)]
    voters: Annotated[SavedVoters | None, Since(4)]
    corrections: NotRequired[Corrected]  # of runs that somebody corrected
    stream: NotRequired[Stream]  # of runs that took in new samples
    sha256: dict[str, Checksum]
    checksum: Annotated[Checksum, Since(6)]  # of all other fields


class Record(TypedDict):
    """A line of ``history.jsonl``; callbacks may have added to it."""

    step: Count
    epoch: Count
    loss: float
    pseudo_label: NotRequired[float]
    diversity: NotRequired[float]
    alignment: NotRequired[float]
    changed: NotRequired[Share]
    clusters: NotRequired[Count]
    sparsity: NotRequired[list[Share]]


class Source(TypedDict):
    """``source.json``; what else there is, is of the reader of the samples."""

    source: NotRequired[str]
    reader: NotRequired[str]
    options: NotRequired[dict[str, str]]
    store: NotRequired[str]
    views: NotRequired[list[str]]


class Method(TypedDict):
    """``method.json``, of a baseline."""

    format: Literal[1]
    sagl: str
    method: str
    params: dict[str, Any]
    views: dict[str, Annotated[int, Within(1, 1 << 31)]]
    sha256: Checksum


# Fields of a model that a configuration has, if only as null...
EXTRAS = (
    *("score", "cluster_count", "doubt", "view_weights", "missing", "cluster_sizes"),
    "layers",
)
# ...and those that only configurations of runs have that somebody corrected or that
# took in new samples.
LATER = ("corrections", "stream")


def check_config(config: dict[str, Any], version: int) -> dict[str, Any]:
    """A configuration in the words of today."""
    for part in (config, config.get("settings"), config.get("params")):
        sizes = part.get("cluster_sizes") if isinstance(part, dict) else None
        if isinstance(part, dict) and isinstance(sizes, str) and version < FORMAT:
            part["cluster_sizes"] = _FORMER_SIZES.get(sizes, sizes)
    check(Config, config, version=version)
    check(SavedParams, config["params"], "params", version=0)
    names = [view["name"] for view in config["views"]]
    weights, doubt = config.get("view_weights"), config.get("doubt")
    if len(config.get("missing") or names) != len(names):
        raise ValueError(f"missing is not one for each of {len(names)} views")
    if not names or len(set(names)) < len(names) or not all(names):
        raise ValueError("views must have different names, and there must be one")
    if weights is not None and len(weights) != len(names):
        raise ValueError(f"view_weights is not one for each of {len(names)} views")
    if doubt is not None and len({len(column) for column in doubt.values()}) != 1:
        raise ValueError("doubt has columns of different lengths")
    _check_layers(config.get("layers") or [], config["settings"]["n_clusters"])
    if "corrections" in config:
        _check_corrections(config)
    return config


def _check_corrections(config: dict[str, Any]) -> None:
    saved, n = config["corrections"], config["n_samples"]
    C = config["settings"]["n_clusters"]
    if set(saved["given"]) != set(CORRECTIONS):
        raise ValueError(f"corrections.given must have {', '.join(CORRECTIONS)}")
    for name, most in (("labels", (n, C)), ("wrong", (n, C)), ("cannot_link", (n, n))):
        for pair in saved[name]:
            fits = len(pair) == 2
            if not fits or not all(0 <= i < m for i, m in zip(pair, most, strict=True)):
                raise ValueError(f"corrections.{name} has {pair}, which cannot be")
    for rows in saved["must_link"]:
        if len(rows) < 2 or not all(0 <= row < n for row in rows):
            raise ValueError(f"corrections.must_link has {rows}, which cannot be")


def _check_layers(layers: list[dict[str, Any]], n_clusters: int) -> None:
    sizes = [layer["n_clusters"] for layer in layers]
    if layers and n_clusters not in sizes:
        raise ValueError(f"layers have no partition into {n_clusters} clusters")
    for coarser, size, layer in zip([0, *sizes], sizes, layers, strict=False):
        expected = size if coarser else 0
        inside = all(parent < coarser for parent in layer["parents"])
        if len(layer["parents"]) != expected or not inside or size <= coarser:
            raise ValueError(f"the layer of {size} clusters is not inside the coarser")


def check_history(records: list[Any], n_views: int) -> None:
    """The lines of a history."""
    for number, record in enumerate(records, start=1):
        check(Record, record, f"line {number}", version=0)
        if len(record.get("sparsity", [0] * n_views)) != n_views:
            raise ValueError(f"line {number}: sparsity is not one for each view")
    if records and "sparsity" not in records[-1]:
        raise ValueError(f"'sparsity' is missing in line {len(records)}")


def check_source(record: Any) -> None:
    """The record of where samples and features are; a run's own stay inside of it."""
    check(Source, record, version=0)
    store = Path(record.get("store", ""))
    if not store.is_absolute() and ".." in store.parts:
        raise ValueError(f"store is {str(store)!r}, which leaves the run")


def anchor_tensors(run: Model) -> dict[str, Tensor]:
    """Linear features per view and clusters of the anchors; the same of voters."""
    tensors = {str(i): z for i, z in enumerate(run.anchors)}
    if run.anchor_labels is not None:
        tensors[_LABELS] = run.anchor_labels
    if run.leaves is not None:
        tensors[LEAVES] = run.leaves.anchors
    if run.facts is not None:
        tensors[BETWEEN] = torch.from_numpy(run.facts.between)
    if run.voters is not None:
        tensors |= {f"{_VOTERS}{i}": x for i, x in enumerate(run.voters.features)}
        tensors[f"{_VOTERS}{_LABELS}"] = run.voters.labels
    return tensors


def voting_rules(voters: Voters) -> dict[str, Any]:
    """What is not a tensor."""
    return {name: getattr(voters, name) for name in ("shares", "nearest", "weight")}


def read_voters(rules: dict[str, Any], tensors: Mapping[str, Tensor]) -> Voters:
    """Voters by their rules and tensors."""
    features = [tensors[f"{_VOTERS}{i}"] for i in range(len(rules["shares"]))]
    return Voters(features, tensors[f"{_VOTERS}{_LABELS}"], **rules)


def read_network(
    settings: Settings, widths: Sequence[int], weights: Mapping[str, Tensor]
) -> Network:
    """The network of these settings with these weights."""
    with torch.device("meta"):
        expected = build_network(settings, widths, None).state_dict()
    _check_tensors(weights, expected)
    for name, tensor in expected.items():
        _check_form(name, weights[name], tuple(tensor.shape))
        if weights[name].dtype != tensor.dtype:
            raise ValueError(f"tensor {name!r} holds {weights[name].dtype}")
    network = build_network(settings, widths, torch.Generator())
    network.load_state_dict(dict(weights))
    return network


def read_anchors(
    tensors: Mapping[str, Tensor], network: Network, voters: Voters | None
) -> tuple[list[Tensor], Tensor | None]:
    """Linear features of the anchors per view, and their clusters with heads."""
    views = network.view_networks
    C, n_views = len(views[0].bias), len(views)
    names = [str(i) for i in range(n_views)]
    if network.has_heads:
        names.append(_LABELS)
    if voters is not None:
        if len(voters.shares) != n_views:
            raise ValueError(f"voters.shares is not one for each of {n_views} views")
        names += [f"{_VOTERS}{i}" for i in range(n_views)] + [f"{_VOTERS}{_LABELS}"]
    names += [name for name in (LEAVES, BETWEEN) if name in tensors]
    _check_tensors(tensors, names)
    anchors, labels = [tensors[str(i)] for i in range(n_views)], tensors.get(_LABELS)
    for i, (z, view) in enumerate(zip(anchors, views, strict=True)):
        form = (_rows(anchors[0]), len(view.encoder.g))
        _check_form(str(i), z, form, missing=network.has_heads)
    if not torch.stack([~z[:, 0].isnan() for z in anchors]).any(dim=0).all():
        raise ValueError("some anchors miss every view")
    if labels is not None:
        _check_clusters(_LABELS, labels, len(anchors[0]), C)
    if LEAVES in tensors:
        _check_clusters(LEAVES, tensors[LEAVES], len(anchors[0]), 2 * C)
    if BETWEEN in tensors:
        _check_form(BETWEEN, tensors[BETWEEN], (C, C))
    if voters is not None:
        n = _rows(voters.labels)
        for i, (x, view) in enumerate(zip(voters.features, views, strict=True)):
            _check_form(f"{_VOTERS}{i}", x, (n, len(view.encoder.shift)))
        _check_clusters(f"{_VOTERS}{_LABELS}", voters.labels, n, C)
        if voters.nearest > n:
            raise ValueError(f"voters.nearest is {voters.nearest}, but there are {n}")
    return anchors, labels


def _rows(tensor: Tensor) -> int:
    return len(tensor) if tensor.ndim else 0


def _check_tensors(given: Mapping[str, Tensor], expected: Collection[str]) -> None:
    for name in expected:
        if name not in given:
            raise ValueError(f"tensor {name!r} is missing")
    for name in given:
        if name not in expected:
            raise ValueError(f"tensor {name[:60]!a} is not known")


def _check_form(
    name: str, tensor: Tensor, shape: tuple[int, ...], *, missing: bool = False
) -> None:
    """Its shape, and that it is finite but for whole rows that may be missing."""
    if tuple(tensor.shape) != shape or 0 in shape:
        given = tuple(tensor.shape)
        raise ValueError(f"tensor {name!r} has the shape {given}, expected {shape}")
    good = tensor.isfinite()
    if missing and tensor.is_floating_point():
        good |= tensor.isnan().all(dim=1, keepdim=True)
    if not tensor.is_floating_point() or not good.all():
        raise ValueError(f"tensor {name!r} holds values that are no finite numbers")


def _check_clusters(name: str, labels: Tensor, n: int, n_clusters: int) -> None:
    whole = labels.dtype in (torch.int64, torch.int32)
    if tuple(labels.shape) != (n,) or not whole:
        raise ValueError(f"tensor {name!r} is not one whole number for each of {n}")
    if not ((labels >= 0) & (labels < n_clusters)).all():
        raise ValueError(f"tensor {name!r} is not of clusters 0 to {n_clusters - 1}")
