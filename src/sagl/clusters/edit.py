"""Merge clusters, split one: a model of other clusters of the same samples.

What is compared by, z and the attention, stays as it was trained. The heads are solved
anew, in closed form, for the new clusters of the samples of the search; anchors carry
these clusters; the temperature is set to the same mean confidence as before. So the
samples named move, and a few whose cluster was doubtful may move with them. Nothing is
searched: the label-free score is not measured anew and goes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from sagl.clusters.describe import described
from sagl.clusters.learned import (
    DIVISIBLE,
    Learned,
    check_searched,
    check_whole,
    learned,
    second_half,
)
from sagl.clusters.names import unique
from sagl.clusters.table import check_cluster
from sagl.model import Model, build_network
from sagl.nn.inference import Predictor
from sagl.nn.network import Network
from sagl.pipeline import calibrate, set_heads
from sagl.prediction import most_likely
from sagl.settings import Settings
from sagl.views import Views

_OF_CLUSTERS = ("head", "bias")  # parts of a network that are per cluster


def merged(model: Model, views: Views, clusters: Sequence[int]) -> Model:
    """The model with these clusters as one: the first of them, by its name.

    Clusters after a merged one move up, so that numbers have no gaps.
    """
    check_searched(model, "merging clusters")
    check_whole(model, "merging clusters")
    chosen = [check_cluster(model, k) for k in clusters]
    if len(set(chosen)) < 2:
        raise ValueError(f"clusters {list(clusters)}: it takes two to be merged")
    C = model.settings.n_clusters
    if C - len(set(chosen)) + 1 < 2:
        raise ValueError("at least two clusters must remain")
    first, rest = chosen[0], set(chosen) - {chosen[0]}
    kept = [k for k in range(C) if k not in rest]
    new = {k: kept.index(first if k in rest else k) for k in range(C)}
    place = torch.tensor([new[k] for k in range(C)])
    names = {new[k]: name for k, name in model.names.items() if k not in rest}
    where = [(int(k),) for k in place]
    return relabelled(
        model, views, lambda of: place.to(of.labels)[of.labels], names, where
    )


def split(model: Model, views: Views, cluster: int) -> Model:
    """The model with this cluster in two; the second is the last by number.

    By 2-means on all views of its samples, each view with its weight.
    """
    check_searched(model, "splitting a cluster")
    check_whole(model, "splitting a cluster")
    cluster = check_cluster(model, cluster)
    C = model.settings.n_clusters

    def change(of: Learned) -> Tensor:
        labels = of.labels.clone()
        members = torch.nonzero(labels == cluster).flatten()
        half = members[second_half(of, members)]
        if len(half) == 0:
            raise ValueError(
                f"cluster {cluster} cannot be split: its {len(members)} samples are "
                f"fewer than {DIVISIBLE}, or all alike"
            )
        labels[half] = C
        return labels

    names = dict(model.names)
    if cluster in names:
        names[C] = names[cluster]
    where = [(k, C) if k == cluster else (k,) for k in range(C)]
    return relabelled(model, views, change, unique(names), where)


@torch.no_grad()
def relabelled(
    model: Model,
    views: Views,
    change: Callable[[Learned], Tensor],
    names: dict[int, str],
    place: Sequence[tuple[int, ...]] | None = None,
) -> Model:
    """The model of other clusters of the samples that the search looked at.

    ``place`` says what numbers each cluster has then; by default its own.
    """
    of = learned(model, views)
    labels = change(of)
    settings = settings_of(model.settings, int(labels.max()) + 1, len(of.rows))
    network = with_clusters(model.network, settings, model.view_widths)
    sizes = model.cluster_sizes or "balanced"
    p = set_heads(network, of.space, labels, sizes)
    sure = model.confidence[of.rows].mean()
    if model.doubt is not None:
        sure = model.doubt.agreement[0]
    calibrate(network, of.features, labels, p, float(sure))
    anchor_labels = labels[torch.from_numpy(of.anchors).to(labels.device)].cpu()
    predictor = Predictor(network, model.anchors, anchor_labels)
    found, confidence = most_likely(predictor, views)
    corrections = model.corrections
    if corrections is not None:  # these samples stay where people put them
        place = place or [(k,) for k in range(settings.n_clusters)]
        for row in corrections.rows:
            own = place[int(model.labels[row])]
            found[row] = found[row] if found[row] in own else own[0]
        corrections = corrections.renumbered(place, found.tolist())
    changed = replace(
        model,
        settings=settings,
        network=network,
        anchor_labels=anchor_labels,
        labels=found,
        confidence=confidence,
        score=None,
        cluster_count=None,
        names=names,
        corrections=corrections,
    )
    return described(changed, views)


def settings_of(settings: Settings, n_clusters: int, rows: int) -> Settings:
    """For other clusters of the same samples of the search."""
    search = settings.search
    if search.rows_of(n_clusters) != search.rows_of(settings.n_clusters):
        search = replace(search, rows=max(rows, 1), rows_per_cluster=1)
    return replace(settings, n_clusters=n_clusters, search=search)


def with_clusters(
    network: Network, settings: Settings, widths: tuple[int, ...]
) -> Network:
    """The network with all that does not depend on clusters as it was."""
    changed = build_network(settings, widths, torch.Generator())
    kept = {
        name: value
        for name, value in network.state_dict().items()
        if name.rpartition(".")[2] not in _OF_CLUSTERS
    }
    changed.load_state_dict(kept, strict=False)
    return changed.to(next(network.parameters()).device).eval()
