"""The parameters of ``SAGL``: name, type, default and help, each written once.

The estimator inherits them, and the command line and studies read them from here,
without waiting for torch.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

if TYPE_CHECKING:
    import numpy as np

    from sagl.recipes import RecipeName
    from sagl.search.config import SearchConfig
    from sagl.training.callbacks import Callback

__all__ = ["Parameter", "Parameters", "documented", "option_of", "sagl_parameters"]

_Estimator = TypeVar("_Estimator", bound="Parameters")

# What a command or a study decides itself, or what has no place on a command line.
_NOT_FREE = (
    *("n_clusters", "random_state", "device", "callbacks", "verbose", "view_sizes"),
    "search",
    *("checkpoint_dir", "checkpoint_seconds"),
)

# Under what the command line lists those that are free.
_PANELS = {
    "The clusters": ("recipe", "refine", "cluster_sizes", "n_restarts"),
    "The network": (
        *("gamma", "beta", "dropout", "alpha", "graph", "gate", "gate_input"),
        *("pseudo_label", "alignment", "normalize", "width", "self_loops", "n_anchors"),
    ),
    "The training": (
        *("learning_rate", "batch_size", "epochs", "steps", "tolerance", "patience"),
    ),
}


@dataclass(eq=False, repr=False)
class Parameters:
    """What a fit can be told. A parameter left at None takes the value of the recipe.

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
    """

    n_clusters: int | Literal["auto"]
    _: KW_ONLY
    recipe: RecipeName = "default"
    gamma: float | None = None
    beta: float | None = None
    learning_rate: float | None = None
    batch_size: int | str = "auto"
    epochs: int | None = None
    steps: int | None = None
    dropout: float | None = None
    alpha: float = 1.5
    graph: str = "sparse"
    gate: str | None = None
    gate_input: str | None = None
    pseudo_label: str | None = None
    alignment: str | None = None
    normalize: str | None = None
    refine: bool | None = None
    width: int | str = "auto"
    cluster_sizes: str = "auto"
    search: SearchConfig | dict[str, Any] | None = None
    n_restarts: int = 1
    self_loops: bool | None = None
    n_anchors: int | str = "auto"
    tolerance: float = 0.001
    patience: int = 10
    view_sizes: Sequence[int] | None = None
    checkpoint_dir: str | Path | None = None
    checkpoint_seconds: float = 30
    callbacks: Sequence[Callback] | None = None
    verbose: bool = False
    random_state: int | np.random.RandomState | None = None
    device: str = "auto"


def documented(estimator: type[_Estimator]) -> type[_Estimator]:
    """The class, with the parameters in its docstring as well."""
    parameters = (Parameters.__doc__ or "").partition("\n\n")[2].rstrip()
    text, attributes, rest = (estimator.__doc__ or "").partition("    Attributes\n")
    estimator.__doc__ = f"{text}{parameters}\n\n{attributes}{rest}"
    # So errors about its arguments call it as users do.
    vars(Parameters)["__init__"].__qualname__ = f"{estimator.__name__}.__init__"
    return estimator


class Parameter(NamedTuple):
    """One parameter."""

    name: str
    annotation: str  # e.g. "float | None"
    default: Any
    values: tuple[str, ...]  # those that there are, if the docstring lists them
    help: str
    panel: str  # under which the command line lists it

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole number, or may be one."""
        return "int" in self.annotation.split(" | ")


@cache
def sagl_parameters() -> dict[str, Parameter]:
    """Those that a user may set, by name, in their order.

    >>> sagl_parameters()["gamma"].annotation
    'float | None'
    """
    described = _described(inspect.getdoc(Parameters) or "")
    parameters = {}
    for field in fields(Parameters):
        if field.name not in _NOT_FREE:
            # A test sees to it that each has its help.
            values, text = described.get(field.name, ((), ""))
            panel = next((p for p, names in _PANELS.items() if field.name in names), "")
            parameters[field.name] = Parameter(
                field.name, str(field.type), field.default, values, text, panel
            )
    return parameters


def option_of(name: str) -> str:
    """What a parameter is called on the command line.

    >>> option_of("n_restarts"), option_of("batch_size")
    ('--restarts', '--batch-size')
    """
    return "--" + name.removeprefix("n_").replace("_", "-")


def _described(docstring: str) -> dict[str, tuple[tuple[str, ...], str]]:
    """Values and text of each parameter in a numpydoc section *Parameters*."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=\n\n\S|\Z)", docstring, re.M | re.S)
    described = {}
    for entry in re.split(r"\n(?=\S)", section[1] if section else ""):
        head, *lines = entry.split("\n")
        names, _, form = head.partition(" : ")
        listed = re.match(r"\{(.*?)\}", form)
        values = re.findall(r'"(.*?)"', listed[1]) if listed else []
        text = " ".join(line.strip() for line in lines).replace("``", "")
        for name in names.split(", "):
            described[name] = (tuple(values), text)
    return described
