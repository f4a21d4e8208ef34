"""A model that keeps to what people said of samples and clusters.

The partition that a search found is where it starts: merged, split and corrected as was
said, warmed up and annealed once more under the constraints (``search.constraints``),
which regressions and the graph carry to all other samples. Then heads are solved for
these clusters, anchors carry them, and confidence is set to what it was. What samples
are compared by stays: a graph that learns the corrected clusters alone is a worse one
than that of the fit, which has learned from many candidates. Labels given so are used;
``evaluate`` leaves those samples out of its scores.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sagl.clusters.corrections import Plan, corrected, is_empty, plan_of
from sagl.clusters.describe import described
from sagl.clusters.edit import settings_of, with_clusters
from sagl.clusters.learned import anchor_rows, check_searched, check_whole
from sagl.model import Model
from sagl.nn.inference import Predictor, anchor_features
from sagl.nn.network import Network
from sagl.pipeline import (
    calibrate,
    search_rows,
    set_heads,
    space_of,
)
from sagl.prediction import answers, most_likely
from sagl.search.anneal import Sizes, reanneal
from sagl.search.constraints import Constraints, by_sizes, constraints
from sagl.search.moves import halved
from sagl.search.space import Space
from sagl.training.feed import Feed
from sagl.views import Views

_DIGITS = 16  # of a digest


class UnmetWarning(UserWarning):
    """Some corrections could not be kept."""


class Looked(NamedTuple):
    """The samples that annealing looks at, (m,), and which of them are anchors."""

    rows: NDArray[np.int64]
    anchors: NDArray[np.int64]  # positions among rows
    features: list[Tensor]
    space: Space


def refitted(model: Model, views: Views, corrections: Mapping[str, Any]) -> Model:
    """The model, fitted on these views, with corrections; as it is without any."""
    check_searched(model, "a refit")
    check_whole(model, "a refit")
    if len(views) != len(model.labels):
        raise ValueError(
            f"{len(views):,} samples, but the model was fitted on "
            f"{len(model.labels):,}; give those of the fit, in the same order"
        )
    plan = plan_of(model, corrections)
    if is_empty(plan):
        return replace(model, names=plan.names)
    searched = len(search_rows(len(views), model.settings))
    settings = settings_of(model.settings, plan.n_clusters, searched)
    network = with_clusters(model.network, settings, model.view_widths)
    looked = looked_at(replace(model, settings=settings), network, views, plan.rows)
    start = start_of(model, looked)
    start = _merged_and_split(plan, start, looked)
    labels = _corrected(plan, start, looked, model.cluster_sizes or "balanced")
    changed = of_clusters(
        replace(model, settings=settings, names=plan.names),
        network,
        views,
        looked,
        labels,
    )
    where = np.searchsorted(looked.rows, plan.rows)
    decided = labels.cpu().numpy()[where]
    return described(with_corrections(changed, views, plan, decided, model), views)


def looked_at(
    model: Model, network: Network, views: Views, more: Sequence[int] = ()
) -> Looked:
    """The samples of the search and those that something is said of."""
    settings = model.settings
    device = next(network.parameters()).device
    anchors = anchor_rows(settings, len(views))
    searched = search_rows(len(views), settings)
    rows = np.union1d(searched, np.array(more, dtype=np.int64))
    features = Feed(views, network, device, resident_bytes=0)(rows)
    space = space_of(views, rows, features, settings, device)
    if model.view_weights is not None:
        scales = len(space.views) // len(model.view_weights)
        space = space.weighted(list(model.view_weights) * scales)
    return Looked(rows, np.searchsorted(rows, anchors), features, space)


def start_of(model: Model, looked: Looked) -> Tensor:
    """Clusters of these samples so far: as found, where they are anchors."""
    assert model.anchor_labels is not None
    labels = torch.from_numpy(model.labels[looked.rows])
    labels[looked.anchors] = model.anchor_labels.cpu()
    return labels.to(looked.features[0].device)


def constraints_of(plan: Plan, rows: NDArray[np.int64], start: Tensor) -> Constraints:
    """The plan's constraints on these samples; ``start`` are their clusters."""
    n, C = len(rows), plan.n_clusters
    place = {int(row): i for i, row in enumerate(rows)}
    sizes = torch.bincount(start, minlength=C).double()
    new = slice(C - plan.n_new, C)  # their samples are not known yet
    sizes[new] = torch.maximum(sizes[new], sizes.mean())
    told = [clusters[0] for clusters in plan.labels.values() if len(clusters) == 1]
    count = torch.bincount(torch.tensor(told, dtype=torch.int64), minlength=C)
    # Between one sample each and, together, as much as the whole cluster: a label says
    # more than a guess, but few must not rule over what many features say.
    factor = (sizes / count.clamp_min(1)).clamp_min(1).sqrt().tolist()
    emphasis = {
        place[row]: factor[clusters[0]]
        for row, clusters in plan.labels.items()
        if len(clusters) == 1
    }
    shares = sizes.clamp_min(1).float()
    return constraints(
        n,
        C,
        allowed={place[row]: some for row, some in plan.allowed().items()},
        linked=[[place[row] for row in group] for group in plan.linked],
        apart=[(place[one], place[other]) for one, other in plan.apart],
        emphasis=emphasis,
        shares=shares / shares.sum(),
    ).to(start.device)


