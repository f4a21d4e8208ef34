"""``sagl layers``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sagl.cli.options import RUN, show_table, takes


def _show(facts: dict[str, Any]) -> None:
    show_table(
        f"layers of {facts['run']}",
        ("clusters", "stability", "information kept", ""),
        [
            (
                str(layer["n_clusters"]),
                f"{layer['stability']:.3f}",
                f"{layer['kept']:.0%}",
                "asked for" if layer["n_clusters"] == facts["n_clusters"] else "",
            )
            for layer in facts["layers"]
        ],
        left=0,
    )


@takes(show=_show)
def layers(run: Path = RUN) -> dict[str, Any]:
    """Show a run's layers: partitions from coarse to fine, each inside the next.

    sagl predict --layer N gives the clusters of one of them.

    Example: sagl layers run
    """
    from sagl.estimator import SAGL

    model = SAGL.load(run, "cpu")
    if not hasattr(model, "layers_"):
        raise ValueError(
            f"{run} has no layers: it was fitted without a search, or by an older sagl"
        )
    return {
        "run": str(run),
        "n_clusters": model.n_clusters_,
        "layers": [layer._asdict() for layer in model.layers_],
    }
