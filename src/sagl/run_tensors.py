"""The tensors of a run: what they are called, and whether they fit each other.

All is compared before memory is taken for a network of the sizes that a file claims.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from sagl.model import Model, build_network
from sagl.nn.inference import Voters
from sagl.nn.network import Network
from sagl.settings import Settings

_LABELS = "labels"  # the anchors' clusters
LEAVES = "leaves"  # their clusters in the finest layer
BETWEEN = "between"  # how clusters are near each other, (C, C)
_VOTERS = "voters."  # what names of the voters' tensors begin with


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
    _check_names(weights, expected)
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
    _check_names(tensors, names)
    anchors, labels = [tensors[str(i)] for i in range(n_views)], tensors.get(_LABELS)
    for i, (z, view) in enumerate(zip(anchors, views, strict=True)):
        form = (_rows(anchors[0]), len(view.encoder.g))
        _check_form(str(i), z, form, missing=network.has_heads)
    if not torch.stack([~z[:, 0].isnan() for z in anchors]).any(dim=0).all():
        raise ValueError("some anchors miss every view")
    if labels is not None:
        _check_labels(_LABELS, labels, len(anchors[0]), C)
    if LEAVES in tensors:
        _check_labels(LEAVES, tensors[LEAVES], len(anchors[0]), 2 * C)
    if BETWEEN in tensors:
        _check_form(BETWEEN, tensors[BETWEEN], (C, C))
    if voters is not None:
        n = _rows(voters.labels)
        for i, (x, view) in enumerate(zip(voters.features, views, strict=True)):
            _check_form(f"{_VOTERS}{i}", x, (n, len(view.encoder.shift)))
        _check_labels(f"{_VOTERS}{_LABELS}", voters.labels, n, C)
        if voters.nearest > n:
            raise ValueError(f"voters.nearest is {voters.nearest}, but there are {n}")
    return anchors, labels


def _rows(tensor: Tensor) -> int:
    return len(tensor) if tensor.ndim else 0


def _check_names(given: Mapping[str, Tensor], expected: Collection[str]) -> None:
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


def _check_labels(name: str, labels: Tensor, n: int, n_clusters: int) -> None:
    whole = labels.dtype in (torch.int64, torch.int32)
    if tuple(labels.shape) != (n,) or not whole:
        raise ValueError(f"tensor {name!r} is not one whole number for each of {n}")
    if not ((labels >= 0) & (labels < n_clusters)).all():
        raise ValueError(f"tensor {name!r} is not of clusters 0 to {n_clusters - 1}")
