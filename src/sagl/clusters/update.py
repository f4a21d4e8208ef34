"""A model that takes in new samples: old clusters keep their numbers and names.

Earlier samples are given once more, or they are what a model keeps of them: z and the
clusters of its anchors. In the second case all samples, the new ones too, are seen by
what z tells of their features, W⁺ z, so that nothing but time tells them apart; what
samples are compared by stays as it was trained, and only heads and anchors are made
anew. In both, the clusters so far and those predicted for new samples are where it
starts, and earlier samples stay or go to a new cluster (``novel``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sagl.clusters.corrections import plan_of
from sagl.clusters.describe import described
from sagl.clusters.drift import cluster_drift, view_drift
from sagl.clusters.edit import with_clusters
from sagl.clusters.learned import anchor_rows, check_searched, check_whole
from sagl.clusters.novel import Hold, grown, told_of
from sagl.clusters.refit import (
    Looked,
    looked_at,
    mean_confidence,
    of_clusters,
    with_corrections,
)
from sagl.clusters.table import called, typical_rows
from sagl.later import NewCluster, Stream, Update
from sagl.model import Model
from sagl.nn.inference import Predictor, anchor_features
from sagl.nn.network import Network
from sagl.pipeline import calibrate, set_heads
from sagl.prediction import most_likely
from sagl.search.anneal import Sizes
from sagl.search.constraints import Constraints, by_sizes
from sagl.search.space import Space, one_hot
from sagl.settings import Settings
from sagl.views import Views


class _Found(NamedTuple):
    """Clusters of the samples looked at, and what is to be told of them."""

    labels: Tensor
    n_clusters: int
    told: Update


def updated(
    model: Model,
    views: Views,
    old: Views | None = None,
    ids: Sequence[str] | None = None,
) -> Model:
    """The model with new samples ``views``, in its ``update`` what they changed.

    With ``old``, the views that it was fitted on, samples of both are its training
    samples, the new ones last; without, the new ones are. ``ids`` are theirs.
    """
    check_searched(model, "an update")
    n = len(views) + (0 if old is None else len(old))
    if ids is not None and len(ids) != n:
        raise ValueError(f"{len(ids):,} ids for {n:,} samples; give one per sample")
    if len(views) < 2:
        raise ValueError("an update needs at least two new samples")
    if old is None:
        return with_typical(replace(_from_anchors(model, views), ids=ids))
    check_whole(model, "an update with the earlier samples")
    if len(old) != len(model.labels):
        raise ValueError(
            f"the earlier samples are {len(old):,}, but the model was fitted on "
            f"{len(model.labels):,}; give those of the fit, in the same order"
        )
    return with_typical(replace(_from_all(model, old, views), ids=ids))


def _from_all(model: Model, old: Views, new: Views) -> Model:
    """With the features of all samples: as a fit would learn it."""
    n_old = len(old)
    views = joined(old, new)
    predicted, sure = most_likely(model.predictor, new)
    known = replace(
        model,
        settings=_grown_settings(model.settings, n_old, len(views)),
        labels=np.concatenate([model.labels, predicted]),
        confidence=np.concatenate([model.confidence, sure]),
    )
    plan = plan_of(model, {})
    network = model.network
    looked = looked_at(known, network, views, plan.rows)
    assert model.anchor_labels is not None
    as_found = known.labels.copy()
    as_found[anchor_rows(model.settings, n_old)] = model.anchor_labels.cpu().numpy()
    start = torch.from_numpy(as_found[looked.rows]).to(looked.features[0].device)
    is_new = torch.from_numpy(looked.rows >= n_old).to(start.device)
    stay = _places(looked, plan.rows)
    found = _found(known, looked.space, looked.features, start, is_new, stay)
    settings = replace(known.settings, n_clusters=found.n_clusters)
    changed = of_clusters(
        replace(known, settings=settings),
        with_clusters(network, settings, model.view_widths),
        views,
        looked,
        found.labels,
    )
    if plan.rows:
        plan = plan._replace(n_clusters=found.n_clusters)
        decided = found.labels.cpu().numpy()[stay]
        changed = with_corrections(changed, views, plan, decided, known)
        assert changed.corrections is not None
        assert model.corrections is not None
        changed.corrections = changed.corrections._replace(
            moved=model.corrections.moved
        )
    moved = float((changed.labels[:n_old] != model.labels).mean())
    told = found.told._replace(moved=moved)
    stream = _stream(model, len(new), whole=True)
    changed = described(replace(changed, stream=stream, ids=None), views)
    return replace(changed, update=told)


def _from_anchors(model: Model, new: Views) -> Model:
    """With what the model keeps: z and clusters of anchors."""
    settings, network = model.settings, model.network
    assert model.anchor_labels is not None
    seen = len(model.labels) if model.stream is None else model.stream.seen
    rows, kept = _room(settings, len(model.anchors[0]), seen, len(new))
    raw = [torch.from_numpy(h) for h in new.take(rows)]
    z_new = anchor_features(network, raw)
    anchors = [z[torch.from_numpy(kept)] for z in model.anchors]
    both = [torch.cat([a.cpu(), b.cpu()]) for a, b in zip(anchors, z_new, strict=True)]
    device = next(network.parameters()).device
    features = _seen_by(network, [z.to(device) for z in both])
    near = settings.search.neighbours(len(both[0]), settings.n_clusters)
    space = Space(features, near, settings.search)
    if model.view_weights is not None:
        space = space.weighted(model.view_weights)
    predicted, _ = most_likely(model.predictor, new)
    start = torch.cat(
        [
            model.anchor_labels[torch.from_numpy(kept)].cpu(),
            torch.from_numpy(predicted[rows]),
        ]
    ).to(device)
    is_new = torch.arange(len(start), device=device) >= len(kept)
    found = _found(model, space, [z.to(device) for z in both], start, is_new)
    settings = replace(settings, n_clusters=found.n_clusters, n_anchors=len(start))
    changed_network = with_clusters(network, settings, model.view_widths)
    sizes = model.cluster_sizes or "balanced"
    p = set_heads(changed_network, space, found.labels, sizes)
    calibrate(changed_network, features, found.labels, p, mean_confidence(model))
    labels = found.labels.cpu()
    predictor = Predictor(changed_network, both, labels)
    of_new, confidence = most_likely(predictor, new)
    before = model.corrections
    changed = replace(
        model,
        settings=settings,
        network=changed_network,
        anchors=both,
        anchor_labels=labels,
        labels=of_new,
        confidence=confidence,
        score=None,
        cluster_count=None,
        layers=None,
        leaves=None,
        ids=None,
        # Its samples are gone; scores leave them out all the same.
        corrections=None
        if before is None
        else before._replace(labels=(), wrong=(), must_link=(), cannot_link=()),
        stream=_stream(model, len(new), whole=False),
    )
    return replace(described(changed, new), update=found.told)


def _found(
    model: Model,
    space: Space,
    seen: list[Tensor],
    start: Tensor,
    is_new: Tensor,
    stay: NDArray[np.int64] | None = None,
) -> _Found:
    """Old and new clusters of samples, and what has changed.

    ``seen`` is what of each view tells how far new samples are from earlier ones. An
    earlier sample stays in its cluster or goes to a new one; ``stay`` are positions of
    those that do not go, either.
    """
    C, seed = model.settings.n_clusters, model.settings.seed
    sizes: Sizes = model.cluster_sizes or "balanced"
    found = grown(space, start, C, is_new, sizes, _hold(start, C, is_new, stay))
    labels = found.labels
    x = space.side_by_side(space.views)
    new = range(C, found.n_clusters)
    evidence = told_of(space, found, new, sizes)
    clusters = []
    for k, (recall, gain) in zip(new, evidence, strict=True):
        inside = labels == k
        clusters.append(
            NewCluster(
                k,
                int(inside.sum()),
                int((inside & ~is_new).sum()),
                recall,
                gain,
                [],
            )
        )
    moved = float((labels != start)[~is_new].float().mean())
    old_rows, new_rows = ([part[at] for part in seen] for at in (~is_new, is_new))
    told = Update(
        int(is_new.sum()),
        int((~is_new).sum()),
        moved,
        tuple(clusters),
        view_drift(model.view_names, old_rows, new_rows, seed),
        cluster_drift(model, x, start, labels, is_new),
    )
    return _Found(labels, found.n_clusters, told)


def with_typical(model: Model, n: int = 3) -> Model:
    """The model, its update telling typical samples of each new cluster."""
    assert model.update is not None
    clusters = tuple(
        new._replace(typical=called(model, typical_rows(model, new.number, n)))
        for new in model.update.new_clusters
    )
    return replace(model, update=model.update._replace(new_clusters=clusters))


def joined(first: Views, second: Views) -> Views:
    """The samples of both, one after the other."""
    both = {
        name: np.concatenate([np.asarray(first[name][:]), np.asarray(second[name][:])])
        for name in first.names
    }
    views = Views(both)
    if first.values_checked and second.values_checked:
        views.mark_checked(complete=first.present is None and second.present is None)
    return views


def _hold(
    start: Tensor, n_before: int, is_new: Tensor, stay: NDArray[np.int64] | None
) -> Hold:
    """Keeps earlier samples to their clusters and the new ones."""
    rows = torch.nonzero(~is_new).flatten()
    go = torch.ones(len(start), dtype=torch.bool)
    if stay is not None:
        go[torch.from_numpy(stay)] = False

    def hold(labels: Tensor, n_clusters: int) -> Constraints:
        allowed = one_hot(start[rows], n_clusters).bool()
        allowed[:, n_before:] = go.to(rows.device)[rows, None]
        group = torch.arange(len(rows), device=rows.device)
        free = by_sizes(labels, n_clusters)
        apart: list[tuple[int, ...]] = [()] * len(rows)
        return replace(free, rows=rows, group=group, allowed=allowed, apart=apart)

    return hold


def _places(looked: Looked, rows: list[int]) -> NDArray[np.int64]:
    return np.searchsorted(looked.rows, np.array(rows, dtype=np.int64))


def _seen_by(network: Network, z: list[Tensor]) -> list[Tensor]:
    """Standardised features as far as z tells them: W⁺ (z − b), (n, d) per view."""
    features = []
    for view, rows in zip(network.view_networks, z, strict=True):
        W, b = view.encoder.weight().detach(), view.encoder.b.detach()
        features.append((rows.to(W) - b) @ torch.linalg.pinv(W).T)
    return features


def _room(
    settings: Settings, anchors: int, seen: int, n_new: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which new samples and which anchors are kept where there is no room for all.

    Anchors stand for all samples seen so far, and give way to new ones accordingly.
    """
    room = max(settings.search.rows_of(settings.n_clusters), anchors)
    rng = np.random.default_rng(settings.seed)
    few = min(anchors, max(room - n_new, round(room * seen / (seen + n_new))))
    kept = np.sort(rng.permutation(anchors)[:few])
    rows = np.sort(rng.permutation(n_new)[: room - len(kept)])
    return rows, kept


def _grown_settings(settings: Settings, before: int, after: int) -> Settings:
    """For more samples: as many anchors as a fit to all of them would have."""
    most = settings.search.rows_of(settings.n_clusters)
    if settings.n_anchors < min(most, before):
        return settings  # so it was asked for
    return replace(settings, n_anchors=min(most, after))


def _stream(model: Model, n_new: int, *, whole: bool) -> Stream:
    before = model.stream or Stream(len(model.labels), 0, True)
    return Stream(before.seen + n_new, before.updates + 1, before.whole and whole)
