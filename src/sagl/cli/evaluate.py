"""``sagl evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.console import Console
from rich.table import Table

from sagl.cli.options import JsonOption, loaded, option, print_json, takes

if TYPE_CHECKING:
    from sagl.estimator import SAGL
    from sagl.features.split import Input

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
    opened: tuple[Path, SAGL, Input],
    labels: Annotated[
        Path | None,
        option("True labels, one per sample: they only score. By default the store's."),
    ] = None,
    protocol: Annotated[
        str, option("inductive, transductive, or batch (depends on the order).")
    ] = "inductive",
    as_json: JsonOption = False,
) -> None:
    """Score a run's predictions for views with known labels."""
    from sagl.evaluation.protocols import evaluate as score

    run, model, given = opened
    truth = given.truth(labels)
    scores = score(model, given.views, truth, protocol)  # type: ignore[arg-type]
    if as_json:
        print_json(scores)
        return
    table = Table(title=f"{run}, {protocol} protocol, {len(truth):,} samples")
    table.add_column("measure")
    table.add_column("shuffled" if protocol == "batch" else "score", justify="right")
    if protocol == "batch":
        table.add_column("sorted by class", justify="right")
    for key, name in _NAMES.items():
        columns = [scores, scores["sorted"]] if protocol == "batch" else [scores]
        form = "d" if key == "n_clusters" else ".4f"
        table.add_row(name, *(f"{column[key]:{form}}" for column in columns))
    console = Console()
    console.print(table)
    if protocol == "batch":
        console.print(
            f"{scores['note']}: class order alone is worth {scores['gap']:+.4f}"
        )
