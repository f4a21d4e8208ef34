"""What all peers share: views in, labels out, seeds, progress, save and load.

A method is one class in one file. It says how it learns (``_fit``) and how it scores a
block of samples against its clusters (``_scores``); everything it has learned lives in
a dictionary of tensors (``state_``), so that saving, loading, prediction in any company
and curves of quality over time are the same for all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from sagl.baselines.features import State
from sagl.baselines.saved import SavedMethod, read_method, write_method
from sagl.device import pick_device
from sagl.estimator import as_seed
from sagl.progress import progress
from sagl.run import plain
from sagl.views import Views

# Prediction takes blocks of this many rows, the last one filled up, so that every
# reduction has one shape and a sample's answer does not depend on its company.
_BLOCK_ROWS = 256
_NOT_SAVED = ("device", "verbose")


class Watch:
    """Looks at a method while it learns: labels of some samples at some steps.

    The clock stands still while it looks. ``curve`` holds a pair of seconds and labels
    for each look.

    Parameters
    ----------
    views : Views
        Samples to label.
    looks : int, default=12
        How many looks, at steps that grow geometrically; the end of the fit, which
        needs no watch, counts as one.
    """

    def __init__(self, views: Views, looks: int = 12) -> None:
        self.views = views
        self.looks = looks
        self.curve: list[tuple[float, NDArray[np.int64]]] = []
        self.paused = 0.0  # seconds spent looking
        self._start = time.perf_counter()

    def begin(self) -> None:
        """Start the clock."""
        self._start = time.perf_counter()

    def due(self, step: int, total: int) -> bool:
        """Whether to look after ``step`` of ``total`` steps, but for the last."""
        return step < total and step in _moments(total, self.looks)

    def look(self, predict: Callable[[Views], NDArray[np.int64]]) -> None:
        """Label the samples with the clock stopped."""
        now = time.perf_counter()
        self.curve.append((now - self._start - self.paused, predict(self.views)))
        self.paused += time.perf_counter() - now


@lru_cache
def _moments(total: int, looks: int) -> frozenset[int]:
    return frozenset(round(total ** (i / looks)) for i in range(1, looks))


class Baseline(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Base of all peers; see a small one such as ``kmeans.py`` for how to write one.

    A subclass sets its parameters in ``__init__`` (``n_clusters`` first, then by
    keyword, with ``random_state``, ``view_sizes``, ``device`` and ``verbose`` among
    them) and implements ``_fit`` and ``_scores``.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each training sample, as ``predict`` gives it.
    state_ : dict of str to Tensor
        Everything learned.
    """

    supervised: ClassVar[bool] = False  # whether ``fit`` is given the true labels
    min_views: ClassVar[int] = 1

    n_clusters: int
    random_state: int | np.random.RandomState | None
    view_sizes: Sequence[int] | None
    device: str
    verbose: bool

    def _fit(self, views: Views, generator: torch.Generator) -> State:
        """Learn from the views, without labels, and return what was learned."""
        raise NotImplementedError

    def _scores(self, features: list[Tensor]) -> Tensor:
        """How well each sample fits each cluster, (rows, C), each row on its own.

        ``features`` are raw rows of each view in float64. Products must be taken with
        ``exact_matmul`` (sagl/nn/inference.py), which gives the same bits in any
        company.
        """
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, *, watch: Watch | None = None) -> Self:
        """Learn clusters from the views. ``y`` is ignored unless ``supervised``."""
        views = self._begin(X)
        self._watch = watch
        if watch is not None:
            watch.begin()
        generator = torch.Generator().manual_seed(self.seed_)
        self._learn(views, y, generator)
        del self._watch
        self.labels_ = self.predict(views)
        return self

    def _learn(self, views: Views, y: Any, generator: torch.Generator) -> None:
        self.state_ = self._fit(views, generator)

    def _begin(self, X: Any) -> Views:
        views = self._as_views(X)
        views.check_values()
        views.check_spread()
        n, C = len(views), self.n_clusters
        if not isinstance(C, int | np.integer) or C < 2:
            raise ValueError(
                f"n_clusters must be a whole number of at least 2; got {C!r}"
            )
        if n < C:
            raise ValueError(
                f"n_samples={n} is fewer than n_clusters={C}; ask for fewer clusters "
                "or give more samples"
            )
        if len(views.names) < self.min_views:
            raise ValueError(
                f"{type(self).__name__} needs {self.min_views} views; got "
                f"{len(views.names)} ({', '.join(views.names)})"
            )
        self.seed_ = as_seed(self.random_state)
        self.device_ = pick_device(self.device)
        self.view_names_ = views.names
        self.view_widths_ = views.widths
        self.n_features_in_ = sum(views.widths)
        return views

    def _as_views(self, X: Any) -> Views:
        return X if isinstance(X, Views) else Views(X, view_sizes=self.view_sizes)

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.int64]:
        """Fit and return the cluster of each training sample."""
        self.fit(X, y)
        return self.labels_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The cluster of each sample, whatever other samples are asked about."""
        labels = [scores.argmax(axis=1) for scores in self._blocks(X)]
        return np.concatenate(labels)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """How well each sample fits each cluster, (n_samples, C); larger is better."""
        return np.concatenate(list(self._blocks(X)))

    @torch.no_grad()
    def _blocks(self, X: Any) -> Iterator[NDArray[np.float64]]:
        if not hasattr(self, "state_"):
            check_is_fitted(self, "state_")
        views = self._as_views(X)
        given = dict(zip(views.names, views.widths, strict=True))
        fitted = dict(zip(self.view_names_, self.view_widths_, strict=True))
        if list(given.items()) != list(fitted.items()):
            raise ValueError(
                f"the model was fitted on the views {_listed(fitted)}, in this order; "
                f"got {_listed(given)}"
            )
        views.check_values()
        for block in views.blocks(_BLOCK_ROWS):
            n = len(block[0])
            features = [_filled_up(torch.from_numpy(h).double()) for h in block]
            yield self._scores(features)[:n].numpy()

    def _steps(self, total: int, state: Callable[[], State]) -> Iterator[int]:
        """Count steps from 0, with a progress bar; let a watch look in between.

        ``state`` returns what has been learned so far, in the form of ``state_``.
        """
        name = type(self).__name__
        with progress(total, name, show=self.verbose) as bar:
            for step in range(total):
                yield step
                bar.update()
                if self._watch is not None and self._watch.due(step + 1, total):
                    self.state_ = state()
                    self._watch.look(self.predict)

    def save(self, directory: str | Path) -> None:
        """Write the fitted model as a directory (safetensors and JSON, no pickle)."""
        check_is_fitted(self, "labels_")
        params = {
            name: plain(value)
            for name, value in self.get_params(deep=False).items()
            if name not in _NOT_SAVED
        }
        views = dict(zip(self.view_names_, self.view_widths_, strict=True))
        saved = SavedMethod(
            type(self).__name__, params, views, self.state_, self.labels_
        )
        write_method(Path(directory), saved)

    @classmethod
    def load(cls, directory: str | Path) -> Self:
        """Read a model that ``save`` wrote."""
        saved = read_method(Path(directory))
        if saved.method != cls.__name__:
            raise ValueError(
                f"{directory} holds a {saved.method}, not a {cls.__name__}"
            )
        model = cls(**saved.params)
        model.state_ = saved.state
        model.labels_ = saved.labels
        model.view_names_ = tuple(saved.views)
        model.view_widths_ = tuple(saved.views.values())
        model.n_features_in_ = sum(model.view_widths_)
        return model


def _filled_up(h: Tensor) -> Tensor:
    return torch.cat([h, h[:1].expand(_BLOCK_ROWS - len(h), -1)])


def _listed(views: dict[str, int]) -> str:
    return ", ".join(f"{name} ({width} columns)" for name, width in views.items())
