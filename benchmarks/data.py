"""Real features to measure on: DIR/SET/{train,test}/VIEW.npy with labels.npy.

The files are not part of this repository. Labels are read for scoring alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sagl import Views

DEFAULT_VIEWS = {
    "pets_clip": ("clipvitB16", "clipvitB32"),
    "flowers_het": ("clipvitL14", "efflite0"),
    "banking77_text": ("mpnet", "use_ml3"),
    "handwritten": ("fac", "fou", "kar", "mor", "pix", "zer"),
    "scene15": ("v20", "v40", "v59"),
    "cub10": ("googlenet", "doc2vec"),
    "bbcsport": ("terms1", "terms2"),
    "landuse21": ("gist", "pyramid", "lbp"),
    "wiki": ("sift", "topics"),
}


class Split(NamedTuple):
    train: Views
    test: Views
    test_labels: NDArray[Any]
    n_clusters: int
    train_labels: NDArray[Any]


def all_views(directory: Path) -> dict[str, list[str]]:
    """Every set that is there, with the names of all its views."""
    return {
        place.parent.name: list(json.loads(place.read_text())["views"])
        for place in sorted(directory.glob("*/meta.json"))
    }


def by_size(directory: Path, names: Sequence[str]) -> list[str]:
    """The sets of these names, the one with the fewest samples first."""
    return sorted(names, key=lambda name: _meta(directory, name)["train"])


def load(directory: Path, name: str, views: Sequence[str] | None = None) -> Split:
    """One set with these views, or with those that the tables use."""
    root, meta = directory / name, _meta(directory, name)
    wanted = views or DEFAULT_VIEWS[name]
    parts = {
        part: Views({v: np.load(root / part / f"{v}.npy") for v in wanted})
        for part in ("train", "test")
    }
    train, test = (np.load(root / part / "labels.npy") for part in ("train", "test"))
    return Split(parts["train"], parts["test"], test, meta["classes"], train)


def _meta(directory: Path, name: str) -> dict[str, Any]:
    root = directory / name
    if not root.is_dir():
        raise SystemExit(f"{root} is not there: pass the features' place with --data")
    meta: dict[str, Any] = json.loads((root / "meta.json").read_text())
    return meta
