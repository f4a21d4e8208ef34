"""Which of several trained networks, and what a search makes of it: without labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from sagl.nn.inference import Predictor
from sagl.nn.network import Network
from sagl.nn.voters import Voters
from sagl.partition.anneal import Sizes
from sagl.partition.doubt import stability
from sagl.partition.readout import predict_labels, sharpen, sharpening
from sagl.partition.score import Score, best_of
from sagl.partition.search import candidates_of, reproduced, search
from sagl.partition.space import Space, neighbours_among
from sagl.partition.unequal import steps_of, unequal
from sagl.partition.vote import elect
from sagl.partition.weights import weigh
from sagl.prediction import anchors_from, answers, most_likely
from sagl.progress import progress as show_progress
from sagl.settings import Settings
from sagl.training.feed import Feed
from sagl.views import Views

# A search looks at so many samples, drawn at random, or so many per cluster.
_SEARCH_ROWS = 5_000
_SEARCH_PER_CLUSTER = 20


class Refined(NamedTuple):
    """What a search learned about views and clusters, and who votes on new samples."""

    view_weights: list[float]
    cluster_sizes: Sizes
    voters: Voters | None


class Choice(NamedTuple):
    """Which network and its score, and what was learned about samples."""

    best: int
    score: Score
    refined: Refined | None
    rows: NDArray[np.int64]
    stability: NDArray[np.float64]  # of the clusters of these rows


@torch.no_grad()
def choose(
    networks: Sequence[Network],
    settings: Settings,
    views: Views,
    device: torch.device,
    *,
    progress: bool,
) -> Choice:
    """The best network by a score that needs no labels.

    If ``settings.refine``, a search goes on from the clusters of all of them, and the
    weights of the chosen one are set to predict what it finds.
    """
    C = settings.n_clusters
    order = np.random.default_rng(settings.seed).permutation(len(views))
    rows = np.sort(order[: max(_SEARCH_ROWS, _SEARCH_PER_CLUSTER * C)])
    sample = views[rows]
    features = Feed(views, networks[0], device, resident_bytes=0)(rows)
    space = Space(features, neighbours_among(len(rows), C))
    known = [most_likely(_predictor(n, settings, views), sample)[0] for n in networks]
    tensors = [torch.from_numpy(labels).to(device) for labels in known]
    best, scores = best_of(space, tensors, C)
    if not settings.refine:
        others = known[:best] + known[best + 1 :]
        stable = stability(known[best], others, C)
        return Choice(best, scores[best], None, rows, stable)
    sizes: Sizes = "even"
    total = candidates_of(len(known))
    if settings.cluster_sizes != "even":
        total += steps_of()
    with show_progress(total, "refine", show=progress) as bar:
        space = weigh(space, C, settings.seed)
        found = search(
            space, C, settings.seed, tensors, on_candidate=lambda _: bar.update()
        )
        if settings.cluster_sizes != "even":
            doubted = settings.cluster_sizes == "auto"
            other = unequal(
                space, C, settings.seed, found, doubted=doubted, on_step=bar.update
            )
            if other is not None:
                found, sizes = other, "free"
    stable = reproduced(found, C)
    network = networks[best]
    length = float(torch.cat([h.norm(dim=1) for h in features]).mean())
    predict_labels(network, space, found[0].labels, length, sizes)
    told = answers(_predictor(network, settings, views), sample)
    p = torch.cat([torch.stack(answer.p).mean(dim=0) for answer in told])
    election = elect(space, found[0].labels, C, sizes)
    voters = None
    if election is not None:
        voters = election.voters.louder(float(p.std()))
        p = p + voters.weight * election.votes.to(p)
    factor = sharpening(p, float(stable.mean()))
    sharpen(network, factor)
    voters = None if voters is None else voters.louder(factor)
    refined = Refined(space.weights, sizes, voters)
    return Choice(best, found[0].score, refined, rows, stable)


def _predictor(network: Network, settings: Settings, views: Views) -> Predictor:
    anchors = anchors_from(views, network, settings.n_anchors, settings.seed)
    return Predictor(network, anchors)
