"""What the JSON files of a run hold, field by field; ``sagl.schema`` checks them.

Formats of runs: 3 has no voters, 4 (of sagl 0.1) no heads, and from 6 on a
configuration holds a checksum of itself and of every part of its run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import numpy as np

from sagl.later import CORRECTIONS, Corrected, Stream
from sagl.model import Layer
from sagl.recipes import RecipeName
from sagl.schema import AtLeast0, Count, Positive, Share, Since, Within, check
from sagl.search.anneal import Sizes
from sagl.search.count import ClusterCount
from sagl.search.score import Score
from sagl.search.stability import DoubtCurve
from sagl.settings import Settings

FORMAT = 6
OLDEST = 3  # that is read
_FORMER_SIZES = {"even": "balanced", "free": "any"}  # words of formats 3 and 4

Checksum = str


class SavedView(TypedDict):
    """A view that the run was fitted on."""

    name: str
    width: Annotated[int, Within(1, 1 << 31)]


class SavedLayer(TypedDict):
    """``Layer``."""

    n_clusters: Positive
    parents: list[Count]
    stability: Share
    kept: AtLeast0


class SavedVoters(TypedDict):
    """``Voters`` but for their tensors."""

    shares: list[float]
    nearest: Positive
    weight: float


class SavedStream(TypedDict):
    """``Stream``."""

    seen: Positive
    updates: Positive
    whole: bool


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
    layers: Annotated[list[SavedLayer] | None, Since(6)]
    voters: Annotated[SavedVoters | None, Since(4)]
    corrections: NotRequired[Corrected]  # of runs that somebody corrected
    stream: NotRequired[SavedStream]  # of runs that took in new samples
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


# What only runs have that somebody corrected or that took in new samples; of all others
# a configuration has no such field.
LATER: dict[str, Callable[[Any], Any]] = {
    "corrections": Corrected.from_dict,
    "stream": lambda saved: Stream(**saved),
}
# What not every run has: as JSON, and back.
EXTRAS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "score": (Score._asdict, lambda saved: Score(**saved)),
    "cluster_count": (ClusterCount.as_dict, ClusterCount.from_dict),
    "doubt": (DoubtCurve.as_dict, DoubtCurve.from_dict),
    **dict.fromkeys(("view_weights", "missing"), (list, tuple)),
    "cluster_sizes": (str, str),
    "layers": (
        lambda layers: [layer._asdict() for layer in layers],
        lambda saved: tuple(
            Layer(**{**x, "parents": tuple(x["parents"])}) for x in saved
        ),
    ),
}


def optional(value: Any, convert: Callable[[Any], Any]) -> Any:
    """The value converted, if there is one."""
    return None if value is None else convert(value)


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
