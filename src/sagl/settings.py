"""From the parameters a user gave to the complete settings of one run."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Annotated, Any

import numpy as np
from sklearn.utils import check_random_state

from sagl.checks import check_choice, flag, integer, number
from sagl.nn.gate import GateForm
from sagl.nn.network import GateInput, GraphForm
from sagl.nn.objective import (
    AlignmentForm,
    DiversityCount,
    Objective,
    PseudoLabelForm,
)
from sagl.recipes import Recipe, get_recipe
from sagl.schema import AtLeast0, Count, Positive, Since, Within
from sagl.search.config import SearchConfig
from sagl.search.unequal import ClusterSizes
from sagl.training.feed import Scales
from sagl.training.sampler import batches_per_epoch

# A batch of about six samples per cluster measures best: with far fewer the diversity
# term starves, with more the graph grows too sure too early.
_BATCH_PER_CLUSTER = 6
_ANCHOR_BATCHES = 5
_MIN_ANCHORS = 2000
# Of z, with a search: in fewer directions views with much local information lose it.
_WIDTH = 64

_CHOICES = {
    "graph": GraphForm,
    "gate": GateForm,
    "gate_input": GateInput,
    "pseudo_label": PseudoLabelForm,
    "alignment": AlignmentForm,
    "normalize": Scales,
    "cluster_sizes": ClusterSizes,
}


@dataclass(frozen=True)
class Settings:
    """Every number and choice of one run, nothing left open; limits are of files."""

    n_clusters: Annotated[int, Within(2, 1 << 31)]
    gamma: AtLeast0
    beta: AtLeast0
    learning_rate: AtLeast0
    batch_size: Positive
    steps: Positive
    dropout: Annotated[float, Within(0, 1 - 2**-53)]
    alpha: Annotated[float, Within(1)]
    graph: GraphForm
    gate: GateForm
    gate_input: GateInput
    pseudo_label: PseudoLabelForm
    alignment: AlignmentForm
    diversity_count: DiversityCount
    normalize: Scales
    refine: bool
    n_restarts: Positive
    self_loops: bool
    n_anchors: Positive
    tolerance: AtLeast0
    patience: Positive
    seed: Count
    # As runs have it that do not say.
    cluster_sizes: Annotated[ClusterSizes, Since(5)] = "balanced"
    # Of z; None is the paper's, one per cluster.
    width: Annotated[int | None, Within(1, 1 << 31), Since(5)] = None
    search: Annotated[SearchConfig, Since(5)] = field(default_factory=SearchConfig)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def objective(self) -> Objective:
        """The loss of the training."""
        return Objective(
            self.gamma,
            self.beta,
            self.pseudo_label,
            self.alignment,
            self.diversity_count,
        )


def resolve(params: dict[str, Any], n_samples: int, seed: int) -> Settings:
    """Check the parameters of an estimator and fill in what they leave open."""
    recipe = get_recipe(params["recipe"], params["refine"])
    if n_samples < 2:
        raise ValueError(f"n_samples={n_samples} is too few to cluster; give more")
    n_clusters = integer("n_clusters", params["n_clusters"], 2)
    if n_samples < n_clusters:
        raise ValueError(
            f"n_samples={n_samples} is fewer than n_clusters={n_clusters}; "
            "ask for fewer clusters or give more samples"
        )
    batch_size = params["batch_size"]
    if batch_size == "auto":
        batch_size = max(recipe.least_batch, _BATCH_PER_CLUSTER * n_clusters)
    batch_size = min(integer("batch_size", batch_size, 2), n_samples)
    chosen = _with_recipe(params, recipe)
    refine = flag("refine", chosen["refine"])
    n_anchors, search = params["n_anchors"], SearchConfig.of(params["search"])
    if n_anchors == "auto" and refine:
        n_anchors = search.rows_of(n_clusters)
    elif n_anchors == "auto":
        n_anchors = max(_MIN_ANCHORS, _ANCHOR_BATCHES * batch_size)
    for name, choices in _CHOICES.items():
        check_choice(name, chosen[name], choices)
    return Settings(
        n_clusters=n_clusters,
        gamma=number("gamma", chosen["gamma"], 0),
        beta=number("beta", chosen["beta"], 0),
        learning_rate=number("learning_rate", chosen["learning_rate"], 0, strict=True),
        batch_size=batch_size,
        steps=_steps(chosen, recipe, batches_per_epoch(n_samples, batch_size)),
        dropout=number("dropout", chosen["dropout"], 0, below=1),
        alpha=number("alpha", chosen["alpha"], 1),
        n_anchors=min(integer("n_anchors", n_anchors, 1), n_samples),
        tolerance=number("tolerance", chosen["tolerance"], 0),
        patience=integer("patience", chosen["patience"], 1),
        refine=refine,
        width=_width(params["width"], n_clusters, refine),
        n_restarts=integer("n_restarts", chosen["n_restarts"], 1),
        self_loops=flag("self_loops", chosen["self_loops"]),
        diversity_count=recipe.diversity_count,
        seed=seed,
        search=search,
        **{name: chosen[name] for name in _CHOICES},
    )


def without_effect(settings: Settings) -> dict[str, str]:
    """Parameters that decide nothing beside these settings, and why."""
    idle: dict[str, str] = {}
    if settings.refine:
        reason = "a search finds the clusters, and its graph is trained for all steps"
        idle |= dict.fromkeys(("tolerance", "patience"), reason)
    else:
        idle["cluster_sizes"] = "there is no search (refine=False)"
    if settings.graph != "sparse":
        idle["alpha"] = f"graph={settings.graph!r} is not sparse"
    if settings.graph == "identity":
        of_graph = ("gate", "gate_input", "self_loops", "dropout")
        idle |= dict.fromkeys(of_graph, "graph='identity' joins no samples")
    elif settings.gate == "none":
        idle["gate_input"] = "gate='none'"
    return idle


def _width(width: Any, n_clusters: int, refine: bool) -> int | None:
    if not refine:
        if width not in ("auto", "C"):
            raise ValueError(
                f"width={width!r} needs refine=True: without a search z is what says "
                'the clusters, and as wide as there are clusters ("C")'
            )
        return None
    if width == "auto":
        return _WIDTH
    return n_clusters if width == "C" else integer("width", width, 1)


def _with_recipe(params: dict[str, Any], recipe: Recipe) -> dict[str, Any]:
    chosen = dict(params)
    for name in (each.name for each in fields(recipe)):
        if name not in ("epochs", "steps") and chosen.get(name) is None:
            chosen[name] = getattr(recipe, name)
    return chosen


def _steps(chosen: dict[str, Any], recipe: Recipe, per_epoch: int) -> int:
    epochs, steps = chosen["epochs"], chosen["steps"]
    if epochs is not None and steps is not None:
        raise ValueError(
            f"give epochs or steps, not both (epochs={epochs!r}, steps={steps!r})"
        )
    if epochs is None and steps is None:
        epochs, steps = recipe.epochs, recipe.steps
    if epochs is not None:
        return integer("epochs", epochs, 1) * per_epoch
    return integer("steps", steps, 1)


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
