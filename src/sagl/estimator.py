"""SAGL: the scikit-learn front door."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sagl.checks import number
from sagl.environment import pick_device
from sagl.nn.inference import Answer, Predictor, anchor_features
from sagl.nn.network import Network
from sagl.nn.voters import Voters
from sagl.pipeline import fit_network
from sagl.prediction import (
    anchors_from,
    answers,
    choose,
    graph_of_all_views,
    graphs_of,
    most_likely,
    sparsity_of,
)
from sagl.recipes import RecipeName
from sagl.run import (
    SavedRun,
    damaged,
    kept_count,
    make_writable,
    plain,
    read_run,
    write_run,
)
from sagl.search.config import SearchConfig
from sagl.search.count import ClusterCount
from sagl.search.journal import Journal
from sagl.search.stability import DoubtCurve, doubt_curve
from sagl.selection import estimate_n_clusters
from sagl.settings import Settings, resolve
from sagl.training.callbacks import Callback, ProgressBar, StopWhenStable
from sagl.training.checkpoint import Checkpointer
from sagl.training.feed import Feed, scales_of, set_standardization
from sagl.training.sampler import step_seed
from sagl.training.trainer import Plan, Trainer
from sagl.views import Views, is_list_of_views

# The cluster of samples that are too doubtful to have one.
DOUBTFUL = -1
# Restarts after the first keep their checkpoints in directories of such names.
RESTARTS = "restart-"
# What only some fits find out: attributes, with an underscore, and parts of a run.
_NOT_ALWAYS = ("score", "cluster_count", "doubt", "view_weights", "cluster_sizes")
# What belongs to one fit on one machine and not to the model.
_NOT_SAVED = ("callbacks", "checkpoint_dir", "device", "verbose")


# Samples that a search looked at, and how stable their clusters are.
_Stability = tuple[NDArray[np.int64], NDArray[np.float64]]


class CollapseWarning(UserWarning):
    """Some clusters hold no sample."""


class UncertainCountWarning(UserWarning):
    """The data do not tell how many clusters there are."""


class SAGL(TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Sparse Attention Graph Learning: clusters from several views, without labels.

    Per view a linear map, bilinear attention and an exact α-entmax projection yield a
    sparse graph of samples. A search without labels finds clusters; the graph learns
    them, and new samples are predicted by linear heads and by whom they attend to. A
    parameter left at None takes the value of the recipe.

    Parameters
    ----------
    n_clusters : int or "auto"
        The number of clusters, at least 2; "auto" estimates it first
        (``sagl.selection.estimate_n_clusters``).
    recipe : {"default", "network", "paper", "released"}, default="default"
        Where parameters that are None come from: our measured choice, the same for the
        paper's network without a search, the paper's equations, or the authors'
        published code.
    gamma, beta : float, optional
        Weights of the diversity and of the alignment term.
    learning_rate : float, optional
        Of Adam.
    batch_size : int or "auto", default="auto"
        Samples that see each other in a step; "auto" is six per cluster, at least 600
        with a search and 100 without.
    epochs, steps : int, optional
        Length of the training, given one way or the other.
    dropout : float, optional
        Share of attention weights dropped in training.
    alpha : float, default=1.5
        Of entmax: 1 is softmax (dense), 2 sparsemax.
    graph : {"sparse", "dense", "identity"}, default="sparse"
        The paper's SAGL, SAGL_b (softmax attention) and SAGL_i (no neighbours).
    gate : {"none", "shrink", "sharpen"}, optional
        The sparsity gate's form; "none" is the paper's SAGL_w.
    gate_input : {"z", "features"}, optional
        What the gate reads: linear features (paper) or raw ones (released code).
    pseudo_label : {"log", "linear"}, optional
        Form of the pseudo-label term.
    alignment : {"symmetric", "one-way"}, optional
        Form of the alignment term.
    normalize : {"auto", "none", "center", "pareto", "standard"}, optional
        "center" subtracts each view's mean and scales its mean norm to 10; "standard"
        brings columns to mean 0 and deviation 1, then rows to length 10; "pareto" is
        half way between: columns are divided by the root of their deviation. "auto" is
        "standard", and a search looks at each view on the "pareto" scale as well.
    refine : bool, optional
        Whether a search finds the clusters that views and neighbours predict best, and
        the network's graph learns them. Without, the network finds clusters itself.
    width : int, "auto" or "C", default="auto"
        Of the linear features z by which samples are compared: "C" is the paper's, one
        per cluster; "auto" is 64 with a search and "C" without.
    cluster_sizes : {"auto", "balanced", "any"}, default="auto"
        Of clusters that ``refine`` finds: "balanced" makes them of about equal sizes,
        "any" of any, "auto" of any only where those are told apart better.
    search : SearchConfig or dict, optional
        The numbers that the search goes by, where they are not to be those that were
        measured best.
    n_restarts : int, default=1
        The search starts from so many times eight partitions. Without a search, so many
        networks are trained, and a score that needs no labels chooses among them.
    self_loops : bool, optional
        Whether a training sample may attend to itself.
    n_anchors : int or "auto", default="auto"
        Training samples that new ones attend to; "auto" is those of the search, 5,000
        or 20 per cluster, and without a search five batches, at least 2,000.
    tolerance : float, default=0.001
        Training stops when at most this share of samples changes cluster...
    patience : int, default=10
        ...in so many records of the history in a row.
    view_sizes : sequence of int, optional
        Widths by which a single 2-D input is cut into views.
    checkpoint_dir : str or Path, optional
        Where to keep a checkpoint. A fit that finds one of the same run resumes it
        and ends with the same bits as if it had not been interrupted.
    checkpoint_seconds : float, default=30
        The least time between two checkpoints.
    callbacks : sequence of Callback, optional
        Watchers of the training.
    verbose : bool, default=False
        Show a progress bar on stderr.
    random_state : int, RandomState or None, default=None
        An int makes the result repeatable to the last bit on one machine.
    device : str, default="auto"
        "cpu", "cuda", "mps" or "auto" (CUDA when there is one).

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each training sample, as ``predict`` gives it.
    history_ : list of dict
        Losses, share of samples that moved, clusters in use and sparsity per view.
    n_steps_ : int
        Optimiser steps done.
    settings_ : Settings
        Every setting of the run with nothing left open.
    view_names_, view_widths_ : tuple
        The views seen in fit.
    network_ : Network
        The trained network.
    anchors_ : list of Tensor
        Linear features z of the anchors, (a, D), one tensor per view.
    anchor_labels_ : Tensor or None
        With ``refine``: the clusters of the anchors.
    voters_ : Voters or None
        Of a run that sagl 0.1 saved: samples whose clusters count in the prediction of
        samples near them.
    score_ : Score
        How well views and neighbours predict the clusters, in nats, if it was measured:
        with ``refine`` or several restarts.
    doubt_ : DoubtCurve
        How stable clusters are from which confidence on; measured like ``score_``.
    view_weights_ : tuple of float
        With ``refine``: how much each view counts, one in all, by what its neighbours
        know of the clusters of the other views.
    cluster_sizes_ : {"balanced", "any"}
        With ``refine``: whether clusters were made of about equal or of any sizes.
    n_clusters_ : int
        The number of clusters, given or estimated.
    cluster_count_ : ClusterCount
        With ``n_clusters="auto"``: the estimate, its interval and the curve behind it.
    n_features_in_ : int
        Columns of all views together.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sagl import SAGL
    >>> X, _ = make_blobs(300, n_features=8, centers=3, random_state=0)
    >>> views = {"left": X[:, :4], "right": X[:, 4:]}
    >>> model = SAGL(n_clusters=3, random_state=0).fit(views)
    >>> sorted(int(size) for size in np.bincount(model.labels_))
    [100, 100, 100]
    """

    def __init__(
        self,
        n_clusters: int | Literal["auto"],
        *,
        recipe: RecipeName = "default",
        gamma: float | None = None,
        beta: float | None = None,
        learning_rate: float | None = None,
        batch_size: int | str = "auto",
        epochs: int | None = None,
        steps: int | None = None,
        dropout: float | None = None,
        alpha: float = 1.5,
        graph: str = "sparse",
        gate: str | None = None,
        gate_input: str | None = None,
        pseudo_label: str | None = None,
        alignment: str | None = None,
        normalize: str | None = None,
        refine: bool | None = None,
        width: int | str = "auto",
        cluster_sizes: str = "auto",
        search: SearchConfig | dict[str, Any] | None = None,
        n_restarts: int = 1,
        self_loops: bool | None = None,
        n_anchors: int | str = "auto",
        tolerance: float = 0.001,
        patience: int = 10,
        view_sizes: Sequence[int] | None = None,
        checkpoint_dir: str | Path | None = None,
        checkpoint_seconds: float = 30,
        callbacks: Sequence[Callback] | None = None,
        verbose: bool = False,
        random_state: int | np.random.RandomState | None = None,
        device: str = "auto",
    ) -> None:
        self.n_clusters = n_clusters
        self.recipe = recipe
        self.gamma = gamma
        self.beta = beta
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.epochs = epochs
        self.steps = steps
        self.dropout = dropout
        self.alpha = alpha
        self.graph = graph
        self.gate = gate
        self.gate_input = gate_input
        self.pseudo_label = pseudo_label
        self.alignment = alignment
        self.normalize = normalize
        self.refine = refine
        self.width = width
        self.cluster_sizes = cluster_sizes
        self.search = search
        self.n_restarts = n_restarts
        self.self_loops = self_loops
        self.n_anchors = n_anchors
        self.tolerance = tolerance
        self.patience = patience
        self.view_sizes = view_sizes
        self.checkpoint_dir = checkpoint_dir
        self.checkpoint_seconds = checkpoint_seconds
        self.callbacks = callbacks
        self.verbose = verbose
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: None = None) -> Self:
        """Learn clusters from the views. ``y`` is ignored: labels play no part."""
        views = self._as_views(X, reset=True)
        views.check_values()
        settings = self.resolved(len(views))
        views.check_spread()
        device = pick_device(self.device)
        self._stability: _Stability | None = None
        for name in _NOT_ALWAYS:
            self.__dict__.pop(f"{name}_", None)  # of an earlier fit
        if self.n_clusters == "auto":
            self.cluster_count_ = self._count(views, settings.seed)
            counted = self.resolved(len(views), self.cluster_count_.best)
            settings = replace(counted, seed=settings.seed)
        if settings.refine:
            self._search(views, settings, device)
        else:
            self._train(views, settings, device)
        if self.history_:  # what was measured on a batch gives way to the whole
            self.history_[-1]["sparsity"] = sparsity_of(self.network_, views)
        self.labels_, self.confidence_ = most_likely(self._predictor, views)
        if self._stability is not None:
            rows, stable = self._stability
            self.doubt_: DoubtCurve = doubt_curve(self.confidence_[rows], stable)
        _warn_if_collapsed(self.labels_, settings)
        return self

    def _count(self, views: Views, seed: int) -> ClusterCount:
        """How many clusters there are; a doubtful answer is a warning."""

        def estimate() -> ClusterCount:
            return estimate_n_clusters(
                views, random_state=seed, device=self.device, progress=self.verbose
            )

        if self.checkpoint_dir is None:
            found = estimate()
        else:
            of = {"data": views.fingerprint(), "seed": seed}
            found = kept_count(Path(self.checkpoint_dir), of, estimate)
        if not found.sure:
            warnings.warn(
                f"n_clusters='auto': {found.in_words()}",
                UncertainCountWarning,
                stacklevel=3,
            )
        return found

    def _search(self, views: Views, settings: Settings, device: torch.device) -> None:
        """Clusters by a search, and a network whose graph learned them."""
        network = self._new_network(views, settings, settings.seed, device)
        journal = None
        if self.checkpoint_dir is not None:
            directory = Path(self.checkpoint_dir)
            make_writable(directory)
            fingerprint = self._fingerprint(settings, views)
            journal = Journal(directory, fingerprint, self.checkpoint_seconds)
        fitted = fit_network(
            network,
            views,
            settings,
            device,
            self._watchers(settings),
            journal=journal,
            show=self.verbose,
        )
        kept = np.sort(_some(len(fitted.rows), settings.n_anchors, settings.seed))
        rows, labels = fitted.rows[kept], fitted.labels[torch.from_numpy(kept)]
        features = [torch.from_numpy(h) for h in views.take(rows)]
        anchors = anchor_features(network, features)
        self._set_model(settings, views, network, anchors, labels.cpu())
        self.n_steps_ = fitted.n_steps
        self.history_ = fitted.history
        self.score_ = fitted.score
        self.view_weights_ = tuple(fitted.view_weights)
        self.cluster_sizes_ = fitted.cluster_sizes
        self._stability = fitted.rows, fitted.stability

    def _train(self, views: Views, settings: Settings, device: torch.device) -> None:
        """The paper's network, or the best of several."""
        trainers = [
            self._train_one(views, settings, device, restart)
            for restart in range(settings.n_restarts)
        ]
        best = trainers[0]
        if len(trainers) > 1:
            networks = [trainer.network for trainer in trainers]
            choice = choose(networks, settings, views, device)
            best = trainers[choice.best]
            self.score_ = choice.score
            self._stability = choice.rows, choice.stability
        self.adopt(best.network, settings, views)
        self.n_steps_ = best.step
        self.history_ = best.history

    def _train_one(
        self, views: Views, settings: Settings, device: torch.device, restart: int
    ) -> Trainer:
        """Train one network; restarts differ in their seed alone."""
        seed = settings.seed if restart == 0 else step_seed(settings.seed, restart)
        network = self._new_network(views, settings, seed, device)
        callbacks = self._callbacks(replace(settings, seed=seed), views, restart)
        trainer = Trainer(
            network,
            settings.objective(),
            Feed(views, network, device),
            Plan(settings.batch_size, settings.steps, settings.learning_rate, seed),
            device,
            callbacks,
        )
        for callback in callbacks:
            if isinstance(callback, Checkpointer):
                callback.restore(trainer)
        trainer.run()
        return trainer

    def _new_network(
        self, views: Views, settings: Settings, seed: int, device: torch.device
    ) -> Network:
        generator = torch.Generator().manual_seed(seed)
        network = _network(settings, views.widths, generator)
        set_standardization(network, views, scales_of(settings.normalize)[0])
        return network.to(device)

    def adopt(self, network: Network, settings: Settings, views: Views) -> Self:
        """Predict with this network from now on; anchors are drawn from the views.

        A callback may use it to see what the network of a recipe without a search would
        predict in the middle of training.
        """
        anchors = anchors_from(views, network, settings.n_anchors, settings.seed)
        self._set_model(settings, views, network, anchors)
        return self

    def fit_predict(self, X: Any, y: None = None) -> NDArray[np.int64]:
        """Fit and return the cluster of each training sample."""
        self.fit(X)
        return self.labels_

    def predict(self, X: Any, *, agreement: float | None = None) -> NDArray[np.int64]:
        """The cluster of each sample, whatever other samples are asked about.

        With ``agreement``, say 0.9, doubtful samples get −1: those below the confidence
        from which on training samples keep their cluster so often when the search
        starts elsewhere.
        """
        labels, confidence = self.predict_with_confidence(X)
        if agreement is not None:
            labels[confidence < self.threshold(agreement)] = DOUBTFUL
        return labels

    def predict_with_confidence(
        self, X: Any
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Cluster of each sample and its probability."""
        views = self.check_views(X)
        return most_likely(self._predictor, views)

    def threshold(self, agreement: float) -> float:
        """The confidence below which a sample is doubtful; see ``predict``."""
        check_is_fitted(self)
        wanted = number("agreement", agreement, 0)
        if not hasattr(self, "doubt_"):
            raise ValueError(
                "nothing is known about the stability of this run: fit with "
                "refine=True, or with n_restarts of at least 2"
            )
        return self.doubt_.threshold(wanted)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probability of each cluster by all views, (n_samples, n_clusters)."""
        return np.concatenate([answer.q.cpu().numpy() for answer in self.answers(X)])

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Representations p of all views side by side, (n_samples, L · n_clusters)."""
        told = self.answers(X)
        return np.concatenate([torch.cat(a.p, dim=1).cpu().numpy() for a in told])

    def answers(self, X: Any) -> Iterator[Answer]:
        """Probabilities and representations together, a block of samples at a time."""
        views = self.check_views(X)
        return answers(self._predictor, views)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns of ``transform``."""
        check_is_fitted(self)
        names = [
            f"sagl_{view}_{k}"
            for view in self.view_names_
            for k in range(self.settings_.n_clusters)
        ]
        return np.asarray(names, dtype=object)

    def attention_graph(
        self, X: Any, *, together: bool = False
    ) -> list[csr_matrix] | csr_matrix:
        """Who attends to whom among the given samples: one CSR matrix per view.

        All samples attend to each other, so the matrices are square; rows sum to one.
        Unlike a prediction, a row depends on the other samples. With ``together`` it is
        one matrix: that of all views, as predictions use it, or where the recipe knows
        none the mean of theirs.
        """
        views = self.check_views(X)
        if together:
            return graph_of_all_views(self.network_, views)
        return graphs_of(self.network_, views)

    # `graph` is the name of a parameter and, until 0.3, of a method.
    @property
    def graph(self) -> Any:
        """Deprecated name of ``attention_graph``."""
        return self._graph

    @graph.setter
    def graph(self, form: str) -> None:
        self.__dict__["graph"] = form

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, as scikit-learn wants them."""
        params: dict[str, Any] = super().get_params(deep)
        return params | {"graph": self.__dict__["graph"]}

    def _graph(self, X: Any) -> list[csr_matrix]:
        warnings.warn(
            "SAGL.graph(X) is now SAGL.attention_graph(X); the old name goes in 0.3",
            DeprecationWarning,
            stacklevel=2,
        )
        return graphs_of(self.network_, self.check_views(X))

    def save(self, directory: str | Path, *, ids: Sequence[str] | None = None) -> None:
        """Write the fitted model as a directory (safetensors, JSON, CSV; no pickle).

        The directory must not hold a run already. ``SAGL.load`` reads it back. ``ids``
        are what the training samples are called in ``labels.csv``.
        """
        check_is_fitted(self)
        params = {
            name: plain(value)
            for name, value in self.get_params(deep=False).items()
            if name not in _NOT_SAVED
        }
        write_run(
            Path(directory),
            SavedRun(
                params=params,
                settings=self.settings_,
                names=self.view_names_,
                widths=self.view_widths_,
                network=self.network_.state_dict(),
                anchors=self.anchors_,
                anchor_labels=self.anchor_labels_,
                voters=self.voters_,
                history=self.history_,
                n_steps=self.n_steps_,
                labels=self.labels_,
                confidence=self.confidence_,
                ids=ids,
                **{name: getattr(self, f"{name}_", None) for name in _NOT_ALWAYS},
            ),
        )

    @classmethod
    def load(cls, directory: str | Path, device: str = "auto") -> Self:
        """Read a model that ``save`` or ``sagl fit`` wrote."""
        run = read_run(Path(directory))
        target = pick_device(device)
        try:
            model = cls(**{**run.params, "device": device})
            network = _network(run.settings, run.widths, torch.Generator())
            network.load_state_dict(run.network)
        except (TypeError, ValueError, RuntimeError) as error:
            raise damaged(Path(directory), error) from None
        network.to(target).eval()
        model._set_model(
            run.settings,
            run,
            network,
            run.anchors,
            run.anchor_labels,
            run.voters,
        )
        model.n_steps_ = run.n_steps
        model.history_ = run.history
        model.labels_ = run.labels
        model.confidence_ = run.confidence
        for name in _NOT_ALWAYS:
            if getattr(run, name) is not None:
                setattr(model, f"{name}_", getattr(run, name))
        return model

    def check_views(self, X: Any) -> Views:
        """``X`` as views, refused unless they are those of the fit."""
        check_is_fitted(self)
        views = self._as_views(X, reset=False)
        expected = list(zip(self.view_names_, self.view_widths_, strict=True))
        given = list(zip(views.names, views.widths, strict=True))
        if given != expected:
            raise ValueError(
                f"the model was fitted on the views {_listed(expected)}, in this "
                f"order; got {_listed(given)}"
            )
        views.check_values()
        return views

    def _as_views(self, X: Any, *, reset: bool) -> Views:
        several = isinstance(X, Views | Mapping) or is_list_of_views(X)
        if several and not issparse(X):  # a DOK matrix is a mapping, too
            views = Views(X, view_sizes=self.view_sizes)
            if reset:
                self.n_features_in_ = sum(views.widths)
            return views
        X = validate_data(
            self, X, reset=reset, dtype="numeric", ensure_all_finite=False, copy=False
        )
        return Views(X, view_sizes=self.view_sizes)

    def resolved(self, n_samples: int, n_clusters: int = 2) -> Settings:
        """The complete settings of a fit on so many samples.

        ``n_clusters`` is what "auto" stands for.
        """
        params = self.get_params(deep=False)
        if self.n_clusters == "auto":
            params["n_clusters"] = n_clusters
        repeatable = isinstance(self.random_state, int | np.integer)
        if self.checkpoint_dir is not None and not repeatable:
            raise ValueError(
                "a run can only be resumed with the same seed: give an int as "
                f"random_state together with checkpoint_dir (got {self.random_state!r})"
            )
        return resolve(params, n_samples, as_seed(self.random_state))

    def _callbacks(
        self, settings: Settings, views: Views, restart: int
    ) -> list[Callback]:
        callbacks = self._watchers(settings)
        if self.checkpoint_dir is not None:
            directory = Path(self.checkpoint_dir)
            if restart > 0:
                directory /= f"{RESTARTS}{restart}"
            make_writable(directory)
            fingerprint = self._fingerprint(settings, views)
            callbacks.append(
                Checkpointer(directory, fingerprint, self.checkpoint_seconds)
            )
        return callbacks

    def _watchers(self, settings: Settings) -> list[Callback]:
        callbacks: list[Callback] = [
            StopWhenStable(settings.tolerance, settings.patience),
            *(self.callbacks or ()),
        ]
        if self.verbose:
            callbacks.append(ProgressBar())
        return callbacks

    def _fingerprint(self, settings: Settings, views: Views) -> dict[str, Any]:
        """What a checkpoint must be of to be taken up."""
        return {**settings.as_dict(), "data": views.fingerprint()}

    def _set_model(
        self,
        settings: Settings,
        views: Views | SavedRun,
        network: Network,
        anchors: list[torch.Tensor],
        labels: torch.Tensor | None = None,
        voters: Voters | None = None,
    ) -> None:
        self.settings_ = settings
        self.n_clusters_ = settings.n_clusters
        self.view_names_ = views.names
        self.view_widths_ = views.widths
        self.n_features_in_ = sum(views.widths)
        self.network_ = network
        self.anchors_ = anchors
        self.anchor_labels_ = labels
        self.voters_ = voters
        self._predictor = Predictor(network, anchors, labels, voters)


def _some(n: int, most: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).permutation(n)[:most]


def _network(
    settings: Settings, widths: Sequence[int], generator: torch.Generator | None
) -> Network:
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


def as_seed(random_state: int | np.random.RandomState | None) -> int:
    """One whole number from what scikit-learn takes as ``random_state``."""
    if random_state is None:  # fresh, and the global generator stays untouched
        return int(np.random.SeedSequence().generate_state(1)[0] >> 1)
    if isinstance(random_state, int | np.integer):
        if not 0 <= random_state < 1 << 63:
            raise ValueError(
                f"random_state must be at least 0 and below 2^63; got {random_state}"
            )
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def _listed(views: list[tuple[str, int]]) -> str:
    return ", ".join(f"{name} ({width} columns)" for name, width in views)


def _warn_if_collapsed(labels: NDArray[np.int64], settings: Settings) -> None:
    used = len(np.unique(labels))
    if used == settings.n_clusters:
        return
    if settings.refine:
        cure = 'ask for fewer clusters, or cluster_sizes="balanced"'
    else:
        cure = (
            f"try a larger gamma (now {settings.gamma:g}), a larger batch_size (now "
            f"{settings.batch_size}), more steps (now {settings.steps}), another "
            "random_state, or fewer clusters"
        )
        if settings.normalize == "none":
            cure = (
                "the features were taken as they are, and views or columns of "
                f'different scales end so: try normalize="standard" first; else {cure}'
            )
    warnings.warn(
        f"only {used} of {settings.n_clusters} clusters hold samples; {cure}",
        CollapseWarning,
        stacklevel=3,
    )
