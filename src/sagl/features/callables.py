"""Any Python function of a list of samples as a backbone."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import torch
from torch import Tensor

from sagl.features.pretrained import check_features, describe_model, optional_module
from sagl.features.samples import Kind

if TYPE_CHECKING:
    from sagl.features.backbones import Backbone

__all__ = ["FunctionBackbone", "as_backbone", "load_callable"]

# From decoded samples (pictures of Pillow in RGB, or strings) to an array (b, dim).
Function = Callable[[list[Any]], Any]

_HOW = "FunctionBackbone(function, kind='image'), or module:function#image by name"
_NOT_FINITE = "some features are infinite or not numbers"


class FunctionBackbone:
    """A function of a list of samples, and what it embeds.

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
        function: Function,
        kind: Kind,
        dim: int | None = None,
        *,
        name: str | None = None,
        prepare: Callable[[Any], Any] | None = None,
    ) -> None:
        if not callable(function):
            raise ValueError(f"a backbone must be a function; got {function!r}")
        if kind not in get_args(Kind):
            raise ValueError(f"kind must be 'image' or 'text'; got {kind!r}")
        self.name = name or _path_of(function)
        self.kind: Kind = kind
        self._function: Function | None = function
        self._prepare = prepare
        self._dim: int | None = None
        self.dim = dim if dim is not None else self._probe()
        self._dim = self.dim

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_function": None}

    def prepare(self, sample: Any) -> Any:
        """The sample itself, unless ``prepare`` was given."""
        return sample if self._prepare is None else self._prepare(sample)

    def embed(self, prepared: Sequence[Any]) -> Tensor:
        """Features of a batch, (b, dim), float32, on the CPU."""
        if self._function is None:
            raise RuntimeError(f"{self.name}: this copy was made without the function")
        try:
            with torch.inference_mode():
                features = _as_tensor(self._function(list(prepared)))
            check_features(features, len(prepared), self._dim)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{self.name}: {' '.join(str(error).split())}") from None
        return features

    def describe(self) -> dict[str, Any]:
        """Like those of other backbones; the revision is a checksum of the source."""
        return describe_model(
            "python",
            self.name.partition("#")[0],
            _digest_source(self._function),
            self.dim,
            kind=self.kind,
            preprocessing={"prepare": self._prepare and _path_of(self._prepare)},
            library=_library(self._function),
        )

    def _probe(self) -> int:
        sample: Any = "a text"
        if self.kind == "image":
            sample = optional_module("PIL.Image").new("RGB", (64, 64), (99, 120, 80))
        features = self.embed([self.prepare(sample)])
        if not features.isfinite().all():
            raise ValueError(f"{self.name}: {_NOT_FINITE}")
        return features.shape[1]


def load_callable(path: str, *, name: str, side: Kind | None = None) -> Backbone:
    """The backbone that ``module:function`` names."""
    module_name, _, attribute = path.partition(":")
    with _current_directory_importable():
        try:
            target: Any = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
                raise ValueError(f"{name}: {error}") from None
            raise ValueError(
                f"{name}: no module {error.name!r}, here or installed; a backbone is "
                "hf:ID, timm:NAME, npy:FILE, module:function or a short name (sagl "
                "backbones lists them)"
            ) from None
    for part in attribute.split("."):
        if not hasattr(target, part):
            raise ValueError(f"{name}: {module_name} has no {attribute!r}")
        target = getattr(target, part)
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
        raise ValueError(f"{shown}: say whether it embeds images or texts: {_HOW}")
    return FunctionBackbone(target, kind, getattr(target, "dim", None), name=name)


@contextmanager
def _current_directory_importable() -> Iterator[None]:
    """As ``python -m`` would have it; the command ``sagl`` alone would not."""
    here = str(Path.cwd())
    added = here not in sys.path and "" not in sys.path
    if added:
        sys.path.append(here)
    try:
        yield
    finally:
        if added:
            sys.path.remove(here)


def _as_tensor(features: Any) -> Tensor:
    if isinstance(features, Tensor):
        return features.detach().float().cpu().clone()
    array = np.asarray(features)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"features of type {array.dtype}; expected real numbers")
    return torch.from_numpy(array.astype(np.float32))


def _path_of(function: Any) -> str:
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}:{named.__qualname__}"


def _digest_source(function: Any) -> str | None:
    """A checksum of the file that a function is written in; None if there is none."""
    named = function if hasattr(function, "__qualname__") else type(function)
    try:
        file = inspect.getsourcefile(inspect.unwrap(named))
        source = Path(file).read_bytes() if file else None
    except (TypeError, OSError):
        return None
    return None if source is None else hashlib.sha256(source).hexdigest()


def _library(function: Any) -> str | None:
    """The distribution that a function comes with, and its version."""
    module = getattr(function, "__module__", None) or type(function).__module__
    package = module.partition(".")[0]
    for distribution in metadata.packages_distributions().get(package, []):
        return f"{distribution} {metadata.version(distribution)}"
    return None
