"""The demo: handwritten digits that ship with scikit-learn, seen through three views.

The 8 × 8 images are real scans. Each view keeps something the others lose, as models
with different objectives do: *pixels* where the ink is, *strokes* which way it runs,
*spectrum* how it repeats, wherever it is.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import zoom
from sklearn.datasets import load_digits

from sagl.baselines import KMeans
from sagl.estimator import SAGL
from sagl.evaluation.metrics import clustering_scores
from sagl.evaluation.protocols import evaluate
from sagl.experiments.fit import fit_run
from sagl.features.samples import Kind
from sagl.views import Views

__all__ = ["DigitImages", "Digits", "digit_views", "load", "run_demo"]

SEEDS = 3
_DIRECTIONS = 8
_CELL = 6
_FAINT = 0.05  # keeps empty cells empty


class Digits(NamedTuple):
    """A fixed split of the 1,797 digits. Labels are for scoring alone."""

    train: Views
    test: Views
    train_labels: NDArray[np.int64]
    test_labels: NDArray[np.int64]


def load(test_share: float = 0.3, seed: int = 0) -> Digits:
    """The digits as views, split at random."""
    data = load_digits()
    views = digit_views(data.images)
    order = np.random.default_rng(seed).permutation(len(views))
    cut = round(len(views) * test_share)
    test, train = np.sort(order[:cut]), np.sort(order[cut:])
    return Digits(views[train], views[test], data.target[train], data.target[test])


def digit_views(images: NDArray[Any]) -> Views:
    """Three views of grey images, (n, height, width)."""
    images = images.astype(np.float32) / images.max()
    return Views(
        {
            "pixels": images.reshape(len(images), -1),
            "strokes": _strokes(images),
            "spectrum": _spectrum(images),
        }
    )


def _strokes(images: NDArray[np.float32]) -> NDArray[np.float32]:
    """Histograms of gradient directions in overlapping cells, each of length one."""
    fine = zoom(images, (1, 2, 2), order=1)  # gradients between the scanned pixels
    dy, dx = np.gradient(fine, axis=(1, 2))
    strength = np.hypot(dx, dy)
    angle = np.arctan2(dy, dx) / (2 * np.pi) * _DIRECTIONS  # in bins, −4 .. 4
    # Each gradient is shared between the two directions it lies between.
    low = np.floor(angle)
    share = angle - low
    bins = np.arange(_DIRECTIONS)
    maps = sum(
        ((low + offset)[..., None] % _DIRECTIONS == bins) * (strength * w)[..., None]
        for offset, w in ((0, 1 - share), (1, share))
    )  # (n, 16, 16, directions)
    starts = range(0, fine.shape[1] - _CELL + 1, _CELL // 2)
    cells = [
        maps[:, i : i + _CELL, j : j + _CELL].sum(axis=(1, 2))
        for i in starts
        for j in starts
    ]
    lengths = [np.sqrt((cell**2).sum(axis=1, keepdims=True) + _FAINT) for cell in cells]
    return np.concatenate(
        [cell / length for cell, length in zip(cells, lengths, strict=True)], axis=1
    ).astype(np.float32)


def _spectrum(images: NDArray[np.float32]) -> NDArray[np.float32]:
    """Log magnitudes of the Fourier transform: unchanged when the digit moves."""
    padded = np.fft.rfft2(images, s=(16, 16))
    half = np.abs(padded).reshape(len(images), -1)
    return np.log1p(half).astype(np.float32)


class DigitImages:
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
    C, seeds = len(np.unique(digits.train_labels)), range(seed, seed + SEEDS)
    start = time.perf_counter()
    models = [SAGL(C, random_state=s, verbose=verbose) for s in seeds]
    fit_run(models[0], digits.train, out)
    for model in models[1:]:
        model.fit(digits.train)
    seconds = time.perf_counter() - start
    others = [KMeans(C, random_state=s).fit(digits.train) for s in seeds]
    names, sparsity = digits.train.names, models[0].history_[-1]["sparsity"]
    return {
        "out": str(out),
        "views": dict(zip(names, digits.train.widths, strict=True)),
        "n_train": len(digits.train),
        "n_test": len(digits.test),
        "seeds": list(seeds),
        "seconds": round(seconds, 1),
        "sagl": [evaluate(m, digits.test, digits.test_labels) for m in models],
        "kmeans": [
            clustering_scores(digits.test_labels, m.predict(digits.test))
            for m in others
        ],
        "sparsity": dict(zip(names, sparsity, strict=True)),
    }


def free_directory(wanted: Path) -> Path:
    """``wanted``, or the first of wanted-2, wanted-3, ... that is not there yet."""
    candidate, number = wanted, 1
    while candidate.exists():
        number += 1
        candidate = wanted.with_name(f"{wanted.name}-{number}")
    return candidate
