"""Any Python function of a list of samples as a backbone.

Models of other libraries become backbones by the same class: what it takes to prepare a
sample, and a function of prepared samples.
"""

from __future__ import annotations

import importlib
import inspect
import operator
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import torch
from torch import Tensor

from sagl.environment import optional_module
from sagl.features.samples import Kind
from sagl.storage import sha256

if TYPE_CHECKING:
    from sagl.features.backbones import Backbone

__all__ = ["FunctionBackbone", "as_backbone", "load_callable"]


class FunctionBackbone:
    """A function of a list of samples, and what it embeds.

    Copies made by pickling lack the function: they prepare samples in workers and
    cannot embed them.

    Parameters
    ----------
    function : callable
        Gets a list of pictures (``PIL.Image.Image`` in RGB) or of strings and returns
        an array or a tensor with one row for each. It should give a sample the same
        row in any company and on every run.
    kind : {"image", "text"}
    dim : int, optional
        Width of the rows; by default the function is asked with one small sample.
    name : str, optional
        By default the module and the name of the function.
    prepare : callable, optional
        Runs on one sample in worker processes; the function then gets what it returned.
        It must be possible to pickle it.
    about : mapping, optional
        What ``describe`` says of the model; by default what is known of the function.

    Examples
    --------
    >>> from sagl.features.backbones import FunctionBackbone
    >>> def lengths(texts):
    ...     return [[len(text), text.count(" ")] for text in texts]
    >>> backbone = FunctionBackbone(lengths, kind="text")
    >>> backbone.dim
    2
    >>> backbone.embed([backbone.prepare("a b"), backbone.prepare("abcd")])
    tensor([[3., 1.],
            [4., 0.]])
    """

    def __init__(
        self,
        function: Callable[[list[Any]], Any],
        kind: Kind,
        dim: int | None = None,
        *,
        name: str | None = None,
        prepare: Callable[[Any], Any] | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        if not callable(function):
            raise ValueError(f"a backbone must be a function; got {function!r}")
        if kind not in get_args(Kind):
            raise ValueError(f"kind must be 'image' or 'text'; got {kind!r}")
        self.name = name or _path_of(function)
        self.kind: Kind = kind
        self.dim = dim or 0
        self._function: Callable[[list[Any]], Any] | None = function
        self._prepare = prepare
        self._about = about
        if dim is None:
            self.dim = self._probe()
        if labels := (about or {}).get("labels"):
            warnings.warn(
                f"{self.name} was trained with labels ({labels}): the classes it was "
                "taught may overlap with those looked for, and then the result is not "
                "label-free",
                stacklevel=3,
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_function": None}

    def prepare(self, sample: Any) -> Any:
        """The sample itself, unless ``prepare`` was given."""
        return sample if self._prepare is None else self._prepare(sample)

    def embed(self, prepared: Sequence[Any]) -> Tensor:
        """Features of a batch, (b, dim), float32, on the CPU."""
        if self._function is None:
            raise RuntimeError(f"{self.name}: this copy was made without the weights")
        try:
            with torch.inference_mode():
                features = self._function(list(prepared))
            features = _as_tensor(features)
            rows, width = len(prepared), self.dim or "width"
            fits = features.ndim == 2 and len(features) == rows and features.shape[1]
            if not fits or features.shape[1] != (self.dim or features.shape[1]):
                raise ValueError(
                    f"features of shape {tuple(features.shape)} for {rows} samples; "
                    f"expected ({rows}, {width})"
                )
        except (ValueError, TypeError) as error:
            raise ValueError(f"{self.name}: {' '.join(str(error).split())}") from None
        return features

    def describe(self) -> dict[str, Any]:
        """Like those of other backbones; the revision is a checksum of the source."""
        about = self._about or {
            "source": "python",
            "model": self.name.partition("#")[0],
            "revision": _digest_source(self._function),
            "preprocessing": {"prepare": self._prepare and _path_of(self._prepare)},
            "library": _library(self._function),
        }
        return describe_model(dim=self.dim, kind=self.kind, **about)

    def _probe(self) -> int:
        features = self.embed([self.prepare(small_sample(self.kind))])
        if not features.isfinite().all():
            raise ValueError(f"{self.name}: some features are infinite or not numbers")
        return features.shape[1]


def small_sample(kind: Kind) -> Any:
    """A sample to try a backbone with."""
    if kind == "text":
        return "a text"
    return optional_module("PIL.Image").new("RGB", (64, 64), (99, 120, 80))


def describe_model(
    source: str, model: str, revision: str | None, dim: int, **more: Any
) -> dict[str, Any]:
    """What a backbone says of itself, as JSON, whatever its source."""
    unknown = ("kind", "pooling", "preprocessing", "licence", "labels", "library")
    return {
        "source": source,
        "model": model,
        "revision": revision,
        "dim": dim,
        "normalized": False,
        **dict.fromkeys(unknown),
        **more,
    }


def run_frozen(compute: Callable[[], Tensor], device: torch.device) -> Tensor:
    """What a network computes; on CUDA products are in half precision.

    Where that overflows, all is done again in full precision.
    """
    half = device.type == "cuda"
    with torch.autocast(device.type, torch.float16, enabled=half):
        features = compute().float()
    if half and not features.isfinite().all():
        features = compute().float()
    return features


def load_callable(path: str, *, name: str, side: Kind | None = None) -> Backbone:
    """The backbone that ``module:function`` names."""
    module, _, attribute = path.partition(":")
    # As ``python -m`` would have it; the command ``sagl`` alone would not.
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise ValueError(f"{name}: {error}") from None
        from sagl.features.backbones import FORMS

        raise ValueError(
            f"{name}: no module {error.name!r}, here or installed; a backbone is "
            f"{FORMS}"
        ) from None
    try:
        target = operator.attrgetter(attribute)(imported)
    except AttributeError:
        raise ValueError(f"{name}: {module} has no {attribute!r}") from None
    return as_backbone(target, name=name, side=side)


def as_backbone(
    target: Any, *, name: str | None = None, side: Kind | None = None
) -> Backbone:
    """A backbone from an object, a class that makes one, or a function."""
    if isinstance(target, type):
        target = target()
    if all(hasattr(target, part) for part in ("prepare", "embed", "describe", "dim")):
        backbone: Backbone = target
        if side is not None and side != backbone.kind:
            raise ValueError(f"{name}: it embeds {backbone.kind}s; leave out #{side}")
        return backbone
    shown = name or repr(target)
    if not callable(target):
        raise ValueError(f"{shown}: is no function and no backbone")
    kind = side or getattr(target, "kind", None)
    if kind is None:
        raise ValueError(
            f"{shown}: say whether it embeds images or texts: "
            "FunctionBackbone(function, kind='image'), or module:function#image by name"
        )
    return FunctionBackbone(target, kind, getattr(target, "dim", None), name=name)


def _as_tensor(features: Any) -> Tensor:
    if isinstance(features, Tensor):
        return features.detach().float().cpu().clone()  # that autograd may use
    array = np.asarray(features)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"features of type {array.dtype}; expected real numbers")
    return torch.from_numpy(array.astype(np.float32))


def _named(function: Any) -> Any:
    """A function or class: of another object that can be called, its class."""
    return function if hasattr(function, "__qualname__") else type(function)


def _path_of(function: Any) -> str:
    named = _named(function)
    return f"{named.__module__}:{named.__qualname__}"


def _digest_source(function: Any) -> str | None:
    """A checksum of the file that a function is written in; None if there is none."""
    try:
        file = inspect.getsourcefile(inspect.unwrap(_named(function)))
        return sha256(Path(file)) if file else None
    except (TypeError, OSError):
        return None


def _library(function: Any) -> str | None:
    """The distribution that a function comes with, and its version."""
    module = getattr(function, "__module__", None) or type(function).__module__
    package = module.partition(".")[0]
    for distribution in metadata.packages_distributions().get(package, []):
        return f"{distribution} {metadata.version(distribution)}"
    return None
