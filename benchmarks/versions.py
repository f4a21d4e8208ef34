"""Versions of a set: as it is, with a long tail, with a wrong number of clusters."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from data import DEFAULT_VIEWS
from sagl.features.split import Source, find_source

VERSIONS = ("plain", "long-tail", "double", "half")
PARTS = ("train", "test")
TAIL = 20  # the first class keeps all samples, the last one in so many
FEWEST = 3  # samples that a class keeps in any case


def directory_of(out: Path, name: str, version: str) -> Path:
    """Where the runs are kept; of the plain version, where `sagl compare` would."""
    return out / (name if version == "plain" else f"{name}-{version}")


def source_of(data: Path, out: Path, name: str, version: str) -> Source:
    """The files of a version; those of the long tail are written first if need be."""
    place = data / name
    if not place.is_dir():
        raise SystemExit(f"{place} is not there: pass the features' place with --data")
    if version == "long-tail":
        place = write_long_tail(place, name, directory_of(out, name, version) / "data")
    return find_source(place, DEFAULT_VIEWS[name])


def clusters_of(source: Source, version: str) -> int | None:
    """How many clusters to ask for; None for as many as there are classes."""
    if version not in ("double", "half"):
        return None
    _, truth = source.scored.read()
    classes = len(np.unique(truth))
    return 2 * classes if version == "double" else max(2, classes // 2)


def class_sizes(source: Source) -> str:
    """How large the classes of both parts are: a small set has a short tail."""
    ranges = []
    for part in (source.train, source.scored):
        counts = np.unique(part.read()[1], return_counts=True)[1]
        ranges.append(f"{counts.min()} to {counts.max()}")
    return f"classes of {ranges[0]} samples fitted, {ranges[1]} scored"


def write_long_tail(place: Path, name: str, out: Path) -> Path:
    """Both parts of a set with a tail, as files of their own; written once."""
    if out.is_dir():
        return out
    begun = out.with_name(f".{out.name}.tmp")
    shutil.rmtree(begun, ignore_errors=True)
    labels = {part: np.load(place / part / "labels.npy") for part in PARTS}
    order = np.random.default_rng(0).permutation(np.unique(labels["train"]))
    for part in PARTS:
        (begun / part).mkdir(parents=True)
        rows = tail_rows(labels[part], order)
        for file in (*DEFAULT_VIEWS[name], "labels"):
            array = np.load(place / part / f"{file}.npy")
            np.save(begun / part / f"{file}.npy", array[rows])
    begun.rename(out)
    return out


def tail_rows(labels: NDArray, order: NDArray, tail: int = TAIL) -> NDArray[np.int64]:
    """Rows to keep, in their order: classes shrink geometrically along ``order``."""
    rng = np.random.default_rng(0)
    kept = []
    for rank, label in enumerate(order):
        rows = np.flatnonzero(labels == label)
        share = tail ** -(rank / max(1, len(order) - 1))
        count = min(len(rows), max(FEWEST, round(share * len(rows))))
        kept.append(rng.choice(rows, count, replace=False))
    return np.sort(np.concatenate(kept))
