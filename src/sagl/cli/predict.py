"""``sagl predict``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sagl.cli.options import (
    DeviceOption,
    JsonOption,
    RunArgument,
    ViewOption,
    print_json,
    read_views,
)


def predict(
    run: RunArgument,
    view: ViewOption,
    out: Annotated[
        Path,
        typer.Option(help="A .csv of clusters and confidences, or .npy of clusters."),
    ],
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Give each sample of the views a cluster, whatever else is asked about."""
    from sagl.estimator import SAGL
    from sagl.features.predictions import check_prediction_path, write_predictions

    check_prediction_path(out)
    probabilities = SAGL.load(run, device).predict_proba(read_views(view))
    write_predictions(out, probabilities)
    if as_json:
        print_json(
            {
                "out": str(out),
                "n_samples": len(probabilities),
                "mean_confidence": float(probabilities.max(axis=1).mean()),
            }
        )
    else:
        typer.echo(f"{len(probabilities):,} predictions in {out}")
