"""``sagl predict``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sagl.cli.options import JSON, loaded, option, print_json, takes

if TYPE_CHECKING:
    from sagl.estimator import SAGL
    from sagl.features.store import Joined


@takes(loaded)
def predict(
    opened: tuple[Path, SAGL, Joined],
    out: Path = option(..., "A .csv of clusters and confidences, or .npy of clusters."),
    agreement: float | None = option(
        None,
        "Cluster -1 for doubtful samples; the others keep their cluster so "
        "often when the search starts elsewhere, e.g. 0.9.",
    ),
    as_json: bool = JSON,
) -> None:
    """Give each sample of the views a cluster, whatever else is asked about."""
    from sagl.estimator import DOUBTFUL
    from sagl.features.files import check_prediction_path, write_predictions

    check_prediction_path(out)
    _, model, given = opened
    threshold = 0.0 if agreement is None else model.threshold(agreement)
    clusters, confidence = model.predict_with_confidence(given.views)
    doubtful = confidence < threshold
    clusters[doubtful] = DOUBTFUL
    write_predictions(out, clusters, confidence, given.ids)
    if as_json:
        print_json(
            {
                "out": str(out),
                "n_samples": len(clusters),
                "n_doubtful": int(doubtful.sum()),
                "threshold": threshold,
                "mean_confidence": float(confidence.mean()),
            }
        )
    else:
        left_out = f"; {doubtful.sum():,} are doubtful (-1)" if agreement else ""
        typer.echo(f"{len(clusters):,} predictions in {out}{left_out}")
