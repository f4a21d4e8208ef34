"""Layers: partitions of the same samples from coarse to fine, each inside the next.

From the clusters that were asked for upwards they are merged (``merging``); one layer
below, each cluster that can be is cut in two by 2-means. Among numbers of clusters near
half of the next finer layer's the most stable one is a layer, and so are numbers that
an estimate of the number held for nearly as good. A layer is stable if another search
would have found it: a few partitions are annealed from other starts, and merged and cut
by the same rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sagl.clusters.learned import Learned, is_whole, learned, second_half
from sagl.clusters.merging import cuts, information, tables_of, with_nearness
from sagl.clusters.outliers import filled
from sagl.model import Layer, Model
from sagl.search.anneal import anneal, smoothed
from sagl.search.proposals import centre_labels
from sagl.search.space import Space, one_hot
from sagl.search.stability import stability
from sagl.views import Views

_STARTS = 3  # other partitions, by which stability is measured
_STEPS = 40  # of annealing them
_FEWEST, _MOST = 0.35, 0.65  # of the clusters of a layer, that the next coarser one has
_TRIED = 12  # numbers of clusters between these, at most
_NEAREST = 5  # anchors of its cluster that say in which half a sample is


class Tree(NamedTuple):
    """A partition of some samples with all that are coarser, and its halves."""

    labels: NDArray[np.int64]  # (m,)
    second: NDArray[np.bool_]  # (m,) whether in the second half of its cluster
    places: dict[int, NDArray[np.int64]]  # by number of clusters: where each goes, (C,)
    told: dict[int, float]  # nats, relative to those of the partition

    def at(self, n_clusters: int) -> NDArray[np.int64]:
        """Its samples in so many clusters."""
        return self.places[n_clusters][self.labels]

    def halves(self, n_clusters: int) -> NDArray[np.int64]:
        """Its samples in halves: the second one of cluster k is C + k."""
        return self.labels + n_clusters * self.second


@torch.no_grad()
def with_layers(model: Model, views: Views) -> tuple[Model, Tensor | None]:
    """The model, fitted on these views by a search, with layers; else as it is.

    Beside it the clusters of anchors in the finest of them, (a,), which decide those of
    all samples (``Halves``).
    """
    searched = model.network.has_heads and model.anchor_labels is not None
    if not searched or not is_whole(model):
        return model, None
    of = learned(model, views)
    C = model.settings.n_clusters
    tree = _tree(of, of.labels, C)
    others = [_tree(of, labels, C) for labels in _other_partitions(of.space, model)]

    def stable(k: int) -> float:
        again = [other.at(k) for other in others]
        return float(stability(tree.at(k), again, k).mean())

    chosen = _chosen(C, stable)
    if model.cluster_count is not None:
        nearly = [k for k in model.cluster_count.runners_up if k < C]
        chosen = sorted({*chosen, *nearly})
    layers = []
    for coarser, k in zip([None, *chosen], chosen, strict=False):
        parents = () if coarser is None else _parents(tree.places, coarser, k)
        layers.append(Layer(k, parents, stable(k), tree.told[k]))
    halved = np.unique(tree.labels[tree.second])  # clusters that could be cut in two
    leaf = tree.labels.copy()
    if len(halved) > 0:
        leaf[tree.second] = C + np.searchsorted(halved, tree.labels[tree.second])
        F = C + len(halved)
        again = [other.halves(C) for other in others]
        kept = _told(of.space, leaf, F) / _told(of.space, tree.labels, C)
        share = float(stability(tree.halves(C), again, 2 * C).mean())
        layers.append(Layer(F, (*range(C), *halved.tolist()), share, kept))
    anchors = torch.from_numpy(leaf[of.anchors])
    return replace(model, layers=tuple(layers)), anchors


def labels_at(
    model: Model, n_clusters: int, views: Views | None, labels: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Samples of these clusters in a layer of so many clusters.

    Without views they are the training samples.
    """
    layers = model.layers or ()
    sizes = [layer.n_clusters for layer in layers]
    if model.leaves is None or n_clusters not in sizes:
        known = ", ".join(map(str, sizes)) if sizes else "none: fit with refine=True"
        raise ValueError(f"no layer has {n_clusters} clusters; layers have {known}")
    if n_clusters > model.settings.n_clusters:
        if views is None:
            return model.leaves.labels
        return leaves_of(model, model.leaves.anchors, views, labels)
    last = sizes.index(model.settings.n_clusters)
    for layer in reversed(layers[sizes.index(n_clusters) + 1 : last + 1]):
        labels = np.array(layer.parents)[labels]
    return labels


