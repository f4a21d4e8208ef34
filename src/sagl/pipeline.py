"""The default as one function: search, learn the graph, search on, learn, calibrate.

1. Partitions are searched for that linear maps of every view and the neighbours in the
   network's sparse attention graph predict (``sagl.search``).
2. The network's graph is trained to join samples of one cluster. It is cross-fitted: a
   sample attends by weights that were trained on the other half, so that the graph
   cannot confirm what it has learned by heart. The search goes on with that graph.
3. Where there are many more samples than the search looked at, what it found is
   annealed once more among many of them: few samples per cluster find clusters, and
   more tell better where each ends.
4. The network is trained on all samples of the search, its heads are ridge regressions
   to those clusters; its confidence is how often samples keep theirs by other starts.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sagl.nn.missing import present_in, sharing_only
from sagl.nn.network import Network
from sagl.nn.ranks import ALONE, Ranks
from sagl.nn.sparse import CSR, multiply
from sagl.progress import Bar, progress
from sagl.search.anneal import Sizes
from sagl.search.candidates import Candidate, candidates_of, reproduced, search
from sagl.search.evidence import left_out
from sagl.search.fill import check_enough
from sagl.search.journal import Journal
from sagl.search.score import Score, score
from sagl.search.space import Space, from_edges, one_hot
from sagl.search.stability import inverse_temperature
from sagl.search.unequal import STEPS, unequal
from sagl.search.weights import weigh
from sagl.search.wide import head_line, widened
from sagl.settings import Settings
from sagl.training.callbacks import Callback
from sagl.training.distributed import ranks, spread
from sagl.training.feed import MEAN_NORM, Feed, Rows, scales_of, standardized
from sagl.training.sampler import step_seed
from sagl.training.trainer import Plan, Record, Trainer
from sagl.views import Views

_FOLDS = 2  # that the graph is cross-fitted in
_NOISE = 0.002  # on U and V, relative to their diagonal: they start apart
_NEVER = -10.0  # what heads say of a cluster that nobody is to be put into


class Fitted(NamedTuple):
    """Clusters and measures of a fit; the network it was given is the model."""

    rows: NDArray[np.int64]  # of the samples that the search looked at
    labels: Tensor  # their clusters
    score: Score
    view_weights: list[float]
    cluster_sizes: Sizes
    stability: NDArray[np.float64]  # of the clusters of these rows
    confidence: NDArray[np.float64]  # in their clusters, each left out of the fit
    history: list[Record]
    n_steps: int


def fit_network(
    network: Network,
    views: Views,
    settings: Settings,
    device: torch.device,
    callbacks: Sequence[Callback] = (),
    *,
    journal: Journal | None = None,
    show: bool = False,
) -> Fitted:
    """Find clusters and train the network, whose standardisation is set, on them."""
    C, seed, config = settings.n_clusters, settings.seed, settings.search
    starts = config.starts * settings.n_restarts
    rows = search_rows(len(views), settings)
    features = Feed(views, network, device, resident_bytes=0)(rows)
    present = present_in(features)
    if present is not None:
        check_enough(present, views.names, C)
    features = to_one_length(network, features)
    wide_rows = drawn(len(views), config.wide_rows_of(len(views), C), seed)
    all_rows = wide_rows if len(wide_rows) > 0 else rows
    place = torch.from_numpy(np.searchsorted(all_rows, rows)).to(device)
    others = on_other_scales(views, all_rows, settings, device)
    space = _space(features, [h[place] for h in others], settings)
    start_network(network, space, seed)
    total = candidates_of(starts) + STEPS + (len(wide_rows) > 0)
    with progress(total, "search", unit="candidates", show=show) as bar:
        space = weigh(space, C, seed)
        network.view_weights.copy_(torch.tensor(space.view_weights))
        space = space.attending(attention_among(network, features))

        def learn(partitions: Sequence[Tensor]) -> Space:
            graph = cross_fitted(network, features, partitions, settings, device)
            return space.attending(graph)

        journal = Journal() if journal is None else journal.to(device)
        candidates, trained = search(
            space,
            C,
            seed,
            starts=starts,
            learn=learn,
            journal=journal,
            on_candidate=bar.update,
        )
        candidates, sizes = _of_any_size(trained, candidates, settings, journal, bar)
        best, stable = candidates[0], reproduced(candidates, C)
        wide, every = space, best.labels
        if len(wide_rows) > 0:
            more = Feed(views, network, device, resident_bytes=0)(wide_rows)
            wide = _space(more, others, settings).weighted(space.weights)
            every = widened(space, best.labels, wide, place, C, sizes)
            best = best._replace(labels=every[place])
            best = best._replace(score=score(trained, best.labels, C))
            bar.update()
    labels = best.labels
    partitions = [labels, *(candidate.labels for candidate in candidates[1:])]
    trainer = train(
        network, features, partitions, settings, device, callbacks, together=ranks()
    )
    p = set_heads(network, wide.on_first_scale(), every, sizes)[place]
    sure = calibrate(network, features, labels, p, float(stable.mean()))
    return Fitted(
        rows,
        labels,
        best.score,
        space.view_weights,
        sizes,
        stable,
        sure.double().cpu().numpy(),
        trainer.history,
        trainer.step,
    )


def search_rows(n_samples: int, settings: Settings) -> NDArray[np.int64]:
    """Which samples the search looks at, in order."""
    most = settings.search.rows_of(settings.n_clusters)
    return drawn(n_samples, most, settings.seed)


def drawn(n: int, most: int, seed: int) -> NDArray[np.int64]:
    """At most so many of n samples, drawn at random, in order.

    Those of a smaller number are among them.
    """
    return np.sort(np.random.default_rng(seed).permutation(n)[:most])


def space_of(
    views: Views,
    rows: NDArray[np.int64],
    features: Sequence[Tensor],
    settings: Settings,
    device: torch.device,
) -> Space:
    """What the search looks at: features of the network, and those on other scales.

    Which scale tells most differs from set to set, and a score that chooses one is
    wrong too often. What regressions and neighbours say on both, in the mean, is about
    as good as on the better one, and better than on either where they err apart.
    """
    others = on_other_scales(views, rows, settings, device)
    return _space(features, others, settings)


def on_other_scales(
    views: Views, rows: NDArray[np.int64], settings: Settings, device: torch.device
) -> list[Tensor]:
    """These samples on the scales that the network is not on, one after the other."""
    _, *kinds = scales_of(settings.normalize)
    return [x for kind in kinds for x in standardized(views, rows, device, kind)]


def _space(
    features: Sequence[Tensor], others: Sequence[Tensor], settings: Settings
) -> Space:
    near = settings.search.neighbours(len(features[0]), settings.n_clusters)
    scales = 1 + len(others) // len(features)
    return Space([*features, *others], near, settings.search, scales)


@torch.no_grad()
def to_one_length(network: Network, features: Sequence[Tensor]) -> list[Tensor]:
    """Views whose rows have a length of 10 in the mean, by a factor that the network
    then applies itself. Standardised rows have that length already."""
    scaled = []
    for view, h in zip(network.view_networks, features, strict=True):
        if view.encoder.row_length == 0:
            lengths = h.norm(dim=1)
            lengths = lengths[~lengths.isnan()]  # of samples that have the view
            factor = MEAN_NORM / lengths.mean().clamp_min(1e-12)
            view.encoder.scale.mul_(factor)
            h = h * factor
        scaled.append(h)
    return scaled


@torch.no_grad()
def start_network(network: Network, space: Space, seed: int) -> None:
    """Leading principal directions as W, and U = V = c · I but for a little noise.

    z has a mean length of one, and the score of a sample with its like is 25.
    """
    generator = torch.Generator().manual_seed(seed)
    spectra = space.spectra[: space.n_views]
    fits = space.fits[: space.n_views]
    for view, spectrum, fit in zip(network.view_networks, spectra, fits, strict=True):
        D = len(view.encoder.g)
        W = spectrum.leading(D).T  # (D, d)
        W = W / (fit.of(spectrum.x) @ W.T).norm(dim=1).mean().clamp_min(1e-12)
        length = W.norm(dim=1)
        # Only the direction of v counts; the longer it is, the slower it turns. One
        # that the samples do not have keeps any v and gets no length.
        view.encoder.v.copy_(torch.where(length[:, None] > 0, W, view.encoder.v))
        view.encoder.g.copy_(length / MEAN_NORM)
        view.encoder.b.zero_()
        if view.graph == "identity":
            continue
        for M in (view.U, view.V):
            noise = torch.randn(D, D, generator=generator).to(M)
            M.copy_(torch.eye(D).to(M) + _NOISE * noise)
            M.mul_(space.config.sharpness**0.5 * D**0.25)  # attend divides scores by √D


@torch.no_grad()
def attention_among(
    network: Network, features: Sequence[Tensor], rows: Tensor | None = None
) -> CSR | None:
    """The graph by all views together of samples that attend to each other.

    Of some ``rows`` alone, if given. None for a network without neighbours.
    """
    view = network.view_networks[0]
    if view.graph == "identity":
        return None
    linear = [
        each.linear(h) for each, h in zip(network.view_networks, features, strict=True)
    ]
    together = network.together(linear)
    A = view.attention_graph(together, rows)
    n, m = A.shape
    graph = CSR(A.crow_indices(), A.col_indices(), A.values(), (n, m))
    present = present_in([of_view.keys for of_view in linear])
    if present is None:
        return graph
    asked = together.queries if rows is None else together.queries[rows]
    return sharing_only(
        graph, asked, together.keys, present, view.alpha, view.self_loops, rows
    )


def cross_fitted(
    network: Network,
    features: Sequence[Tensor],
    partitions: Sequence[Tensor],
    settings: Settings,
    device: torch.device,
) -> CSR | None:
    """The graph of samples that attend by weights trained on others.

    Each fold of the samples, drawn at random, attends to all by a network that starts
    where ``network`` is and was trained on the other folds: by one process each, so
    that the search takes the same course with any number of them.
    """
    n = len(features[0])
    if n < 2 * _FOLDS or network.view_networks[0].graph == "identity":
        return attention_among(network, features)
    order = torch.from_numpy(np.random.default_rng(settings.seed).permutation(n))

    def fitted(fold: int, rows: Tensor) -> tuple[Tensor, ...]:
        rest = torch.ones(n, dtype=torch.bool, device=device)
        rest[rows] = False
        part = copy.deepcopy(network)
        seed = step_seed(settings.seed, fold)
        of_rest = [labels[rest] for labels in partitions]
        train(part, [h[rest] for h in features], of_rest, settings, device, seed=seed)
        graph = attention_among(part, features, rows)
        assert graph is not None
        return rows[graph.rows()], graph.cols, graph.entries

    folds = enumerate(order.to(device).chunk(_FOLDS))
    parts = spread([partial(fitted, *fold) for fold in folds], device)
    rows, cols, entries = (torch.cat(part) for part in zip(*parts, strict=True))
    return from_edges(rows, cols, entries, n)


def train(
    network: Network,
    features: Sequence[Tensor],
    partitions: Sequence[Tensor],
    settings: Settings,
    device: torch.device,
    callbacks: Sequence[Callback] = (),
    seed: int | None = None,
    together: Ranks = ALONE,
) -> Trainer:
    """Train the graph to join samples that the partitions put together."""
    trainer = Trainer(
        network,
        settings.objective(),
        Rows(features),
        Plan(
            min(settings.batch_size, len(features[0])),
            settings.steps,
            settings.learning_rate,
            settings.seed if seed is None else seed,
        ),
        device,
        callbacks,
        partitions,
        together,
    )
    if network.view_networks[0].graph != "identity":
        trainer.run()
    return trainer


def _of_any_size(
    space: Space,
    candidates: list[Candidate],
    settings: Settings,
    journal: Journal,
    bar: Bar,
) -> tuple[list[Candidate], Sizes]:
    """Candidates of unequal sizes, where they are asked for or clearly better."""
    if settings.cluster_sizes == "balanced":
        return candidates, "balanced"
    other = unequal(
        space,
        settings.n_clusters,
        settings.seed,
        candidates,
        doubted=settings.cluster_sizes == "auto",
        journal=journal,
        on_step=bar.update,
    )
    return (candidates, "balanced") if other is None else (other, "any")


@torch.no_grad()
def set_heads(network: Network, space: Space, labels: Tensor, sizes: Sizes) -> Tensor:
    """The heads by ridge regression to the clusters (n,), each scaled by its view.

    What they say together has a deviation of one: of each cluster alike or, where
    clusters are of any size, on average, as log odds with their prior. Returned is what
    they would say of these samples, (n, C), each left out of the fit.
    """
    C = len(network.view_networks[0].bias)
    Y = one_hot(labels, C)
    centred = Y - Y.mean(dim=0)
    z = left_out(space, Y)
    middle, slope = head_line(z, Y, sizes)
    empty = ~Y.any(dim=0)
    L = len(space.views)
    for view, fit, share in zip(
        network.view_networks, space.fits, space.weights, strict=True
    ):
        assert view.head is not None
        view.head.copy_((fit.weights(centred) * slope).T * (L * share / MEAN_NORM))
        view.bias.copy_((-middle * slope).masked_fill(empty, _NEVER))
    network.graph_weight.fill_(space.config.vote)
    return ((z - middle) * slope).masked_fill(empty, _NEVER)


@torch.no_grad()
def calibrate(
    network: Network,
    features: Sequence[Tensor],
    labels: Tensor,
    p: Tensor,
    mean_confidence: float,
) -> Tensor:
    """Temperature scaling to a mean confidence over samples left out of their fit.

    ``p``, (n, C), is what the heads say of them. Returned is the confidence of each,
    (n,): that of a new sample like it, and below that of the sample itself, which the
    model knows.
    """
    Y = one_hot(labels, p.shape[1])
    graph = attention_among(network, features)
    if graph is not None:
        p = p + network.graph_weight * multiply(graph, Y)
    factor = inverse_temperature(p, mean_confidence)
    network.graph_weight.mul_(factor)
    for view in network.view_networks:
        assert view.head is not None
        view.head.mul_(factor)
        view.bias.mul_(factor)
    return torch.softmax(factor * p, dim=1).amax(dim=1)
