"""The methods that ``sagl compare`` knows. A new one is a file and a line here."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any, Literal

Need = Literal["labels", "class names"]


@dataclass(frozen=True)
class Method:
    """A row of the table: a class, the parameters it is run with, what it needs.

    Attributes
    ----------
    name : str
        As the user writes it after ``--methods``.
    path : str
        ``module:Class`` of a :class:`~sagl.baselines.base.Baseline`, or of anything
        with ``fit``, ``predict`` and ``labels_`` whose constructor takes
        ``n_clusters`` and ``random_state``.
    title : str
        As the table shows it.
    params : dict
        Parameters other than the defaults of the class.
    needs : tuple
        What it needs beyond the views: ``"labels"`` marks a supervised method.
    seeded : bool
        False where every seed gives the same result, so that one run is enough.

    Examples
    --------
    >>> from sagl.baselines import Method
    >>> Method("mine", "my_module:Mine", params={"steps": 10}).params
    {'steps': 10}
    """

    name: str
    path: str
    title: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    needs: tuple[Need, ...] = ()
    seeded: bool = True

    @property
    def supervised(self) -> bool:
        return "labels" in self.needs

    def load(self) -> type[Any]:
        """The class, imported when it is needed."""
        module, _, name = self.path.partition(":")
        try:
            loaded: type[Any] = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise ValueError(
                f"method {self.name}: no class {self.path!r} ({error})"
            ) from None
        if not all(
            callable(getattr(loaded, name, None)) for name in ("fit", "predict")
        ):
            raise ValueError(
                f"method {self.name}: {self.path!r} is no class with fit and predict"
            )
        return loaded


def _sagl(name: str, title: str, **params: Any) -> Method:
    return Method(name, "sagl.estimator:SAGL", title, params)


def _peer(path: str, title: str, needs: Need | None = None, **more: Any) -> Method:
    name = path.partition(":")[0].replace("_", "-")
    wanted = () if needs is None else (needs,)
    return Method(name, f"sagl.baselines.{path}", title, needs=wanted, **more)


_METHODS = (
    _sagl("sagl", "SAGL"),
    _sagl("sagl-n", "SAGL_n (network alone)", refine=False),
    _sagl("sagl-i", "SAGL_i (no graph)", refine=False, graph="identity"),
    _sagl("sagl-b", "SAGL_b (dense graph)", refine=False, graph="dense"),
    _sagl("sagl-w", "SAGL_w (no gate)", recipe="paper", gate="none"),
    _sagl("sagl-paper", "SAGL (paper)", recipe="paper"),
    _peer("kmeans:KMeans", "k-means"),
    _peer("turtle:TURTLE", "TURTLE"),
    _peer("msrl:MSRL", "MSRL"),
    _peer("cpp:CPP", "CPP (PRR)"),
    _peer("temi:TEMI", "TEMI"),
    _peer("scan:SCAN", "SCAN"),
    _peer("icce:ICCE", "ICCE (ensemble of TEMI)"),
    _peer("gmm:GMM", "Gaussian mixture"),
    _peer("spectral:Spectral", "spectral"),
    _peer("leiden:Leiden", "Leiden"),
    _peer("umap_hdbscan:UMAPHDBSCAN", "UMAP + HDBSCAN"),
    _peer("evoc:EVoC", "EVoC"),
    _peer("linear_probe:LinearProbe", "linear probe", "labels", seeded=False),
    _peer("zero_shot:ZeroShot", "zero-shot", "class names", seeded=False),
    _peer("lafter:LaFTer", "LaFTer (classifier)", "class names"),
)
METHODS: dict[str, Method] = {method.name: method for method in _METHODS}


def register(method: Method) -> Method:
    """Make a method known under its name.

    >>> from sagl.baselines import Method, register
    >>> register(Method("agglomerative", "my_package.methods:Agglomerative")).name
    'agglomerative'
    """
    METHODS[method.name] = method
    return method


def find_method(name: str) -> Method:
    """A method by its name, or by ``module:Class`` without being registered.

    Examples
    --------
    >>> from sagl.baselines import find_method
    >>> find_method("my_module:Mine").path
    'my_module:Mine'
    """
    if name in METHODS:
        return METHODS[name]
    if ":" in name:
        return Method(name, name, name.partition(":")[2])
    raise ValueError(
        f"no method {name!r}; there are {', '.join(METHODS)}, or module:Class"
    )
