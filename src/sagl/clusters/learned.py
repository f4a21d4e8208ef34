"""What the search of a fit looked at, once more: its samples, clusters and space."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sagl.model import Model
from sagl.pipeline import attention_among, drawn, search_rows
from sagl.prediction import most_likely
from sagl.search.moves import halved
from sagl.search.space import Space
from sagl.settings import Settings
from sagl.training.feed import Feed
from sagl.views import Views

DIVISIBLE = 4  # samples of the search that a cluster must have to be split


class Learned(NamedTuple):
    """The samples of the search, (m,), and what speaks for their clusters."""

    rows: NDArray[np.int64]
    anchors: NDArray[np.int64]  # which of them are anchors, (a,)
    labels: Tensor  # (m,)
    features: list[Tensor]
    space: Space  # on the network's own scale


def check_searched(model: Model, what: str) -> None:
    """Refuse models that have no heads to solve for other clusters."""
    if not model.network.has_heads or model.anchor_labels is None:
        raise ValueError(
            f"{what} needs a model whose clusters a search found: fit with refine=True "
            f"(this one: recipe without a search)"
        )


def is_whole(model: Model) -> bool:
    """Whether the model's anchors are among its training samples."""
    return model.stream is None or model.stream.whole


def check_whole(model: Model, what: str) -> None:
    """Refuse models of which some samples are known by their anchors alone."""
    if not is_whole(model):
        raise ValueError(
            f"{what} needs all samples of the model, and it took in new ones without "
            "the earlier ones: update with them (old=…, --with-old), or fit again"
        )


def anchor_rows(settings: Settings, n_samples: int) -> NDArray[np.int64]:
    """Which of so many samples of a fit with a search are its anchors, (a,)."""
    rows = search_rows(n_samples, settings)
    return rows[drawn(len(rows), settings.n_anchors, settings.seed)]


@torch.no_grad()
def learned(model: Model, views: Views) -> Learned:
    """Of the views that the model was fitted on."""
    check_whole(model, "this")
    if len(model.labels) not in (0, len(views)):  # 0: a fit has not labelled all yet
        raise ValueError(
            f"{len(views):,} samples, but the model was fitted on "
            f"{len(model.labels):,}; give those of the fit, in the same order"
        )
    settings, network = model.settings, model.network
    device = next(network.parameters()).device
    rows = search_rows(len(views), settings)
    anchors = drawn(len(rows), settings.n_anchors, settings.seed)
    assert model.anchor_labels is not None
    labels = torch.empty(len(rows), dtype=torch.int64)
    if len(model.labels) > 0:
        labels = torch.from_numpy(model.labels[rows])
    elif len(anchors) < len(rows):
        labels = torch.from_numpy(most_likely(model.predictor, views[rows])[0])
    labels[anchors] = model.anchor_labels.cpu()  # as found, not as predicted
    features = Feed(views, network, device, resident_bytes=0)(rows)
    near = settings.search.neighbours(len(rows), settings.n_clusters)
    space = Space(features, near, settings.search)
    if model.view_weights is not None:
        space = space.weighted(model.view_weights)
    space = space.attending(attention_among(network, features))
    return Learned(rows, anchors, labels.to(device), features, space)


def second_half(of: Learned, members: Tensor) -> Tensor:
    """Which of these samples are in the second half of their cluster: bool."""
    if len(members) < DIVISIBLE:
        return torch.zeros(len(members), dtype=torch.bool, device=members.device)
    if of.space.present is not None:  # what is missing is told by all others
        return halved(of.space.side_by_side(of.space.views)[members])
    return halved(of.space.side_by_side([x[members] for x in of.space.views]))
