"""The demo: real digits, three views, SAGL beside k-means, in a minute or two."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize

from sagl.estimator import SAGL
from sagl.evaluation.metrics import clustering_scores
from sagl.evaluation.protocols import evaluate
from sagl.experiments.digits import Digits, load
from sagl.experiments.fit import fit_run
from sagl.features.samples import Kind
from sagl.views import Views

SEEDS = 3


class DigitPictures:
    """The scans behind the view *pixels*, for a report to show."""

    kind: Kind = "image"
    labels = None

    def __init__(self, views: Views) -> None:
        pixels = np.asarray(views["pixels"])
        side = round(pixels.shape[1] ** 0.5)
        # Ink on paper, as it was written.
        self._grey = (255 * (1 - pixels)).round().astype(np.uint8)
        self._grey = self._grey.reshape(-1, side, side)
        self.ids = [f"digit {row}" for row in range(len(pixels))]

    def __getitem__(self, row: int) -> Any:
        from PIL import Image

        return Image.fromarray(self._grey[row])

    def describe(self) -> dict[str, Any]:
        """Where they come from."""
        return {"reader": "digits", "kind": self.kind, "samples": len(self.ids)}


def run_demo(out: Path, seed: int = 0, *, verbose: bool = False) -> dict[str, Any]:
    """Fit the digits with a few seeds, score both methods on held-out digits.

    The run of the first seed is written to ``out``.
    """
    digits = load()
    n_clusters = len(np.unique(digits.train_labels))
    start = time.perf_counter()
    models = [
        SAGL(n_clusters, random_state=seed + i, verbose=verbose) for i in range(SEEDS)
    ]
    fit_run(models[0], digits.train, out)
    for model in models[1:]:
        model.fit(digits.train)
    seconds = time.perf_counter() - start
    sparsity = models[0].history_[-1]["sparsity"]
    return {
        "out": str(out),
        "views": dict(zip(digits.train.names, digits.train.widths, strict=True)),
        "n_train": len(digits.train),
        "n_test": len(digits.test),
        "seeds": [seed + i for i in range(SEEDS)],
        "seconds": round(seconds, 1),
        "sagl": [evaluate(m, digits.test, digits.test_labels) for m in models],
        "kmeans": [_kmeans_scores(digits, n_clusters, seed + i) for i in range(SEEDS)],
        "sparsity": dict(zip(digits.train.names, sparsity, strict=True)),
    }


def _kmeans_scores(digits: Digits, n_clusters: int, seed: int) -> dict[str, float]:
    kmeans = KMeans(n_clusters, n_init=10, random_state=seed)
    kmeans.fit(concatenated(digits.train))
    predicted = kmeans.predict(concatenated(digits.test))
    return clustering_scores(digits.test_labels, predicted)


def concatenated(views: Views) -> NDArray[np.float32]:
    """All views side by side, each row of each view scaled to length one."""
    return np.concatenate(
        [normalize(np.asarray(array, dtype=np.float32)) for _, array in views.items()],
        axis=1,
    )


def free_directory(wanted: Path) -> Path:
    """``wanted``, or the first of wanted-2, wanted-3, ... that is not there yet."""
    candidate, number = wanted, 1
    while candidate.exists():
        number += 1
        candidate = wanted.with_name(f"{wanted.name}-{number}")
    return candidate