@torch.no_grad()
def leaves_of(
    model: Model, anchors: Tensor, views: Views, labels: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The half of its cluster that each sample is in, whatever the company.

    That of most of the anchors of its cluster that are nearest to it.
    """
    predictor, halves = model.predictor, Halves(model, anchors)
    leaves = labels.copy()
    start = 0
    for block in views.blocks(predictor.block_rows):
        rows = slice(start, start + len(block[0]))
        start = rows.stop
        near = predictor.nearness(filled(predictor, block))[: len(block[0])]
        leaves[rows] = halves.of(labels[rows], near)
    return leaves


class Halves:
    """What says in which half of its cluster a sample is: anchors near it, (a,)."""

    def __init__(self, model: Model, anchors: Tensor) -> None:
        assert model.anchor_labels is not None
        device = model.predictor.device
        self._second_of = _second_halves(model)
        self._owners = model.anchor_labels.to(device)
        self._second = (anchors >= model.settings.n_clusters).to(device)

    def of(self, labels: NDArray[np.int64], near: Tensor) -> NDArray[np.int64]:
        """Leaves of samples of these clusters, (n,), by nearness to anchors, (n, a)."""
        own = torch.from_numpy(labels).to(near.device)
        near = near.masked_fill(self._owners != own[:, None], -torch.inf)
        nearest = near.topk(min(_NEAREST, near.shape[1]), dim=1)
        there = nearest.values.isfinite()
        votes = (self._second[nearest.indices] & there).sum(dim=1)
        moves = (2 * votes > there.sum(dim=1)).cpu().numpy()
        return np.where(moves, self._second_of[labels], labels)


def _second_halves(model: Model) -> NDArray[np.int64]:
    """The leaf that is the second half of each cluster, or the cluster itself, (C,)."""
    assert model.layers is not None
    C, finest = model.settings.n_clusters, model.layers[-1]
    place = np.arange(C)
    for leaf in range(C, finest.n_clusters):
        place[finest.parents[leaf]] = leaf
    return place


def _tree(of: Learned, labels: Tensor, n_clusters: int) -> Tree:
    second = torch.zeros_like(labels, dtype=torch.bool)
    for k in range(n_clusters):
        members = torch.nonzero(labels == k).flatten()
        second[members] = second_half(of, members)
    tables = tables_of(of.space, labels, n_clusters)
    Y = one_hot(labels, n_clusters)
    sizes = Y.sum(dim=0)
    x = of.space.side_by_side(of.space.views)
    means = Y.T @ x / sizes.clamp_min(1)[:, None]
    guide = with_nearness(tables, means, sizes.double().cpu())
    places, told = cuts(tables, guide)
    return Tree(
        labels.cpu().numpy(),
        second.cpu().numpy(),
        {k: place.numpy() for k, place in places.items()},
        {k: nats / max(information(tables), 1e-12) for k, nats in told.items()},
    )


def _told(space: Space, labels: NDArray[np.int64], n_clusters: int) -> float:
    on_device = torch.from_numpy(labels).to(space.views[0].device)
    return max(information(tables_of(space, on_device, n_clusters)), 1e-12)


def _other_partitions(space: Space, model: Model) -> list[Tensor]:
    """Partitions into as many clusters, annealed from starts of their own."""
    C, seed = model.settings.n_clusters, model.settings.seed
    sizes = model.cluster_sizes or "balanced"
    starts = [
        centre_labels(space, C, (seed + 7919 * start) % 2**32)
        for start in range(1, _STARTS + 1)
    ]
    return [
        anneal(space, smoothed(space, labels, C), steps=_STEPS, sizes=sizes)
        for labels in starts
    ]


def _chosen(n_clusters: int, stable: Callable[[int], float]) -> list[int]:
    """Numbers of clusters of the layers, from coarse to those asked for."""
    chosen = [n_clusters]
    while chosen[0] > 3:
        low = max(2, round(_FEWEST * chosen[0]))
        high = max(low, round(_MOST * chosen[0]))
        tried = np.unique(np.linspace(low, high, _TRIED).round().astype(int)).tolist()
        chosen.insert(0, max(tried, key=stable))
    return chosen


def _parents(
    places: dict[int, NDArray[np.int64]], coarser: int, finer: int
) -> tuple[int, ...]:
    first = [int(np.argmax(places[finer] == k)) for k in range(finer)]
    return tuple(places[coarser][first].tolist())
