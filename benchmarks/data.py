"""Real features to measure on: DIR/SET/{train,test}/VIEW.npy with labels.npy.

The files are not part of this repository. Labels are read for scoring alone.
"""

from __future__ import annotations

import json
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
}


class Split(NamedTuple):
    train: Views
    test: Views
    test_labels: NDArray[Any]
    n_clusters: int


def load(directory: Path, name: str) -> Split:
    """One set with the views that the tables use."""
    root = directory / name
    if not root.is_dir():
        raise SystemExit(f"{root} is not there: pass the features' place with --data")
    views = {
        part: Views({v: np.load(root / part / f"{v}.npy") for v in DEFAULT_VIEWS[name]})
        for part in ("train", "test")
    }
    classes = json.loads((root / "meta.json").read_text())["classes"]
    labels = np.load(root / "test" / "labels.npy")
    return Split(views["train"], views["test"], labels, classes)
