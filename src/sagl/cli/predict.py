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
    agreement: Annotated[
        float | None,
        typer.Option(
            help="Cluster -1 for doubtful samples; the others keep their cluster so "
            "often when the search starts elsewhere, e.g. 0.9."
        ),
    ] = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Give each sample of the views a cluster, whatever else is asked about."""
    from sagl.estimator import DOUBTFUL, SAGL
    from sagl.features.files import check_prediction_path, write_predictions
    from sagl.features.split import read_input

    check_prediction_path(out)
    model = SAGL.load(run, device)
    threshold = 0.0 if agreement is None else model.threshold(agreement)
    given = read_input(store, view, model.view_names_, join or "error")  # type: ignore[arg-type]
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
