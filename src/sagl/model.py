"""A fitted model: a network, whom new samples attend to, labels and measures."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sagl._version import __version__
from sagl.later import Corrected, Stream, Update
from sagl.nn.inference import Predictor, Voters, anchor_features
from sagl.nn.network import Network
from sagl.pipeline import drawn, fit_network
from sagl.prediction import anchors_from, choose, most_likely, sparsity_of
from sagl.schema import AtLeast0, Count, Positive, Share
from sagl.search.anneal import Sizes
from sagl.search.count import ClusterCount, kept_count
from sagl.search.journal import Journal
from sagl.search.score import Score
from sagl.search.stability import DoubtCurve, doubt_curve
from sagl.selection import estimate_n_clusters
from sagl.settings import Settings
from sagl.storage import clear_leftovers, held, make_writable
from sagl.training.callbacks import Callback, ProgressBar, StopWhenStable
from sagl.training.checkpoint import FILE_NAME, Checkpointer
from sagl.training.distributed import ranks, same
from sagl.training.feed import Feed, scales_of, set_standardization
from sagl.training.sampler import step_seed
from sagl.training.trainer import Plan, Trainer
from sagl.views import Views

# Restarts after the first keep their checkpoints in directories of such names.
RESTARTS = "restart-"
COUNT = "cluster-count.json"  # while a fit with n_clusters="auto" lasts


class Facts(NamedTuple):
    """What is known of training samples and clusters beside labels and confidence."""

    outlier: NDArray[np.float64]  # (n,) the larger, the less like all others
    disagreement: NDArray[np.float64]  # (n,) of the views, 0 to 1
    duplicate: NDArray[np.int64]  # (n,) the group of near-duplicates, or −1
    between: NDArray[np.float64]  # (C, C) mean probabilities of a cluster's samples


class Layer(NamedTuple):
    """A partition, coarser or finer than the one that was asked for.

    Attributes
    ----------
    n_clusters : int
    parents : tuple of int
        For each of its clusters the one in the next coarser layer that it is in; empty
        for the coarsest.
    stability : float
        The share of samples of the search that keep their cluster when the search
        starts elsewhere.
    kept : float
        What views and neighbours tell of it, relative to what they tell of the clusters
        that were asked for.
    """

    n_clusters: Positive
    parents: tuple[Count, ...]
    stability: Share
    kept: AtLeast0


class Leaves(NamedTuple):
    """Clusters of the finest layer."""

    anchors: Tensor  # (a,)
    labels: NDArray[np.int64]  # (n,)


@dataclass
class Model:
    """All that a fit leaves, and a run directory holds."""

    settings: Settings
    view_names: tuple[str, ...]
    view_widths: tuple[int, ...]
    network: Network
    anchors: list[Tensor]  # z of the samples that new ones attend to, per view
    anchor_labels: Tensor | None = None  # with heads: the cluster of each
    voters: Voters | None = None  # of an older sagl
    history: list[dict[str, Any]] = field(default_factory=list)
    n_steps: int = 0
    labels: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    confidence: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    score: Score | None = None  # if it was measured
    cluster_count: ClusterCount | None = None  # if the number was estimated
    doubt: DoubtCurve | None = None  # measured with the score
    view_weights: tuple[float, ...] | None = None  # with a search
    cluster_sizes: Sizes | None = None  # with a search
    facts: Facts | None = None  # not of runs of before 0.2
    layers: tuple[Layer, ...] | None = None  # with a search, from coarse to fine
    leaves: Leaves | None = None  # with layers
    names: dict[int, str] = field(default_factory=dict)  # of clusters that have one
    missing: tuple[int, ...] | None = None  # samples that miss each view, if any do
    ids: Sequence[str] | None = None  # of the training samples, if they have any
    corrections: Corrected | None = None  # of people, if there were any
    stream: Stream | None = None  # of updates with new samples, if there were any
    update: Update | None = None  # of the last update, just after it

    @cached_property
    def predictor(self) -> Predictor:
        return Predictor(self.network, self.anchors, self.anchor_labels, self.voters)


@dataclass(frozen=True)
class Watch:
    """Who looks on while a model is fitted, and where it is kept from being lost."""

    callbacks: Sequence[Callback] = ()
    verbose: bool = False
    checkpoint_dir: Path | None = None
    checkpoint_seconds: float = 30

    def alone(self) -> AbstractContextManager[None]:
        """Keep other fits away from the checkpoints; the first process does."""
        if self.checkpoint_dir is None or not ranks().first:
            return nullcontext()
        return held(self.checkpoint_dir, "run")

    def on_training(self, settings: Settings) -> list[Callback]:
        bars = [ProgressBar()] if self.verbose else []
        stop = StopWhenStable(settings.tolerance, settings.patience)
        return [stop, *self.callbacks, *bars]

    def journal(self, fingerprint: dict[str, Any], n: int) -> Journal | None:
        if self.checkpoint_dir is None:
            return None
        make_writable(self.checkpoint_dir)
        return Journal(self.checkpoint_dir, fingerprint, self.checkpoint_seconds, n)

    def checkpointer(
        self, fingerprint: dict[str, Any], restart: int
    ) -> list[Checkpointer]:
        if self.checkpoint_dir is None:
            return []
        directory = self.checkpoint_dir
        if restart > 0:
            directory /= f"{RESTARTS}{restart}"
        make_writable(directory)
        return [Checkpointer(directory, fingerprint, self.checkpoint_seconds)]


class _Stability(NamedTuple):
    rows: NDArray[np.int64]
    stable: NDArray[np.float64]  # of the clusters of these rows


def fit_model(
    views: Views, settings: Settings, device: torch.device, watch: Watch
) -> Model:
    """Fit by a search, or train the paper's network, as the settings have it.

    Processes that have joined do it together, and each has the model. Its labels come
    with all else that is said of each sample (``clusters.describe``).
    """
    same("data, settings or sagl", _digest(_fingerprint(settings, views)))
    fit = _searched if settings.refine else _trained
    with watch.alone():
        model, stability = fit(views, settings, device, watch)
    if model.history:  # what was measured on a batch gives way to the whole
        model.history[-1]["sparsity"] = sparsity_of(model.network, views)
    if views.present is not None:
        model.missing = tuple(len(views) - count for count in views.counts)
    if stability is not None:
        _, confidence = most_likely(model.predictor, views[stability.rows])
        model.doubt = doubt_curve(confidence, stability.stable)
    return model


def counted_clusters(
    views: Views, seed: int, watch: Watch, device: str
) -> ClusterCount:
    """How many clusters there are; a killed fit finds its estimate again."""
    of = {"data": views.fingerprint(), "seed": seed}
    same("data, seed or sagl", _digest(of))

    def estimate() -> ClusterCount:
        return estimate_n_clusters(
            views, random_state=seed, device=device, progress=watch.verbose
        )

    if watch.checkpoint_dir is None:
        return estimate()
    make_writable(watch.checkpoint_dir)
    return kept_count(watch.checkpoint_dir / COUNT, of, estimate)


def clear_unfinished(directory: Path) -> None:
    """Remove what a fit needs only until its run is whole."""
    restarts = [p for p in directory.glob(f"{RESTARTS}*") if p.is_dir()]
    for name in (FILE_NAME, COUNT, *(f"{p.name}/{FILE_NAME}" for p in restarts)):
        (directory / name).unlink(missing_ok=True)
    clear_leftovers(*restarts)
    for path in restarts:
        with suppress(OSError):  # not ours alone
            path.rmdir()


def cure_of_collapse(settings: Settings) -> str:
    """What to try where some clusters hold no sample."""
    if settings.refine:
        return 'ask for fewer clusters, or cluster_sizes="balanced"'
    cure = (
        f"try a larger gamma (now {settings.gamma:g}), a larger batch_size (now "
        f"{settings.batch_size}), more steps (now {settings.steps}), another "
        "random_state, or fewer clusters"
    )
    if settings.normalize != "none":
        return cure
    return (
        "the features were taken as they are, and views or columns of different "
        f'scales end so: try normalize="standard" first; else {cure}'
    )


def with_anchors(network: Network, settings: Settings, views: Views) -> Model:
    """A network without a search; anchors are drawn from the views."""
    anchors = anchors_from(views, network, settings.n_anchors, settings.seed)
    return Model(settings, views.names, views.widths, network, anchors)


def build_network(
    settings: Settings, widths: Sequence[int], generator: torch.Generator | None
) -> Network:
    """The network of these settings for views of these widths, untrained."""
    return Network(
        widths,
        settings.n_clusters,
        z_width=settings.width,
        alpha=settings.alpha,
        graph=settings.graph,
        gate=settings.gate,
        gate_input=settings.gate_input,
        dropout=settings.dropout,
        self_loops=settings.self_loops,
        vote="product" if settings.refine else "mean",
        generator=generator,
    )


def _searched(
    views: Views, settings: Settings, device: torch.device, watch: Watch
) -> tuple[Model, None]:
    """Clusters by a search, and a network whose graph learned them."""
    network = _new_network(views, settings, settings.seed, device)
    fitted = fit_network(
        network,
        views,
        settings,
        device,
        watch.on_training(settings),
        journal=watch.journal(_fingerprint(settings, views), len(views)),
        show=watch.verbose,
    )
    kept = drawn(len(fitted.rows), settings.n_anchors, settings.seed)
    features = [torch.from_numpy(h) for h in views.take(fitted.rows[kept])]
    model = Model(
        settings,
        views.names,
        views.widths,
        network,
        anchor_features(network, features),
        fitted.labels[torch.from_numpy(kept)].cpu(),
        history=fitted.history,
        n_steps=fitted.n_steps,
        score=fitted.score,
        view_weights=tuple(fitted.view_weights),
        cluster_sizes=fitted.cluster_sizes,
        doubt=doubt_curve(fitted.confidence, fitted.stability),
    )
    return model, None


def _trained(
    views: Views, settings: Settings, device: torch.device, watch: Watch
) -> tuple[Model, _Stability | None]:
    """The paper's network, or the best of several, which share what is read."""
    first = _new_network(views, settings, settings.seed, device)
    feed = Feed(views, first, device)
    trainers = []
    for restart in range(settings.n_restarts):
        network, own = first, settings
        if restart > 0:
            own = replace(settings, seed=step_seed(settings.seed, restart))
            network = _another(first, views, own, device)
        fingerprint = _fingerprint(own, views)
        checkpointer = watch.checkpointer(fingerprint, restart)
        trainers.append(_train_one(network, feed, own, watch, checkpointer))
    best, score, stability = trainers[0], None, None
    if len(trainers) > 1:
        networks = [trainer.network for trainer in trainers]
        choice = choose(networks, settings, views, device)
        best, score = trainers[choice.best], choice.score
        stability = _Stability(choice.rows, choice.stability)
    model = with_anchors(best.network, settings, views)
    model.history, model.n_steps, model.score = best.history, best.step, score
    return model, stability


