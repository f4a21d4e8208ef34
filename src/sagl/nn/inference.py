"""Batch-invariant prediction: new samples attend to anchors.

A sample must get the same answer, to the last bit, alone or among others and in any
order. Two things stand in the way and both are removed here:

* the graph: a new sample attends to the anchors (linear features of training samples,
  kept with the model) and to itself, never to the other samples asked about; voters,
  too, are training samples kept with the model;
* rounding: a matrix product adds up its terms in an order that depends on the shapes
  around it. Operands are therefore rounded to a fixed-point grid on which every
  partial sum is an integer that float64 holds exactly, so no order can matter.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from sagl.nn.entmax import entmax_of_largest, entmax_rows
from sagl.nn.missing import present_in, projected, said, shared, without_nan
from sagl.nn.neighbours import unit_rows
from sagl.nn.network import (
    Linear,
    Network,
    ViewNetwork,
    concatenate,
    side_by_side,
)

_MANTISSA = 53  # bits that float64 holds exactly
_HALF = (_MANTISSA - 1) // 2
# Scores held at once. The number of rows in a block depends on anchors and voters, and
# the last block is filled up, so that every reduction has one shape for a given model.
_BLOCK_SCORES = 1 << 21
_MAX_ROWS = 256


@torch.no_grad()
def anchor_features(network: Network, features: Sequence[Tensor]) -> list[Tensor]:
    """z of each view, (n, D) in float32, for raw features of n samples.

    A row of NaN where a sample misses the view.
    """
    anchors = []
    for view, h in zip(network.view_networks, features, strict=True):
        encoder = _in_float64(view).encoder
        h = encoder.standardize(h.to(encoder.v))
        anchors.append(encoder(h, exact_matmul).float())
    return anchors


@torch.no_grad()
def whole_set(
    network: Network, blocks: Iterable[Sequence[Tensor]], *, values: bool = True
) -> list[Linear]:
    """What each view makes of all samples, given as blocks of standardised features.

    Who only wants to know who attends to whom needs no ``values``, which are the most.
    """
    views = network.view_networks
    parts: list[list[Linear]] = [[] for _ in views]
    for block in blocks:
        for part, view, h in zip(parts, views, block, strict=True):
            linear = view.linear(h)
            if not values:
                linear = linear._replace(values=linear.keys[:, :0])
            part.append(linear)
    return [concatenate(part) for part in parts]


@torch.no_grad()
def transductive_probabilities(
    network: Network, blocks: Iterable[Sequence[Tensor]]
) -> Tensor:
    """q, (n, C), when all samples attend to each other: one graph over all."""
    return network.vote(network.log_q(whole_set(network, blocks)))


class Voters(NamedTuple):
    """Of runs of sagl 0.1: samples of known clusters that vote for those near them."""

    features: list[Tensor]  # per view (v, d), standardised rows of length one, float16
    labels: Tensor  # (v,) the cluster of each
    shares: list[float]  # how much each view counts; one in all
    nearest: int  # how many of the nearest vote, in each view
    weight: float  # what a vote of one mind adds to the representation of its cluster


class Answer(NamedTuple):
    """Predictions for n samples, float64."""

    q: Tensor  # (n, C) probability of each cluster, all views together
    p: list[Tensor]  # per view (n, C), the representations
    present: Tensor | None = None  # (n, L) which views are there, if some are missing


class Predictor:
    """A trained network and its anchors, ready to answer for new samples.

    Parameters
    ----------
    network : Network
    anchors : sequence of Tensors of shape (a, D)
        Linear features z of the anchors, one tensor per view; rows of NaN are missing.
    labels : Tensor of shape (a,), optional
        The clusters of the anchors, for a network with heads.
    voters : Voters, optional
        Of runs that an older sagl saved: samples near the one asked about, whose votes
        are added to what the network says.
    """

    def __init__(
        self,
        network: Network,
        anchors: Sequence[Tensor],
        labels: Tensor | None = None,
        voters: Voters | None = None,
    ) -> None:
        self.device = _float64_device(next(network.parameters()).device)
        self.views = [_in_float64(view) for view in network.view_networks]
        self.vote = network.vote
        z = [z.to(self.device, torch.float64) for z in anchors]
        self._present = present_in(z)  # which anchors have which view
        self.anchors = [without_nan(of_view) for of_view in z]
        with torch.no_grad():
            keys = [
                z if view.graph == "identity" else exact_matmul(z, view.V)
                for view, z in zip(self.views, self.anchors, strict=True)
            ]
        self.network = network
        self._clusters = torch.empty(0, dtype=torch.int64)
        if network.has_heads:
            if labels is None:
                raise ValueError("a network with heads needs the clusters of anchors")
            self._clusters = labels.to(self.device)
            keys = [torch.cat(keys, dim=1)]
        self.keys = [_on_grid(x, _bits(x.shape[1]), dim=1) for x in keys]
        self.voters = voters
        self._electorate = [] if voters is None else self._prepared(voters.features)
        kept = [*self.anchors, *(x.T for x in self._electorate)]
        largest = max(len(rows) for rows in kept)
        self.block_rows = max(2, min(_MAX_ROWS, _BLOCK_SCORES // largest))

    @torch.no_grad()
    def answer(self, features: Sequence[Tensor]) -> Answer:
        """What the model says of at most ``block_rows`` samples, from raw features."""
        n = len(features[0])
        rows = self._block(features)
        p = self._representations(rows)
        logits = torch.stack(p)
        if self.voters is not None:  # who fills up the block need not ask them
            votes = self._votes([unit_rows(h)[:n] for h in rows], self.voters)
            logits[:, :n] += self.voters.weight * votes
        q = self.vote(torch.log_softmax(logits, dim=-1))
        return Answer(q[:n], [view[:n] for view in p], present_in(features))

    @torch.no_grad()
    def nearness(self, features: Sequence[Tensor]) -> Tensor:
        """How like each anchor samples are, (n, a) from −1 to 1, from raw features.

        The cosine of their z, mean over views by weight, of the views that both have:
        what the graph is made of, without what was learned about whom to attend to.
        Like an answer it does not depend on company.
        """
        n = len(features[0])
        rows = self._block(features)
        total = torch.zeros(len(rows[0]), len(self.anchors[0])).to(rows[0])
        for view, h, directions, share in zip(
            self.views, rows, self._directions, self.shares, strict=True
        ):
            new = without_nan(unit_rows(view.encoder(h, exact_matmul)))
            bits = _bits(len(directions))
            total += share * (_on_grid(new, bits, dim=1) @ directions)
        weight = self._weight_in_common(present_in(rows))
        return (total if weight is None else total / weight)[:n]

    def _weight_in_common(self, present: Tensor | None) -> Tensor | None:
        """How much the views count that samples, (n, L), share with anchors, (n, a)."""
        theirs = self._present
        if present is None and theirs is None:
            return None
        everyone = torch.ones(1, len(self.views), dtype=torch.bool, device=self.device)
        ours = everyone if present is None else present
        theirs = everyone if theirs is None else theirs
        weight = torch.zeros(len(ours), len(theirs)).to(self.anchors[0])
        for i, share in enumerate(self.shares):  # one by one: no order of sums
            weight += share * (ours[:, i, None] & theirs[:, i])
        whole = ours.all(dim=1)[:, None] & theirs.all(dim=1)
        # With nothing in common they are as alike as samples are on average.
        return (weight / sum(self.shares)).masked_fill(whole | (weight == 0), 1.0)

    @cached_property
    def _directions(self) -> list[Tensor]:
        """Of the anchors, as the right side of an exact product, (D, a) per view."""
        columns = [unit_rows(z).T for z in self.anchors]
        return [_on_grid(x, _bits(len(x)), dim=0) for x in columns]

    @torch.no_grad()
    def attended(self, features: Sequence[Tensor]) -> Tensor:
        """How much samples attend to each anchor, (n, a), from raw features.

        By all views together; in a network without heads the mean of the views, where
        rows lack what a sample attends to itself. Like an answer it does not depend on
        company.
        """
        linear = [
            view.linear(h, exact_matmul)
            for view, h in zip(self.views, self._block(features), strict=True)
        ]
        if self.views[0].graph == "identity":
            shape = (self.block_rows, len(self.anchors[0]))
            A = torch.zeros(shape, dtype=torch.float64, device=self.device)
        elif self.network.has_heads:
            A = self.attention(linear)
        else:
            rows = zip(self.views, linear, self.keys, strict=True)
            graphs = [self._with_itself(*row)[:, :-1] for row in rows]
            A = torch.stack(graphs).mean(dim=0)
        return A[: len(features[0])]

    @property
    def shares(self) -> list[float]:
        """How much each view counts when samples are compared; one in all."""
        if self.network.has_heads:
            weights: list[float] = self.network.view_weights.double().tolist()
            return weights
        return [1 / len(self.views)] * len(self.views)

    def _block(self, features: Sequence[Tensor]) -> list[Tensor]:
        """Standardised rows, filled up to the length that every block has."""
        missing = self.block_rows - len(features[0])
        return [
            view.encoder.standardize(torch.cat([h, h[:1].expand(missing, -1)]).double())
            for view, h in zip(self.views, features, strict=True)
        ]

    def _prepared(self, features: Sequence[Tensor]) -> list[Tensor]:
        """Voters as the right side of an exact product, (d, v)."""
        columns = [x.to(self.device, torch.float64).T for x in features]
        return [_on_grid(x, _bits(len(x)), dim=0) for x in columns]

    def _votes(self, rows: Sequence[Tensor], voters: Voters) -> Tensor:
        """The share of each cluster among the voters nearest to rows of length one."""
        labels = voters.labels.to(self.device)
        n, k = len(rows[0]), voters.nearest
        shape = (n, len(self.views[0].bias))
        votes = torch.zeros(shape, dtype=torch.float64, device=self.device)
        one = votes.new_ones(()).expand(n, k)
        for h, columns, share in zip(
            rows, self._electorate, voters.shares, strict=True
        ):
            cosines = _on_grid(h, _bits(len(columns)), dim=1) @ columns
            nearest = cosines.topk(k, dim=1).indices
            counts = torch.zeros_like(votes).scatter_add_(1, labels[nearest], one)
            votes += share * (counts / k)
        return votes

    def _representations(self, rows: Sequence[Tensor]) -> list[Tensor]:
        linear = [
            view.linear(h, exact_matmul)
            for view, h in zip(self.views, rows, strict=True)
        ]
        if self.network.has_heads:
            return self._by_heads(linear)
        out = []
        for view, new, z_anchors, keys in zip(
            self.views, linear, self.anchors, self.keys, strict=True
        ):
            z = new.values
            if view.graph == "identity":
                out.append(z + z + view.bias)
                continue
            A = self._with_itself(view, new, keys)
            aggregated = exact_mean(A[:, :-1], z_anchors) + A[:, -1:] * z
            out.append(aggregated + z + view.bias)
        return out

    def _with_itself(self, view: ViewNetwork, new: Linear, keys: Tensor) -> Tensor:
        """A of new samples to the anchors and each to itself, (rows, a + 1)."""
        own = _on_grid(new.keys, _bits(new.keys.shape[1]), dim=1)
        to_itself = self._scores(new, own, own=True)
        scores = torch.cat([self._scores(new, keys), to_itself], dim=1)
        return entmax_rows(scores, view.alpha)

    def _by_heads(self, linear: Sequence[Linear]) -> list[Tensor]:
        """What the heads say, and the clusters of the anchors attended to."""
        values = torch.stack([new.values for new in linear])
        bias = torch.stack([view.bias for view in self.views])[:, None]
        p = list(said(values, bias, self._weights))
        if self.views[0].graph == "identity":
            return p
        A = self.attention(linear)
        weight = self.network.graph_weight.to(self.device, torch.float64)
        votes = weight * self._votes_of(A)
        return [said + votes for said in p]

    def _votes_of(self, A: Tensor) -> Tensor:
        """A times the clusters of the anchors, one-hot: the bits of ``exact_mean``.

        Few anchors have weight, and sums without rounding may be taken in any order.
        """
        votes = A.new_zeros(len(A), len(self.views[0].bias))
        rows, cols = A.nonzero(as_tuple=True)
        weights = _to_half(A[rows, cols])
        return votes.index_put_((rows, self._clusters[cols]), weights, accumulate=True)

    def attention(self, linear: Sequence[Linear]) -> Tensor:
        """A of new samples to the anchors, by all views together, (rows, a).

        Nobody attends to an anchor with which no view is shared.
        """
        together = side_by_side(linear, self._weights)
        scores = self._scores(together, self.keys[0])
        alpha = self.views[0].alpha
        common = shared(present_in([new.keys for new in linear]), self._present)
        if common is None:
            return entmax_of_largest(scores, alpha)
        return projected(scores, common, alpha)

    @property
    def _weights(self) -> Tensor:
        return self.network.view_weights.to(self.device, torch.float64)

    def _scores(self, new: Linear, keys: Tensor, own: bool = False) -> Tensor:
        """Of new samples with keys (a, D), or each with its ``own`` of keys (rows, D).

        Keys are on the grid of an exact product.
        Dense rows of one length, not ``attend``: what it prunes, and so the order of
        its sums, depends on the other rows of a block.
        """
        queries = _on_grid(new.queries, _bits(keys.shape[1]), dim=1)
        if own:
            products = (queries * keys).sum(dim=1, keepdim=True)
        else:
            products = queries @ keys.T
        scores = products / keys.shape[1] ** 0.5
        gated: Tensor = scores if new.gate is None else scores * new.gate[:, None]
        return gated


def exact_matmul(x: Tensor, y: Tensor) -> Tensor:
    """x @ y in float64, the same bits whatever the shapes and the library.

    Entries of a row of x, and of a column of y, are rounded to multiples of a power
    of two small enough for accuracy (about 21 bits of the largest entry when a
    thousand terms are summed) and large enough for every partial sum to be exact.
    """
    bits = _bits(x.shape[1])
    return _on_grid(x, bits, dim=1) @ _on_grid(y, bits, dim=0)


def exact_mean(weights: Tensor, values: Tensor) -> Tensor:
    """weights @ values for rows of weights that sum to at most one.

    No partial sum can exceed the largest value, so both sides keep half the bits
    however many terms there are.
    """
    return _to_half(weights) @ _on_grid(values, _HALF, dim=0)


def _to_half(weights: Tensor) -> Tensor:
    """Weights of at most one with half the bits."""
    unit = 2.0**-_HALF
    return (weights / unit).round() * unit


def _bits(terms: int) -> int:
    return (_MANTISSA - math.ceil(math.log2(max(terms, 2)))) // 2


def _on_grid(x: Tensor, bits: int, dim: int) -> Tensor:
    """Round to multiples of 2^-bits of the largest magnitude along ``dim``."""
    _, exponent = torch.frexp(x.abs().amax(dim=dim, keepdim=True))
    unit = torch.ldexp(torch.ones_like(exponent, dtype=x.dtype), exponent - bits)
    return (x / unit).round() * unit


def _in_float64(view: ViewNetwork) -> ViewNetwork:
    device = _float64_device(view.bias.device)
    return copy.deepcopy(view).to(device, torch.float64).eval()


def _float64_device(device: torch.device) -> torch.device:
    """The device itself, or the CPU where the device has no float64 (MPS)."""
    return torch.device("cpu") if device.type == "mps" else device