def of_clusters(
    model: Model, network: Network, views: Views, looked: Looked, labels: Tensor
) -> Model:
    """The model of these clusters of the samples looked at."""
    device, sizes = labels.device, model.cluster_sizes or "balanced"
    p = set_heads(network, looked.space.on_first_scale(), labels, sizes)
    calibrate(network, looked.features, labels, p, mean_confidence(model))
    raw = [torch.from_numpy(h) for h in views.take(looked.rows[looked.anchors])]
    anchors = anchor_features(network, raw)
    of_anchors = labels[torch.from_numpy(looked.anchors).to(device)].cpu()
    found, confidence = most_likely(Predictor(network, anchors, of_anchors), views)
    return replace(
        model,
        network=network,
        anchors=anchors,
        anchor_labels=of_anchors,
        labels=found,
        confidence=confidence,
        score=None,  # it would no longer be free of labels
        cluster_count=None,
    )


def with_corrections(
    model: Model,
    views: Views,
    plan: Plan,
    decided: NDArray[np.int64],
    before: Model,
) -> Model:
    """The model with corrected samples where they belong, whatever it says itself.

    ``decided`` are the clusters of the plan's rows. The confidence of such a sample is
    what the model gives to the cluster that it was put into.
    """
    rows = np.array(plan.rows, dtype=np.int64)
    labels, confidence = model.labels.copy(), model.confidence.copy()
    overruled = int((labels[rows] != decided).sum())
    labels[rows] = decided
    if len(rows):
        q = [a.q.cpu().numpy() for a in answers(model.predictor, views[rows])]
        confidence[rows] = np.concatenate(q)[np.arange(len(rows)), decided]
    stayed = np.zeros(len(labels), dtype=bool)
    for k, numbers in enumerate(plan.place):
        stayed |= (before.labels == k) & np.isin(labels, numbers)
    kept = corrected(
        plan,
        before.corrections,
        labels,
        overruled=overruled,
        moved=int((~stayed).sum()),
        digests=digests(views[rows]) if len(rows) else (),
    )
    if kept.unmet:
        text = (
            f"{kept.unmet:,} of {len(plan.apart):,} pairs that are to be apart share a "
            "cluster: too many are to be apart from each other"
        )
        warnings.warn(text, UnmetWarning, stacklevel=4)
    return replace(model, labels=labels, confidence=confidence, corrections=kept)


def mean_confidence(model: Model) -> float:
    """What the confidence of a fit was set to."""
    if model.doubt is not None:
        return model.doubt.agreement[0]
    return float(model.confidence.mean())


def digests(views: Views) -> Iterator[str]:
    """Of the features of each sample, the same wherever it stands."""
    for block in views.blocks(1024):
        for row in range(len(block[0])):
            digest = hashlib.sha256()
            for h in block:
                digest.update(h[row].tobytes())
            yield digest.hexdigest()[:_DIGITS]


def _merged_and_split(plan: Plan, start: Tensor, looked: Looked) -> Tensor:
    """The clusters so far, those merged and split that are to be."""
    first = torch.tensor([numbers[0] for numbers in plan.place], device=start.device)
    labels = first[start]
    x = looked.space.side_by_side(looked.space.views)
    for k, numbers in enumerate(plan.place):
        if len(numbers) == 2:
            members = torch.nonzero(start == k).flatten()
            half = members[halved(x[members])] if len(members) > 1 else members[:0]
            if len(half) == 0:
                raise ValueError(
                    f"cluster {k} cannot be split: its {len(members)} samples are all "
                    "alike"
                )
            labels[half] = numbers[1]
    return labels


def _corrected(plan: Plan, start: Tensor, looked: Looked, sizes: Sizes) -> Tensor:
    """The start with what the constraints change.

    That is, where annealing from it with them ends elsewhere than without: what
    annealing changes anyhow, a search that looked further has decided better.
    """
    space, n = looked.space, plan.n_clusters - plan.n_new
    free = reanneal(space, start, n, sizes=sizes, held=by_sizes(start, n))
    told = start.clone()
    for row, clusters in plan.labels.items():
        told[int(np.searchsorted(looked.rows, row))] = clusters[0]
    held = constraints_of(plan, looked.rows, told)
    kept = reanneal(space, told, plan.n_clusters, sizes=sizes, held=held)
    labels = torch.where(kept == free, start, kept)
    labels[held.rows] = kept[held.rows]
    return labels
