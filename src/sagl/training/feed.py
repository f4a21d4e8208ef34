"""From views to the standardised tensors of a batch on the device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sagl.checks import check_choice
from sagl.nn.missing import present_in, without_nan
from sagl.nn.network import Network
from sagl.views import Views

Normalization = Literal["none", "center", "pareto", "standard"]
# A search may look at each view on more than one scale; a network is on the first.
Scales = Literal["auto", "none", "center", "pareto", "standard"]
_AUTO: tuple[Normalization, ...] = ("standard", "pareto")

# The length that centred features have on average: the scale at which CLIP features
# come and at which the paper's learning rates were chosen.
MEAN_NORM = 10.0
# Views up to this size live on the device as float32; larger ones are read per batch.
_RESIDENT_BYTES = 4 << 30
_BLOCK_ROWS = 8192
_ROWWISE = {"standard": 1.0, "pareto": 0.5}  # rows of one length; power of deviations


def scales_of(normalize: Scales) -> tuple[Normalization, ...]:
    """The scales that views are looked at on."""
    return _AUTO if normalize == "auto" else (normalize,)


def set_standardization(network: Network, views: Views, kind: Normalization) -> None:
    """Measure each view and store its shift and scale in the network.

    ``"none"`` leaves features as they are; ``"center"`` subtracts the mean sample and
    scales so that the mean distance from it is 10; ``"standard"`` brings every column
    to mean 0 and deviation 1, then every row to length 10; ``"pareto"`` the same, but
    divides columns by the root of their deviation: loud columns stay louder than quiet
    ones, but less so (Pareto scaling, as chemometrics has it).
    """
    measured = standardization(views, kind)
    for view, (shift, scale) in zip(network.view_networks, measured, strict=True):
        view.encoder.shift.copy_(torch.from_numpy(shift))
        view.encoder.scale.copy_(torch.from_numpy(scale))
        view.encoder.row_length.fill_(MEAN_NORM if kind in _ROWWISE else 0.0)


def standardization(
    views: Views, kind: Normalization
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Shift and scale of each column of each view, for (h − shift) · scale.

    Of the samples that have the view.
    """
    check_choice("normalize", kind, Normalization)
    if kind == "none":
        return [(np.zeros(width), np.ones(width)) for width in views.widths]
    counts = views.counts
    sums = [np.zeros(width) for width in views.widths]
    for block in _blocks_there(views):
        for total, h in zip(sums, block, strict=True):
            total += h.sum(axis=0, dtype=np.float64)
    means = [total / n for total, n in zip(sums, counts, strict=True)]
    norms = [0.0] * len(means)
    squares = [np.zeros(width) for width in views.widths]
    for block in _blocks_there(views):
        for i, h in enumerate(block):
            centred = h - means[i]
            norms[i] += float(np.linalg.norm(centred, axis=1).sum())
            squares[i] += np.square(centred).sum(axis=0)
    if kind in _ROWWISE:
        deviations = [np.sqrt(x / n) for x, n in zip(squares, counts, strict=True)]
        inverse = [_inverse(d, m) for m, d in zip(means, deviations, strict=True)]
        return [(m, i ** _ROWWISE[kind]) for m, i in zip(means, inverse, strict=True)]
    return [
        (m, np.full(len(m), MEAN_NORM * n / norm))
        for m, n, norm in zip(means, counts, norms, strict=True)
    ]


def _blocks_there(views: Views) -> Iterator[list[NDArray[np.float32]]]:
    """Blocks of rows, of each view those that are there."""
    for block in views.blocks(_BLOCK_ROWS):
        if views.present is None:
            yield block
        else:
            yield [h[~np.isnan(h[:, 0])] for h in block]


def _inverse(
    deviations: NDArray[np.float64], means: NDArray[np.float64]
) -> NDArray[np.float64]:
    """1 / deviation; 0 for a column that varies by no more than rounding."""
    varies = deviations > 1e-6 * np.abs(means)
    return np.divide(1.0, deviations, out=np.zeros_like(deviations), where=varies)


def standardized(
    views: Views,
    rows: NDArray[np.int64],
    device: torch.device,
    kind: Normalization = "standard",
) -> list[Tensor]:
    """The given rows on a scale that is measured over all samples; NaN if missing."""
    measured = standardization(views, kind)
    return [
        torch.from_numpy(((h - shift) * scale).astype(np.float32)).to(device)
        for h, (shift, scale) in zip(views.take(rows), measured, strict=True)
    ]


class Feed:
    """Standardised float32 batches of some views, on the device of the network.

    What a sample misses is a row of NaN; no training takes such batches.
    """

    def __init__(
        self,
        views: Views,
        network: Network,
        device: torch.device,
        resident_bytes: int = _RESIDENT_BYTES,
    ) -> None:
        self._views = views
        self._encoders = [view.encoder for view in network.view_networks]
        self._device = device
        self._resident: list[Tensor] | None = None
        if len(views) * sum(views.widths) * 4 <= resident_bytes:
            self._resident = self._load(np.arange(len(views)))

    def __len__(self) -> int:
        return len(self._views)

    def __call__(self, rows: NDArray[np.int64]) -> list[Tensor]:
        """The given rows of every view, in the given order."""
        if self._resident is None:
            return self._load(rows)
        index = torch.from_numpy(rows).to(self._device)
        return [h.index_select(0, index) for h in self._resident]

    def present(self, rows: NDArray[np.int64]) -> None:
        """As of ``Rows``: what is trained on a feed misses nothing."""

    def in_order(self) -> Iterator[list[Tensor]]:
        """All samples from first to last, in blocks."""
        for start in range(0, len(self), _BLOCK_ROWS):
            yield self(np.arange(start, min(start + _BLOCK_ROWS, len(self))))

    def _load(self, rows: NDArray[np.int64]) -> list[Tensor]:
        return [
            encoder.standardize(torch.from_numpy(h).to(self._device))
            for encoder, h in zip(self._encoders, self._views.take(rows), strict=True)
        ]


class Rows:
    """Batches of standardised features that are there as tensors, (n, d) per view.

    Rows of NaN, of samples that miss a view, become zeros.
    """

    def __init__(self, features: Sequence[Tensor]) -> None:
        self._present = present_in(features)
        if self._present is not None:
            features = [without_nan(h) for h in features]
        self._features = features

    def __len__(self) -> int:
        return len(self._features[0])

    def __call__(self, rows: NDArray[np.int64]) -> list[Tensor]:
        """The given rows of every view, in the given order."""
        index = torch.from_numpy(rows).to(self._features[0].device)
        return [h.index_select(0, index) for h in self._features]

    def present(self, rows: NDArray[np.int64]) -> Tensor | None:
        """Which of these samples have which view, (b, L); None where nobody misses
        any."""
        if self._present is None:
            return None
        index = torch.from_numpy(rows).to(self._present.device)
        return self._present.index_select(0, index)
