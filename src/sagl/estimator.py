"""SAGL: the scikit-learn front door."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from sagl.checks import number
from sagl.clusters.describe import described
from sagl.clusters.layers import labels_at
from sagl.clusters.methods import ClusterMethods
from sagl.environment import pick_device
from sagl.hub import HubMethods
from sagl.matrices import is_list_of_views, refuse_samples, refuse_second_view
from sagl.model import (
    Facts,
    Layer,
    Leaves,
    Model,
    Watch,
    counted_clusters,
    cure_of_collapse,
    fit_model,
    with_anchors,
)
from sagl.nn.inference import Answer, Voters
from sagl.nn.network import Network
from sagl.parameters import Parameters, documented
from sagl.prediction import answers, graph_of_all_views, graphs_of, most_likely
from sagl.run import damaged, read_run, write_run
from sagl.schema import plain
from sagl.search.anneal import Sizes
from sagl.search.count import ClusterCount
from sagl.search.score import Score
from sagl.search.stability import DoubtCurve
from sagl.settings import Settings, as_seed, resolve
from sagl.views import Views

# The cluster of samples that are too doubtful to have one.
DOUBTFUL = -1
# What belongs to one fit on one machine and not to the model.
_NOT_SAVED = ("callbacks", "checkpoint_dir", "device", "verbose")


class CollapseWarning(UserWarning):
    """Some clusters hold no sample."""


class UncertainCountWarning(UserWarning):
    """The data do not tell how many clusters there are."""


@documented
class SAGL(
    HubMethods,
    ClusterMethods,
    TransformerMixin,  # type: ignore[misc]
    ClusterMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
    Parameters,
):
    """Sparse Attention Graph Learning: clusters from several views, without labels.

    Per view a linear map, bilinear attention and an exact α-entmax projection yield a
    sparse graph of samples. A search without labels finds clusters; the graph learns
    them, and new samples are predicted by linear heads and by whom they attend to. A
    parameter left at None takes the value of the recipe.

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
    view_names_, view_widths_, missing_ : tuple
        The views seen in fit; how many samples miss each of them, if any do.
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
    names_ : dict of int to str
        What clusters are called, of those that have a name; see ``rename``.
    ids_ : sequence of str
        What the training samples are called, if the run says so.
    layers_ : tuple of Layer
        With ``refine``: partitions from coarse to fine, each inside the next; see
        ``predict``.
    leaves_ : Leaves
        Clusters of anchors and training samples in the finest of them.
    corrections_, stream_, update_ : Corrected, Stream, Update
        What people said (``refit``), samples that came later, and what these changed.
    facts_ : Facts
        What ``outliers``, ``disagreement`` and ``duplicates`` say of training samples.

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

    labels_: NDArray[np.int64]
    confidence_: NDArray[np.float64]
    history_: list[dict[str, Any]]
    n_steps_: int
    settings_: Settings
    view_names_: tuple[str, ...]
    view_widths_: tuple[int, ...]
    network_: Network
    anchors_: list[torch.Tensor]
    anchor_labels_: torch.Tensor | None
    voters_: Voters | None
    score_: Score
    doubt_: DoubtCurve
    view_weights_: tuple[float, ...]
    cluster_sizes_: Sizes
    cluster_count_: ClusterCount
    facts_: Facts
    layers_: tuple[Layer, ...]
    leaves_: Leaves
    names_: dict[int, str]
    ids_: Sequence[str]

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn clusters from the views. ``y`` is ignored: labels play no part."""
        refuse_second_view(y)
        views = self._as_views(X, reset=True)
        settings = self.resolved(len(views))
        views.check_values(missing=settings.refine)
        views.check_spread()
        views.check_joined()
        count = None
        if self.n_clusters == "auto":
            count = counted_clusters(views, settings.seed, self._watch(), self.device)
            if not count.sure:
                text = f"n_clusters='auto': {count.in_words()}"
                warnings.warn(text, UncertainCountWarning, stacklevel=2)
            counted = self.resolved(len(views), count.best)
            settings = replace(counted, seed=settings.seed)
        model = fit_model(views, settings, pick_device(self.device), self._watch())
        self._take(described(replace(model, cluster_count=count), views))
        used = len(np.unique(self.labels_))
        if used < settings.n_clusters:
            text = f"only {used} of {settings.n_clusters} clusters hold samples"
            cure = cure_of_collapse(settings)
            warnings.warn(f"{text}; {cure}", CollapseWarning, stacklevel=2)
        return self

    def _watch(self) -> Watch:
        place = None if self.checkpoint_dir is None else Path(self.checkpoint_dir)
        return Watch(
            tuple(self.callbacks or ()), self.verbose, place, self.checkpoint_seconds
        )

    def _take(self, model: Model) -> None:
        """Have the model's parts as attributes; those that it does not have go."""
        self._model = model
        self.n_clusters_ = model.settings.n_clusters
        self.n_features_in_ = sum(model.view_widths)
        for field in fields(model):
            value = getattr(model, field.name)
            if value is None and field.name not in ("anchor_labels", "voters"):
                self.__dict__.pop(f"{field.name}_", None)  # of an earlier fit
            else:
                setattr(self, f"{field.name}_", value)

    def adopt(self, network: Network, settings: Settings, views: Views) -> Self:
        """Predict with this network from now on; anchors are drawn from the views.

        A callback may use it to see what the network of a recipe without a search would
        predict in the middle of training.
        """
        self._take(with_anchors(network, settings, views))
        return self

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.int64]:
        """Fit and return the cluster of each training sample."""
        return self.fit(X, y).labels_

    def predict(
        self, X: Any, *, agreement: float | None = None, layer: int | None = None
    ) -> NDArray[np.int64]:
        """The cluster of each sample, whatever other samples are asked about.

        With ``agreement``, say 0.9, doubtful samples get −1: those below the confidence
        from which on training samples, left out of the fit, keep their cluster so often
        when the search starts elsewhere. With ``layer``, the number of clusters of one
        of ``layers_``, the cluster in that layer; a coarser one is the one that holds
        the cluster.
        """
        labels, confidence = self.predict_with_confidence(X)
        if layer is not None:
            labels = labels_at(self._model, layer, self.check_views(X), labels)
        if agreement is not None:
            labels[confidence < self.threshold(agreement)] = DOUBTFUL
        return labels

    def predict_with_confidence(
        self, X: Any
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Cluster of each sample and its probability."""
        views = self.check_views(X)
        return most_likely(self._model.predictor, views)

    def threshold(self, agreement: float) -> float:
        """The confidence below which a sample is doubtful; see ``predict``."""
        check_is_fitted(self)
        wanted = number("agreement", agreement, 0, strict=True, most=1)
        if not hasattr(self, "doubt_"):
            raise ValueError(
                "nothing is known about the stability of this run: fit with "
                "refine=True, or with n_restarts of at least 2"
            )
        most = max(self.doubt_.agreement)
        if wanted > most:
            text = f"agreement={wanted:g} is reached at no confidence (the most is "
            text += f"{most:.2f}): every sample is doubtful; ask for less"
            warnings.warn(text, stacklevel=3)
        return self.doubt_.threshold(wanted)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probability of each cluster by all views, (n_samples, n_clusters)."""
        return np.concatenate([answer.q.cpu().numpy() for answer in self.answers(X)])

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Representations p of all views side by side, (n_samples, L · n_clusters).

        ``representations`` has them one by one.
        """
        rows = [torch.cat(answer.p, dim=1).cpu().numpy() for answer in self.answers(X)]
        return np.concatenate(rows)

    def representations(self, X: Any) -> dict[str, NDArray[np.float64]]:
        """Representations p by the name of the view, (n_samples, n_clusters) each."""
        parts = np.split(self.transform(X), len(self.view_names_), axis=1)
        return dict(zip(self.view_names_, parts, strict=True))

    def answers(self, X: Any) -> Iterator[Answer]:
        """Probabilities and representations together, a block of samples at a time."""
        views = self.check_views(X)
        return answers(self._model.predictor, views)

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
            self._model,
            params,
            self._model.ids if ids is None else ids,
        )

    @classmethod
    def load(cls, directory: str | Path, device: str = "auto") -> Self:
        """Read a model that ``save`` or ``sagl fit`` wrote."""
        params, model = read_run(Path(directory))
        for name in _NOT_SAVED:  # a file must not say where a fit is to write
            if name in params:
                fault = ValueError(f"{name!r} is not known in params")
                raise damaged(Path(directory), fault)
        try:
            estimator = cls(**{**params, "device": device})
        except TypeError as error:
            raise damaged(Path(directory), error) from None
        model.network.to(pick_device(device)).eval()
        estimator._take(model)
        return estimator

    def check_views(self, X: Any) -> Views:
        """``X`` as the views of the fit, joined by name, in its order."""
        check_is_fitted(self)
        views = self._as_views(X, reset=False)
        views = views.as_fitted(self.view_names_, self.view_widths_)
        views.check_values(missing=self.network_.has_heads)
        return views

    def _as_views(self, X: Any, *, reset: bool) -> Views:
        several = isinstance(X, Views | Mapping) or is_list_of_views(X)
        if several and not issparse(X):  # a DOK matrix is a mapping, too
            views = Views(X, view_sizes=self.view_sizes)
            if reset:
                self.n_features_in_ = sum(views.widths)
            return views
        refuse_samples(X)
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
