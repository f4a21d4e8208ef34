"""``sagl predict``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sagl.cli.options import DeviceOption, JsonOption, RunArgument, print_json
from sagl.cli.source_options import FilesOption, JoinOption, StoreArgument


def predict(
    run: RunArgument,
    out: Annotated[
        Path,
        typer.Option(help="A .csv of clusters and confidences, or .npy of clusters."),
    ],
    store: StoreArgument = None,
    view: FilesOption = None,
    join: JoinOption = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Give each sample of the views a cluster, whatever else is asked about."""
    from sagl.estimator import SAGL
    from sagl.features.inputs import read_input
    from sagl.features.predictions import check_prediction_path, write_predictions

    check_prediction_path(out)
    model = SAGL.load(run, device)
    given = read_input(store, view, model.view_names_, join or "error")  # type: ignore[arg-type]
    probabilities = model.predict_proba(given.views)
    write_predictions(out, probabilities, given.ids)
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
