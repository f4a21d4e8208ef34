"""Handwritten digits that ship with scikit-learn, seen through three views.

The 8 × 8 images are real scans. Each view keeps something the others lose, as models
with different objectives do: *pixels* where the ink is, *strokes* which way it runs,
*spectrum* how it repeats, wherever it is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import zoom
from sklearn.datasets import load_digits

from sagl.views import Views

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
