"""``sagl evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sagl.cli.options import (
    JSON,
    loaded,
    option,
    print_json,
    say,
    show_table,
    takes,
)

if TYPE_CHECKING:
    from sagl.estimator import SAGL
    from sagl.features.store import Joined

_NAMES = {
    "acc": "ACC",
    "nmi": "NMI",
    "ari": "ARI",
    "ami": "AMI",
    "purity": "purity",
    "balanced_acc": "balanced ACC",
    "n_clusters": "clusters found",
}


@takes(loaded)
def evaluate(
    opened: tuple[Path, SAGL, Joined],
    labels: Path | None = option(
        None, "True labels, one per sample: they only score. By default the store's."
    ),
    protocol: str = option(
        "inductive", "inductive, transductive, or batch (depends on the order)."
    ),
    as_json: bool = JSON,
) -> None:
    """Score a run's predictions for views with known labels."""
    from sagl.evaluation.protocols import evaluate as score
    from sagl.features.split import true_labels

    run, model, given = opened
    truth = true_labels(given, labels)
    scores = score(model, given.views, truth, protocol)  # type: ignore[arg-type]
    if as_json:
        print_json(scores)
        return
    columns = {"score": scores}
    if protocol == "batch":
        columns = {"shuffled": scores, "sorted by class": scores["sorted"]}
    forms = {"n_clusters": "d"}
    rows = [
        [name, *(f"{c[key]:{forms.get(key, '.4f')}}" for c in columns.values())]
        for key, name in _NAMES.items()
    ]
    title = f"{run}, {protocol} protocol, {len(truth):,} samples"
    show_table(title, ["measure", *columns], rows)
    if protocol == "batch":
        say(f"{scores['note']}: class order alone is worth {scores['gap']:+.4f}")