def _train_one(
    network: Network,
    feed: Feed,
    settings: Settings,
    watch: Watch,
    checkpointer: Sequence[Checkpointer],
) -> Trainer:
    trainer = Trainer(
        network,
        settings.objective(),
        feed,
        Plan(
            settings.batch_size, settings.steps, settings.learning_rate, settings.seed
        ),
        next(network.parameters()).device,
        [*watch.on_training(settings), *checkpointer],
        ranks=ranks(),
    )
    for each in checkpointer:
        each.restore(trainer)
    trainer.run()
    return trainer


def _new_network(
    views: Views, settings: Settings, seed: int, device: torch.device
) -> Network:
    generator = torch.Generator().manual_seed(seed)
    network = build_network(settings, views.widths, generator)
    set_standardization(network, views, scales_of(settings.normalize)[0])
    return network.to(device)


def _another(
    network: Network, views: Views, settings: Settings, device: torch.device
) -> Network:
    """One that starts elsewhere, on the scales that were measured for the first."""
    generator = torch.Generator().manual_seed(settings.seed)
    other = build_network(settings, views.widths, generator).to(device)
    for ours, theirs in zip(other.view_networks, network.view_networks, strict=True):
        for name, buffer in theirs.encoder.named_buffers():
            ours.encoder.get_buffer(name).copy_(buffer)
    return other


def _digest(of: dict[str, Any]) -> str:
    """What all processes of a job must agree on."""
    text = json.dumps({**of, "sagl": __version__}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _fingerprint(settings: Settings, views: Views) -> dict[str, Any]:
    """What a checkpoint must be of to be taken up."""
    return {**settings.as_dict(), "data": views.fingerprint()}
