"""Principal directions of one view, and ridge regressions on them for any targets."""

from __future__ import annotations

import torch
from torch import Tensor

# Directions whose squared length is a smaller share of the penalty than this count less
# than a tenth of what they would without it.
_SILENT = 0.1


class Spectrum:
    """Principal directions of rows x, (n, d), decomposed once for all who need them.

    Rows that are not ``there``, (n,) of bool, are zeros.
    """

    def __init__(self, x: Tensor, there: Tensor | None = None) -> None:
        self.x = x
        self.there = there
        self.rows = len(x) if there is None else int(there.sum())
        n, d = x.shape
        self._by_samples = d > n
        self.values, self._vectors = torch.linalg.eigh(x @ x.T if d > n else x.T @ x)

    def directions(self, least: Tensor | float = 0.0) -> tuple[Tensor, Tensor]:
        """Squared lengths above ``least``, (r,), rising, and the directions, (d, r)."""
        floor = torch.finfo(self.values.dtype).eps * self.values[-1]
        kept = self.values > torch.clamp_min(torch.as_tensor(least).to(floor), floor)
        values, vectors = self.values[kept], self._vectors[:, kept]
        if self._by_samples:  # from directions among samples to those among columns
            vectors = self.x.T @ (vectors / values.sqrt())
        return values, vectors

    def leading(self, count: int) -> Tensor:
        """The ``count`` longest, (d, count), the longest first; zeros if there are
        fewer."""
        _, vectors = self.directions()
        vectors = vectors[:, -count:].flip(1)
        missing = count - vectors.shape[1]
        return torch.nn.functional.pad(vectors, (0, missing))

    def projected(self, count: int) -> Tensor:
        """The rows along so many of the longest directions, (n, at most count)."""
        return self.x if self.x.shape[1] <= count else self.x @ self.leading(count)


class Ridge:
    """Ridge regression on one view, for any targets.

    Principal directions that the penalty all but silences are left out: labels are
    predicted as well without them, several times as fast. What it says of samples that
    miss the view is zero.
    """

    def __init__(self, spectrum: Spectrum, penalty: float) -> None:
        self.x = x = spectrum.x  # (n, d)
        self.there, self.rows = spectrum.there, spectrum.rows
        weight = penalty * spectrum.values.sum() / self.rows
        least = _SILENT * torch.minimum(weight, spectrum.values[-1])
        values, vectors = spectrum.directions(least)
        # The product of X · basis, (n, r), with its own transpose maps targets to
        # fitted ones.
        self._basis = vectors / (values + weight).sqrt()  # (d, r)
        self._half = x @ self._basis
        # How much a sample's own target counts in its prediction; below 1 by λ > 0.
        leverage = self._half.square().sum(dim=1, keepdim=True)  # (n, 1)
        self.leverage = leverage.clamp_(max=0.999)
        self._others = 1 / (1 - self.leverage)

    def of(self, rows: Tensor) -> Tensor:
        """Of one row per sample, (n, …), those of samples that have the view."""
        return rows if self.there is None else rows[self.there]

    def weights(self, targets: Tensor) -> Tensor:
        """(d, C) for targets (n, C) of mean zero."""
        weights: Tensor = self._basis @ (self._half.T @ targets)
        return weights

    def left_out(self, targets: Tensor) -> Tensor:
        """What the fit to all other samples predicts for each sample, (n, C).

        The well-known identity of ridge regression: (ŷ − l y) / (1 − l) for a sample
        of leverage l.
        """
        # Few rows times many columns: the products are several times as fast as with
        # both transposed when there are few targets.
        fitted: Tensor = (targets.T @ self._half @ self._half.T).T.contiguous()
        return fitted.addcmul_(self.leverage, targets, value=-1).mul_(self._others)
