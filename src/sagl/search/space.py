"""Standardised samples and what predicts labels of them: ridge regressions, a graph.

A label that others can predict is a label that means something. Two predictors are
cheap enough to be asked thousands of times: per view, a ridge regression evaluated with
each sample left out of its own fit, in closed form; and the neighbours of a sample.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from sagl.nn.neighbours import nearest_neighbours, unit_rows
from sagl.nn.sparse import CSR, row_sums
from sagl.search.config import SearchConfig

# Directions whose squared length is a smaller share of the penalty than this count less
# than a tenth of what they would without it.
_SILENT = 0.1
_DEFAULT = SearchConfig()


class Pairs(NamedTuple):
    """Neighbours, each pair once, and how near they are, (m,) each."""

    one: Tensor
    other: Tensor
    weight: Tensor


class Spectrum:
    """Principal directions of rows x, (n, d), decomposed once for all who need them."""

    def __init__(self, x: Tensor) -> None:
        self.x = x
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
    predicted as well without them, several times as fast.
    """

    def __init__(self, spectrum: Spectrum, penalty: float) -> None:
        self.x = x = spectrum.x  # (n, d)
        weight = penalty * spectrum.values.sum() / len(x)
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


class Space:
    """Samples in one or more views, with their predictors.

    Parameters
    ----------
    features : sequence of Tensor (n, d)
        Standardised views, or the same views on several scales, one scale after the
        other. Only the directions of rows are used.
    neighbours : int
        How many each sample has in the graph.
    config : SearchConfig
        What those who look for clusters in it go by.

    Attributes
    ----------
    attention : CSR or None
        The network's sparse attention graph, by which partitions are scored once it is
        there (``score``). Samples draw their clusters along the wider ``graph``.
    """

    attention: CSR | None = None

    def __init__(
        self,
        features: Sequence[Tensor],
        neighbours: int,
        config: SearchConfig = _DEFAULT,
        scales: int = 1,
    ) -> None:
        self.config = config
        self.owners = list(range(len(features) // scales)) * scales
        views = [unit_rows(h.float()) for h in features]
        weights = [1 / len(views)] * len(views)
        spectra = [Spectrum(x) for x in views]
        fits = [Ridge(s, config.penalty) for s in spectra]
        self._set(spectra, fits, weights, neighbours)

    def _set(
        self,
        spectra: list[Spectrum],
        fits: list[Ridge],
        weights: list[float],
        neighbours: int,
    ) -> None:
        self.spectra = spectra
        self.views = [spectrum.x for spectrum in spectra]
        self.fits = fits
        self.weights = weights  # how much each view counts; their sum is one
        self.neighbours = neighbours
        self._alone: dict[tuple[int, ...], Space] = {}  # by parts, once asked for
        self._scoring_fits: dict[
            int, list[Ridge]
        ] = {}  # by number of clusters, likewise

    @cached_property
    def affinity(self) -> CSR:
        """Who is near whom, all views together, (n, n), symmetric."""
        return affinity(self.side_by_side(self.views), self.neighbours)

    @cached_property
    def graph(self) -> CSR:
        """The same with rows that sum to one: along it clusters are drawn."""
        return row_stochastic(self.affinity)

    @cached_property
    def pairs(self) -> Pairs:
        """The same, each pair of samples once."""
        return _pairs(self.affinity)

    def __len__(self) -> int:
        return len(self.views[0])

    def only(self, view: int, scale: int | None = None) -> Space:
        """The same samples as one view shows them, on all its scales or on one.

        Made once, however views count.
        """
        kept = [i for i, owner in enumerate(self.owners) if owner == view]
        kept = kept if scale is None else [kept[scale]]
        if len(kept) == len(self.views):
            return self
        if tuple(kept) not in self._alone:
            self._alone[tuple(kept)] = self._like(kept, [1 / len(kept)] * len(kept))
        return self._alone[tuple(kept)]

    def alone(self) -> list[Space]:
        """One space per view and scale."""
        n = self.n_views
        return [self.only(i % n, i // n) for i in range(len(self.views))]

    def on_first_scale(self) -> Space:
        """The same views on one scale, each weighted as it is on all."""
        return self._like(range(self.n_views), self.view_weights)

    @property
    def n_views(self) -> int:
        return max(self.owners) + 1

    @property
    def view_weights(self) -> list[float]:
        """How much each view counts on all its scales; their sum is one."""
        n = self.n_views
        return [sum(self.weights[view::n]) for view in range(n)]

    def weighted(self, weights: Sequence[float]) -> Space:
        """The same samples, with views that count differently."""
        total = sum(weights)
        shares = [weight / total for weight in weights]
        space = self._like(range(len(self.views)), shares)
        space._alone, space._scoring_fits = self._alone, self._scoring_fits
        return space

    def attending(self, attention: CSR | None) -> Space:
        """The same space, with the network's attention graph."""
        space = copy.copy(self)
        space.attention = attention
        return space

    def scoring_fits(self, n_clusters: int) -> list[Ridge]:
        """Per view, the stiff regression by which partitions are compared; made once.

        Its penalty weighs as much as the samples of one cluster, so that what it says
        does not depend on how many samples there are. A regression that bends more
        finds a plane through any cluster and takes both sides for clusters of their
        own.
        """
        if n_clusters not in self._scoring_fits:
            penalty = len(self) / n_clusters
            self._scoring_fits[n_clusters] = [Ridge(s, penalty) for s in self.spectra]
        return self._scoring_fits[n_clusters]

    def _like(self, kept: Sequence[int], weights: list[float]) -> Space:
        space = Space.__new__(Space)  # what was decomposed stays
        space.config = self.config
        space.owners = _from_zero([self.owners[i] for i in kept])
        spectra, fits = [self.spectra[i] for i in kept], [self.fits[i] for i in kept]
        space._set(spectra, fits, weights, self.neighbours)
        return space

    def side_by_side(self, parts: Sequence[Tensor]) -> Tensor:
        """What each view says, (n, d) each, as one row per sample.

        The product of two rows is the weighted mean of the views' products: what one
        view takes for near by chance, the others correct.
        """
        scaled = [w**0.5 * x for w, x in zip(self.weights, parts, strict=True)]
        return torch.cat(scaled, dim=1)

    def mean(self, parts: Sequence[Tensor]) -> Tensor:
        """The weighted mean of what the views say."""
        weighted = [w * x for w, x in zip(self.weights, parts, strict=True)]
        return torch.stack(weighted).sum(dim=0)


def _from_zero(names: list[int]) -> list[int]:
    known = sorted(set(names))
    return [known.index(name) for name in names]


def affinity(x: Tensor, neighbours: int) -> CSR:
    """Who is near whom among rows of x, (n, d), by direction: symmetric (n, n).

    exp(−d² / (σ_i σ_j)) for each of a sample's nearest neighbours, where σ is the
    distance to the last of them: dense and thin regions count alike.
    """
    n = len(x)
    count = min(neighbours, n - 1)
    own = torch.arange(n, device=x.device)[:, None].expand(n, count).flatten()
    near, cosines = nearest_neighbours(unit_rows(x), count)
    squared = (2 - 2 * cosines).clamp_min(1e-6)
    width = squared[:, -1].sqrt()
    weight = (-squared / (width[:, None] * width[near])).exp().flatten() / 2
    rows, cols = torch.cat([own, near.flatten()]), torch.cat([near.flatten(), own])
    return from_edges(rows, cols, torch.cat([weight, weight]), n)


def _pairs(symmetric: CSR) -> Pairs:
    rows, cols = symmetric.rows(), symmetric.cols
    once = rows < cols
    return Pairs(rows[once], cols[once], symmetric.entries[once])


def from_edges(rows: Tensor, cols: Tensor, weights: Tensor, n: int) -> CSR:
    """A square matrix from its entries; those of the same place are summed."""
    places, which = torch.unique(rows * n + cols, return_inverse=True)
    entries = weights.new_zeros(len(places)).index_add_(0, which, weights)
    ends = torch.bincount(places // n, minlength=n).cumsum(0)
    return CSR(torch.cat([ends.new_zeros(1), ends]), places % n, entries, (n, n))


def row_stochastic(matrix: CSR) -> CSR:
    """The matrix with its rows scaled to sum to one."""
    sums = row_sums(matrix, matrix.entries)
    return matrix.with_entries(matrix.entries / sums[matrix.rows()])


def mean_of(a: CSR, b: CSR) -> CSR:
    """(A + B) / 2."""
    rows, cols = torch.cat([a.rows(), b.rows()]), torch.cat([a.cols, b.cols])
    return from_edges(rows, cols, torch.cat([a.entries, b.entries]) / 2, a.shape[0])


def one_hot(labels: Tensor, n_clusters: int) -> Tensor:
    """Labels (n,) as rows (n, C) of float32."""
    return torch.nn.functional.one_hot(labels, n_clusters).float()
