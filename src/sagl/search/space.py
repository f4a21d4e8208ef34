"""Standardised samples and what predicts labels of them: ridge regressions, a graph.

A label that others can predict is a label that means something. Two predictors are
cheap enough to be asked thousands of times: per view, a ridge regression evaluated with
each sample left out of its own fit, in closed form; and the neighbours of a sample.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from sagl.nn.cells import near_in_cells
from sagl.nn.missing import present_in, weight_there, without_nan
from sagl.nn.neighbours import nearest_neighbours, unit_rows
from sagl.nn.sparse import CSR, multiply, row_sums
from sagl.search.config import SearchConfig
from sagl.search.fill import fillers
from sagl.search.ridge import Ridge, Spectrum

# So many samples have fewer than 2³¹ pairs; short integers are sorted in half the time.
_SHORT_ROWS = 46_000
_ALL_PAIRS = 20_000  # samples of which all are compared with all
_DEFAULT = SearchConfig()


class Pairs(NamedTuple):
    """Neighbours, each pair once, and how near they are, (m,) each."""

    one: Tensor
    other: Tensor
    weight: Tensor


class Space:
    """Samples in one or more views, with their predictors.

    Parameters
    ----------
    features : sequence of Tensor (n, d)
        Standardised views, or the same views on several scales, one scale after the
        other. Only the directions of rows are used. A row of NaN is missing.
    neighbours : int
        How many each sample has in the graph.
    config : SearchConfig
        What those who look for clusters in it go by.

    Attributes
    ----------
    present : Tensor (n, V) of bool or None
        Which samples have which view, on each scale, if some miss one.
    there : Tensor of bool or None
        Of a space of one view: which samples have it, among those of the space that it
        was made from. Others are not in it.
    attention : CSR or None
        The network's sparse attention graph, by which partitions are scored once it is
        there (``score``). Samples draw their clusters along the wider ``graph``.
    """

    attention: CSR | None = None
    there: Tensor | None = None

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
        present = present_in(views)
        if present is None:
            spectra = [Spectrum(x) for x in views]
        else:
            there = [None if one.all() else one for one in present.unbind(dim=1)]
            spectra = [
                Spectrum(without_nan(x), one)
                for x, one in zip(views, there, strict=True)
            ]
        fits = [Ridge(s, config.penalty) for s in spectra]
        self._set(spectra, fits, weights, neighbours, present)

    def _set(
        self,
        spectra: list[Spectrum],
        fits: list[Ridge],
        weights: list[float],
        neighbours: int,
        present: Tensor | None,
    ) -> None:
        self.present = present
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
        return affinity(self.side_by_side(self.views), self.neighbours, self.present)

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

        Without those that miss it. Made once, however views count.
        """
        kept = [i for i, owner in enumerate(self.owners) if owner == view]
        kept = kept if scale is None else [kept[scale]]
        if len(kept) == len(self.views):
            return self
        if tuple(kept) not in self._alone:
            self._alone[tuple(kept)] = self._one_view(kept)
        return self._alone[tuple(kept)]

    def _one_view(self, kept: Sequence[int]) -> Space:
        there = self.spectra[kept[0]].there
        if there is None:
            space = self._like(kept, [1 / len(kept)] * len(kept))
            space.present = None
            return space
        rows = [self.views[i][there] for i in kept]
        space = Space(rows, self.neighbours, self.config, len(kept))
        space.there = there
        return space

    def of(self, labels: Tensor) -> Tensor:
        """Of labels of the samples that a space of one view was made from, its own."""
        return labels if self.there is None else labels[self.there]

    def everywhere(self, labels: Tensor) -> Tensor:
        """And back: −1 for those that miss the view."""
        if self.there is None:
            return labels
        every = labels.new_full((len(self.there),), -1)
        every[self.there] = labels
        return every

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
            self._scoring_fits[n_clusters] = [
                Ridge(s, s.rows / n_clusters) for s in self.spectra
            ]
        return self._scoring_fits[n_clusters]

    def _like(self, kept: Sequence[int], weights: list[float]) -> Space:
        space = Space.__new__(Space)  # what was decomposed stays
        space.config = self.config
        space.owners = _from_zero([self.owners[i] for i in kept])
        spectra, fits = [self.spectra[i] for i in kept], [self.fits[i] for i in kept]
        present = None if self.present is None else self.present[:, list(kept)]
        space._set(spectra, fits, weights, self.neighbours, present)
        return space

    def side_by_side(self, parts: Sequence[Tensor]) -> Tensor:
        """What each view says, (n, d) each, as one row per sample.

        The product of two rows is the weighted mean of the views' products: what one
        view takes for near by chance, the others correct. A view that a sample misses
        shows the mean of its neighbours by the others.
        """
        if self.present is not None:
            parts = [
                x if fill is None else x + multiply(fill, x)
                for x, fill in zip(parts, self._fillers, strict=True)
            ]
        scaled = [w**0.5 * x for w, x in zip(self.weights, parts, strict=True)]
        return torch.cat(scaled, dim=1)

    @cached_property
    def _fillers(self) -> list[CSR | None]:
        """By what neighbours are like where a view is missing."""
        assert self.present is not None
        scaled = [w**0.5 * x for w, x in zip(self.weights, self.views, strict=True)]
        n = self.n_views
        made = fillers(scaled, self.present[:, :n], self.neighbours)
        return made * (len(self.views) // n)

    @cached_property
    def _weight_there(self) -> Tensor:
        """How much the views of each sample count, (n,), relative to all."""
        assert self.present is not None
        weights = torch.tensor(self.weights, device=self.present.device)
        return weight_there(self.present, weights)

    def said(self, parts: Iterable[Tensor]) -> Tensor:
        """What the views say of samples, (n, C): the mean of those that each has."""
        mean = self.mean(parts)
        return mean if self.present is None else mean.div_(self._weight_there[:, None])

    def mean(self, parts: Iterable[Tensor]) -> Tensor:
        """The weighted mean of what the views say, which they may say one by one."""
        weighed = zip(self.weights, parts, strict=True)
        weight, part = next(weighed)
        mean = weight * part
        for weight, part in weighed:
            mean.add_(part, alpha=weight)
        return mean


def _from_zero(names: list[int]) -> list[int]:
    known = sorted(set(names))
    return [known.index(name) for name in names]


def affinity(x: Tensor, neighbours: int, present: Tensor | None = None) -> CSR:
    """Who is near whom among rows of x, (n, d), by direction: symmetric (n, n).

    exp(−d² / (σ_i σ_j)) for each of a sample's nearest neighbours, where σ is the
    distance to the last of them: dense and thin regions count alike. Where samples
    miss views, (n, L), those that have none in common are no neighbours. Of very many
    samples a neighbour is now and then passed over.
    """
    n = len(x)
    count = min(neighbours, n - 1)
    own = torch.arange(n, device=x.device)[:, None].expand(n, count).flatten()
    search = nearest_neighbours if n <= _ALL_PAIRS else near_in_cells
    near, cosines = search(unit_rows(x), count)
    squared = (2 - 2 * cosines).clamp_min(1e-6)
    width = squared[:, -1].sqrt()
    weight = (-squared / (width[:, None] * width[near])).exp().flatten() / 2
    other = near.flatten()
    if present is not None:
        common = (present[own] & present[other]).any(dim=1)
        own, other, weight = own[common], other[common], weight[common]
    rows, cols = torch.cat([own, other]), torch.cat([other, own])
    return from_edges(rows, cols, torch.cat([weight, weight]), n)


def _pairs(symmetric: CSR) -> Pairs:
    rows, cols = symmetric.rows(), symmetric.cols
    once = rows < cols
    return Pairs(rows[once], cols[once], symmetric.entries[once])


def from_edges(rows: Tensor, cols: Tensor, weights: Tensor, n: int) -> CSR:
    """A square matrix from its entries; those of the same place are summed."""
    keys = rows * n + cols
    keys = keys.int() if n < _SHORT_ROWS else keys
    places, which = torch.unique(keys, return_inverse=True)
    places = places.long()
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


def deviations(p: Tensor) -> Tensor:
    """Of each column of p, (n, C), at least a trifle.

    With many rows this takes an eighth of the time of ``std``.
    """
    squared = (p - p.mean(dim=0)).square_().sum(dim=0)
    deviation: Tensor = (squared / max(len(p) - 1, 1)).sqrt_()
    return deviation.clamp_min_(1e-6)


def one_hot(labels: Tensor, n_clusters: int) -> Tensor:
    """Labels (n,) as rows (n, C) of float32."""
    return torch.nn.functional.one_hot(labels, n_clusters).float()
