"""``sagl evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sagl.cli.options import LABELS, loaded, option, say, show_table, takes

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


def _show(scores: dict[str, Any]) -> None:
    columns = {"score": scores}
    if "sorted" in scores:
        columns = {"shuffled": scores, "sorted by class": scores["sorted"]}
    rows = [
        [
            name,
            *(
                f"{c[key]:{'d' if key == 'n_clusters' else '.4f'}}"
                for c in columns.values()
            ),
        ]
        for key, name in _NAMES.items()
    ]
    title = f"{scores['run']}, {scores['protocol']} protocol"
    show_table(f"{title}, {scores['n_samples']:,} samples", ["measure", *columns], rows)
    if "n_left_out" in scores:
        say(
            f"{scores['n_left_out']:,} samples were corrected by people and are left "
            "out of these scores"
        )
    if "sorted" in scores:
        say(f"{scores['note']}: class order alone is worth {scores['gap']:+.4f}")


@takes(loaded, show=_show)
def evaluate(
    opened: tuple[Path, SAGL, Joined],
    labels: Path | None = LABELS,
    protocol: str = option(
        "inductive", "inductive, transductive, or batch (depends on the order)."
    ),
) -> dict[str, Any]:
    """Score a run's predictions for views with known labels.

    Example: sagl evaluate run --view dino=d.npy --view clip=c.npy --labels y.csv
    """
    from sagl.evaluation.protocols import evaluate as score
    from sagl.features.split import true_labels

    run, model, given = opened
    truth = true_labels(given, labels)
    scores = score(model, given.views, truth, protocol)  # type: ignore[arg-type]
    return {"run": str(run), "n_samples": len(truth), **scores}
