"""Which of several trained networks: without labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from sagl.nn.inference import Predictor
from sagl.nn.network import Network
from sagl.pipeline import search_rows
from sagl.prediction import anchors_from, most_likely
from sagl.search.score import Score, best_of
from sagl.search.space import Space
from sagl.search.stability import stability
from sagl.settings import Settings
from sagl.training.feed import Feed
from sagl.views import Views


class Choice(NamedTuple):
    """Which network and its score, and what was learned about samples."""

    best: int
    score: Score
    rows: NDArray[np.int64]
    stability: NDArray[np.float64]  # of the clusters of these rows


@torch.no_grad()
def choose(
    networks: Sequence[Network], settings: Settings, views: Views, device: torch.device
) -> Choice:
    """The best network by a score that needs no labels."""
    C = settings.n_clusters
    rows = search_rows(len(views), settings)
    features = Feed(views, networks[0], device, resident_bytes=0)(rows)
    space = Space(features, settings.search.neighbours(len(rows), C), settings.search)
    sample = views[rows]
    partitions = []
    for network in networks:
        anchors = anchors_from(views, network, settings.n_anchors, settings.seed)
        partitions.append(most_likely(Predictor(network, anchors), sample)[0])
    tensors = [torch.from_numpy(labels).to(device) for labels in partitions]
    best, scores = best_of(space, tensors, C)
    others = partitions[:best] + partitions[best + 1 :]
    return Choice(best, scores[best], rows, stability(partitions[best], others, C))
