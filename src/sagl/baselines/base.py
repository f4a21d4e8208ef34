"""What all peers share: views in, labels out, seeds, progress, save and load.

A method is one class in one file. It says how it learns (``_fit``) and how it scores a
block of samples against its clusters (``_scores``); everything it has learned lives in
a dictionary of tensors (``state_``), so that saving, loading, prediction in any company
and curves of quality over time are the same for all of them. On disk a fitted model is
``method.json``, written last, and ``model.safetensors``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from sagl._version import __version__
from sagl.checks import integer, number
from sagl.environment import pick_device
from sagl.nn.neighbours import nearest_neighbours, unit_rows
from sagl.progress import progress
from sagl.run_files import Method
from sagl.schema import Positive, check, plain, read_json
from sagl.settings import as_seed
from sagl.storage import make_writable, read_tensors, sha256, write_json, write_tensors
from sagl.training.feed import Normalization, standardization
from sagl.training.sampler import epoch_batches
from sagl.views import Views

__all__ = ["Baseline", "State", "Watch"]

State = dict[str, Tensor]
FORMAT = 1
CONFIG = "method.json"
MODEL = "model.safetensors"
_LABELS = "labels"

# Prediction takes blocks of this many rows, the last one filled up, so that every
# reduction has one shape and a sample's answer does not depend on its company.
_BLOCK_ROWS = 256
_NOT_SAVED = ("device", "verbose")


class Watch:
    """Looks at a method while it learns: labels of some samples at some steps.

    The steps of its ``looks`` grow geometrically; the end of the fit, which needs no
    watch, counts as one. The clock stands still while it looks. ``curve`` holds a pair
    of seconds and labels of ``views`` for each look.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sagl import Views
    >>> from sagl.baselines import TURTLE, Watch
    >>> X, _ = make_blobs(90, n_features=6, centers=3, random_state=0)
    >>> watch = Watch(Views({"all": X}), looks=3)
    >>> model = TURTLE(n_clusters=3, steps=20).fit({"all": X}, watch=watch)
    >>> [labels.shape for seconds, labels in watch.curve]
    [(90,), (90,)]
    """

    def __init__(self, views: Views, looks: int = 12) -> None:
        self.views = views
        self.looks = looks
        self.curve: list[tuple[float, NDArray[np.int64]]] = []
        self.paused = 0.0  # seconds spent looking
        self.begin()

    def begin(self) -> None:
        """Start the clock."""
        self._start = time.perf_counter()

    def due(self, step: int, total: int) -> bool:
        """Whether to look after ``step`` of ``total`` steps, but for the last."""
        moments = (round(total ** (i / self.looks)) for i in range(1, self.looks))
        return step < total and step in moments

    def look(self, predict: Callable[[Views], NDArray[np.int64]]) -> None:
        """Label the samples with the clock stopped."""
        now = time.perf_counter()
        self.curve.append((now - self._start - self.paused, predict(self.views)))
        self.paused += time.perf_counter() - now


def whole(default: Any, least: int = 1) -> Any:
    """A parameter that ``fit`` takes as a whole number of at least ``least``."""
    return field(default=default, metadata={"check": partial(integer, least=least)})


def real(
    default: Any, least: float = 0, strict: bool = False, below: float = math.inf
) -> Any:
    """A parameter within the limits of :func:`sagl.checks.number`."""
    check = partial(number, least=least, strict=strict, below=below)
    return field(default=default, metadata={"check": check})


@dataclass(eq=False, repr=False, kw_only=True)
class Baseline(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Base of all peers; see a small one such as ``kmeans.py`` for how to write one.

    A subclass is such a dataclass, too, whose fields are its parameters (``whole`` and
    ``real`` say what ``fit`` takes); those below it has anyway. It implements ``_fit``
    and ``_scores``. Any number of views, unless a method says otherwise.

    Parameters
    ----------
    normalize : {"center", "standard", "none"}
        Of methods that have it: ``"center"`` subtracts the mean sample of a view, then
        scales so that the mean distance from it is 10; ``"standard"`` brings every
        column to mean 0 and deviation 1.
    neighbours : int
        Of methods that have it: at most; no sample gets more than n / C.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each training sample, as ``predict`` gives it.
    state_ : dict of str to Tensor
        Everything learned.

    Examples
    --------
    >>> from sagl.baselines import Baseline
    >>> class Widest(Baseline):  # clusters by the largest column
    ...     def _fit(self, views, generator):
    ...         return {"scale": torch.ones(sum(views.widths))}
    ...     def _scores(self, features):
    ...         return torch.cat(features, dim=1) * self.state_["scale"]
    >>> Widest(n_clusters=2).fit({"all": np.array([[0, 1], [2, 1], [0, 3]])}).labels_
    array([1, 0, 1])
    """

    supervised: ClassVar[bool] = False  # whether ``fit`` is given the true labels

    n_clusters: int = field(kw_only=False)
    view_sizes: Sequence[int] | None = None
    random_state: int | np.random.RandomState | None = None
    device: str = "auto"
    verbose: bool = False

    def _fit(self, views: Views, generator: torch.Generator) -> State:
        """Learn from the views, without labels, and return what was learned."""
        raise NotImplementedError

    def _scores(self, features: list[Tensor]) -> Tensor:
        """How well each sample fits each cluster, (rows, C), each row on its own.

        ``features`` are rows of each view in float64, raw unless ``_fit`` took them
        from ``_standardised``. Products must be taken with ``exact_matmul``
        (sagl/nn/inference.py), which gives the same bits in any company.
        """
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, *, watch: Watch | None = None) -> Self:
        """Learn clusters from the views. ``y`` is ignored unless ``supervised``."""
        views = self._as_views(X)
        views.check_values()
        views.check_spread()
        self._check_parameters(len(views))
        self.seed_ = as_seed(self.random_state)
        self.device_ = pick_device(self.device)
        self._set_views(dict(zip(views.names, views.widths, strict=True)))
        self._watch, self._scale = watch, State()
        if watch is not None:
            watch.begin()
        self._learn(views, y, torch.Generator().manual_seed(self.seed_))
        del self._watch, self._scale
        self.labels_ = self.predict(views)
        return self

    def _learn(self, views: Views, y: Any, generator: torch.Generator) -> None:
        self._keep(self._fit(views, generator))

    def _keep(self, learned: State) -> None:
        # Copies: what is learned may be part of something, or change further.
        copies = {name: t.detach().cpu().clone() for name, t in learned.items()}
        self.state_ = self._scale | copies

    def _standardised(
        self, views: Views, kind: Normalization, device: str | torch.device = "cpu"
    ) -> list[Tensor]:
        """Every view in float32, standardised as ``_scores`` will find it, too."""
        for i, (shift, scale) in enumerate(standardization(views, kind)):
            self._scale[f"shift.{i}"] = torch.from_numpy(shift)
            self._scale[f"scale.{i}"] = torch.from_numpy(scale)
        return standardized(resident(views, device), self._scale)

    def _in_float64(self) -> State:
        return {name: tensor.double() for name, tensor in self.state_.items()}

    def _check_parameters(self, n: int) -> None:
        integer("n_clusters", self.n_clusters, 2)
        if n < self.n_clusters:
            raise ValueError(
                f"n_samples={n} is fewer than n_clusters={self.n_clusters}; ask for "
                "fewer clusters or give more samples"
            )
        for parameter in fields(self):
            value = getattr(self, parameter.name)
            if "check" in parameter.metadata and value != parameter.default:
                parameter.metadata["check"](parameter.name, value)

    def _as_views(self, X: Any) -> Views:
        return X if isinstance(X, Views) else Views(X, view_sizes=self.view_sizes)

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.int64]:
        """Fit and return the cluster of each training sample."""
        return self.fit(X, y).labels_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The cluster of each sample, whatever other samples are asked about."""
        return np.concatenate([s.argmax(axis=1) for s in self._blocks(X)])

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """How well each sample fits each cluster, (n_samples, C); larger is better."""
        return np.concatenate(list(self._blocks(X)))

    @torch.no_grad()
    def _blocks(self, X: Any) -> Iterator[NDArray[np.float64]]:
        check_is_fitted(self, "state_")
        views = self._as_views(X).as_fitted(self.view_names_, self.view_widths_)
        views.check_values()
        for block in views.blocks(_BLOCK_ROWS):
            n = len(block[0])
            rows = np.minimum(np.arange(_BLOCK_ROWS), n - 1)  # filled up by the last
            features = [torch.from_numpy(h[rows]).double() for h in block]
            if "shift.0" in self.state_:
                features = standardized(features, self.state_)
            yield self._scores(features)[:n].numpy()

    def _steps(self, total: int, state: Callable[[], State]) -> Iterator[int]:
        """Count steps from 0, with a progress bar; let a watch look in between.

        ``state`` returns what has been learned so far, in the form of ``state_``.
        """
        with progress(total, type(self).__name__, show=self.verbose) as bar:
            for step in range(total):
                yield step
                bar.update()
                if self._watch is not None and self._watch.due(step + 1, total):
                    self._keep(state())
                    self._watch.look(self.predict)

    def save(self, directory: str | Path) -> None:
        """Write the fitted model as a directory (safetensors and JSON, no pickle)."""
        check_is_fitted(self, "labels_")
        config_file, weights = Path(directory) / CONFIG, Path(directory) / MODEL
        for file in (config_file, weights):
            if file.exists():
                raise ValueError(
                    f"{file} is there already; choose another directory or remove it"
                )
        make_writable(Path(directory))
        tensors = {f"state.{name}": tensor for name, tensor in self.state_.items()}
        write_tensors(weights, {**tensors, _LABELS: torch.from_numpy(self.labels_)})
        params = self.get_params(deep=False)
        config = {
            "format": FORMAT,
            "sagl": __version__,
            "method": type(self).__name__,
            "params": {k: plain(v) for k, v in params.items() if k not in _NOT_SAVED},
            "views": dict(zip(self.view_names_, self.view_widths_, strict=True)),
            "sha256": sha256(weights),
        }
        write_json(config_file, config)

    @classmethod
    def load(cls, directory: str | Path) -> Self:
        """Read a model that ``save`` wrote, and check that it is whole."""
        path, weights = Path(directory) / CONFIG, Path(directory) / MODEL
        if not path.is_file():
            raise ValueError(f"{directory} holds no model: there is no {CONFIG}")
        try:
            config = read_json(path)
            if config["format"] == FORMAT:
                check(Method, config)
            else:
                check(Positive, config["format"], "format")
        except (KeyError, TypeError, ValueError):
            raise ValueError(
                f"{path} is damaged: not a model's configuration"
            ) from None
        if config["format"] != FORMAT:
            raise ValueError(
                f"{directory} is of format {config['format']}; this sagl {__version__} "
                f"reads format {FORMAT}: upgrade sagl"
            )
        if config["method"] != cls.__name__:
            name = config["method"]
            raise ValueError(f"{directory} holds a {name}, not a {cls.__name__}")
        if not weights.is_file() or sha256(weights) != config["sha256"]:
            raise ValueError(
                f"{weights} is missing or damaged; restore it or fit again"
            )
        tensors, _ = read_tensors(weights)
        try:
            model = cls(**config["params"])
            model.labels_ = tensors.pop(_LABELS).numpy()
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path} is damaged: {error}") from None
        model.state_ = {name.removeprefix("state."): t for name, t in tensors.items()}
        model._set_views(config["views"])
        return model

    def _set_views(self, widths: Mapping[str, int]) -> None:
        self.view_names_, self.view_widths_ = tuple(widths), tuple(widths.values())
        self.n_features_in_ = sum(self.view_widths_)


def resident(views: Views, device: str | torch.device = "cpu") -> list[Tensor]:
    """Every view as a float32 tensor on the device."""
    rows = np.arange(len(views))
    return [torch.from_numpy(h).to(device) for h in views.take(rows)]


def standardized(features: Sequence[Tensor], state: State) -> list[Tensor]:
    """(h − shift) · scale of each view, in the precision of the features."""
    return [
        (h - state[f"shift.{i}"].to(h)) * state[f"scale.{i}"].to(h)
        for i, h in enumerate(features)
    ]


def side_by_side(features: Sequence[Tensor]) -> Tensor:
    """All views in one matrix, (n, d), each view with rows of length one.

    The cosine similarity of two rows is then the mean of those in the views.
    """
    return torch.cat([unit_rows(h) for h in features], dim=1)


def new_seed(generator: torch.Generator) -> int:
    """For what draws by a generator of its own."""
    return int(torch.randint(1 << 31, (), generator=generator))


def random_batches(
    n: int, batch_size: int, seed: int, device: torch.device
) -> Iterator[Tensor]:
    """Rows of shuffled batches without end, epoch after epoch."""
    for epoch in count():
        for rows in epoch_batches(n, batch_size, seed, epoch):
            yield torch.from_numpy(rows).to(device)


def neighbour_pairs(
    x: Tensor, wanted: int, batch_size: int, seed: int, generator: torch.Generator
) -> Iterator[Tensor]:
    """Shuffled batches without end: rows, then a random neighbour of each, (2B,).

    A neighbour is one of the ``wanted`` nearest rows of x, (n, d), by cosine.
    """
    neighbours, _ = nearest_neighbours(x, wanted)
    for rows in random_batches(len(x), batch_size, seed, x.device):
        chosen = torch.randint(wanted, (len(rows),), generator=generator)
        yield torch.cat([rows, neighbours[rows, chosen.to(x.device)]])


def usable_neighbours(wanted: int, n: int, n_clusters: int) -> int:
    """At most n / C: a cluster of average size has no more members to offer."""
    return max(1, min(wanted, n // n_clusters, n - 1))


def descend(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """One step down the gradient of the loss."""
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()


def best_head(losses: Iterable[Tensor]) -> int:
    """The head of the smallest mean loss, (H,) each, in the last steps."""
    return int(torch.stack(list(losses)).mean(dim=0).argmin())
