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
        return loaded


_SAGL = "sagl.estimator:SAGL"
_METHODS = (
    Method("sagl", _SAGL, "SAGL"),
    Method("sagl-n", _SAGL, "SAGL_n (network alone)", {"refine": False}),
    Method(
        "sagl-i", _SAGL, "SAGL_i (no graph)", {"refine": False, "graph": "identity"}
    ),
    Method(
        "sagl-b", _SAGL, "SAGL_b (dense graph)", {"refine": False, "graph": "dense"}
    ),
    Method("sagl-w", _SAGL, "SAGL_w (no gate)", {"recipe": "paper", "gate": "none"}),
    Method("sagl-paper", _SAGL, "SAGL (paper)", {"recipe": "paper"}),
    Method("kmeans", "sagl.baselines.kmeans:KMeans", "k-means"),
    Method("turtle", "sagl.baselines.turtle:TURTLE", "TURTLE"),
    Method("msrl", "sagl.baselines.msrl:MSRL", "MSRL"),
    Method("cpp", "sagl.baselines.cpp:CPP", "CPP (PRR)"),
    Method("temi", "sagl.baselines.temi:TEMI", "TEMI"),
    Method("scan", "sagl.baselines.scan:SCAN", "SCAN"),
    Method("icce", "sagl.baselines.icce:ICCE", "ICCE (ensemble of TEMI)"),
    Method("gmm", "sagl.baselines.gmm:GMM", "Gaussian mixture"),
    Method("spectral", "sagl.baselines.spectral:Spectral", "spectral"),
    Method("leiden", "sagl.baselines.leiden:Leiden", "Leiden"),
    Method("umap-hdbscan", "sagl.baselines.umap_hdbscan:UMAPHDBSCAN", "UMAP + HDBSCAN"),
    Method("evoc", "sagl.baselines.evoc:EVoC", "EVoC"),
    Method(
        "linear-probe",
        "sagl.baselines.linear_probe:LinearProbe",
        "linear probe",
        needs=("labels",),
        seeded=False,
    ),
    Method(
        "zero-shot",
        "sagl.baselines.zero_shot:ZeroShot",
        "zero-shot",
        needs=("class names",),
        seeded=False,
    ),
    Method(
        "lafter",
        "sagl.baselines.lafter:LaFTer",
        "LaFTer (classifier)",
        needs=("class names",),
    ),
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
    """A method by its name, or by ``module:Class`` without being registered."""
    if name in METHODS:
        return METHODS[name]
    if ":" in name:
        return Method(name, name, name.partition(":")[2])
    raise ValueError(
        f"no method {name!r}; there are {', '.join(METHODS)}, or module:Class"
    )
