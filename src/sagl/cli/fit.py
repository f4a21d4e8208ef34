"""``sagl fit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sagl.cli.info import describe, show
from sagl.cli.options import (
    DeviceOption,
    JsonOption,
    QuietOption,
    cluster_number,
    print_json,
)
from sagl.cli.source_options import (
    BackboneOption,
    ColumnOption,
    FilesOption,
    IdColumnOption,
    JoinOption,
    KindOption,
    LabelColumnOption,
    RemoteCodeOption,
    SplitOption,
    ViewsOption,
    WorkersOption,
    listed,
    reader_options,
)


def fit(
    clusters: Annotated[
        str,
        typer.Option(metavar="N|auto", help="The number of clusters, or auto."),
    ],
    out: Annotated[Path, typer.Option(metavar="RUN", help="The run directory.")],
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[SOURCE]",
            help="Samples for --backbone, e.g. a folder of images, or a feature store.",
        ),
    ] = None,
    view: FilesOption = None,
    backbone: BackboneOption = None,
    views: ViewsOption = None,
    join: JoinOption = None,
    kind: KindOption = None,
    column: ColumnOption = None,
    id_column: IdColumnOption = None,
    label_column: LabelColumnOption = None,
    split: SplitOption = None,
    workers: WorkersOption = None,
    trust_remote_code: RemoteCodeOption = False,
    epochs: Annotated[int | None, typer.Option(help="Passes over the data.")] = None,
    steps: Annotated[int | None, typer.Option(help="Or: optimiser steps.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    recipe: Annotated[
        str,
        typer.Option(help="default, paper or released: fills in what is not given."),
    ] = "default",
    batch_size: Annotated[
        int | None, typer.Option(help="Samples per step; by default six per cluster.")
    ] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Of Adam.")] = None,
    gamma: Annotated[float | None, typer.Option(help="Weight of diversity.")] = None,
    beta: Annotated[float | None, typer.Option(help="Weight of alignment.")] = None,
    dropout: Annotated[float | None, typer.Option(help="On attention weights.")] = None,
    alpha: Annotated[float, typer.Option(help="Of entmax; 2 is sparsemax.")] = 1.5,
    graph: Annotated[str, typer.Option(help="sparse, dense or identity.")] = "sparse",
    gate: Annotated[str | None, typer.Option(help="none, shrink or sharpen.")] = None,
    refine: Annotated[
        bool | None,
        typer.Option(help="Search on from what the network found; by the recipe."),
    ] = None,
    cluster_sizes: Annotated[
        str,
        typer.Option(help="even, free, or auto: free where the evidence is clear."),
    ] = "auto",
    restarts: Annotated[
        int, typer.Option(help="Networks trained; the best is chosen without labels.")
    ] = 1,
    anchors: Annotated[
        int | None, typer.Option(help="Training samples kept for prediction.")
    ] = None,
    graph_file: Annotated[
        bool | None,
        typer.Option(help="Write graph.npz; by default up to 50,000 samples."),
    ] = None,
    device: DeviceOption = "auto",
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Learn clusters from views and write them to RUN.

    The views are files (--view), a feature store, or extracted from samples into
    RUN/features (--backbone). What was interrupted is taken up by the same command.
    """
    from sagl.estimator import SAGL
    from sagl.experiments.fit import fit_run, run_input
    from sagl.run import refuse_existing_run

    refuse_existing_run(out)
    model = SAGL(
        cluster_number(clusters),
        recipe=recipe,  # type: ignore[arg-type]
        epochs=epochs,
        steps=steps,
        batch_size="auto" if batch_size is None else batch_size,
        learning_rate=learning_rate,
        gamma=gamma,
        beta=beta,
        dropout=dropout,
        alpha=alpha,
        graph=graph,
        gate=gate,
        refine=refine,
        cluster_sizes=cluster_sizes,
        n_restarts=restarts,
        n_anchors="auto" if anchors is None else anchors,
        random_state=seed,
        device=device,
        verbose=not quiet,
    )
    try:
        given = run_input(
            out,
            source,
            view,
            backbone,
            names=listed(views),
            join=join,  # type: ignore[arg-type]
            reader=reader_options(kind, column, id_column, label_column, split),
            workers=workers,
            device=device,
            trust_remote_code=trust_remote_code,
            progress=not quiet,
            accept=model.resolved,  # not after hours of extraction
        )
        fit_run(
            model,
            given.views,
            out,
            graph=graph_file,
            ids=given.ids,
            source=given.source,
        )
    except KeyboardInterrupt:
        typer.echo("sagl: interrupted; the same command takes up the run", err=True)
        raise typer.Exit(130) from None
    if as_json:
        print_json(describe(out))
    else:
        show(out)
