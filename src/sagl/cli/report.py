"""``sagl report``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console

from sagl.cli.options import (
    DeviceOption,
    JsonOption,
    QuietOption,
    RunArgument,
    answer,
    option,
)


def report(
    run: RunArgument,
    store: Annotated[
        Path | None, option("The feature store that the run was fitted on.")
    ] = None,
    view: Annotated[
        list[str] | None, option("Or its views, as for sagl fit.", metavar="NAME=FILE")
    ] = None,
    source: Annotated[
        str | None, option("Pictures or texts to show: a folder, list or table.")
    ] = None,
    labels: Annotated[
        Path | None, option("True labels, one per sample: they only score.")
    ] = None,
    columns: Annotated[
        Path | None, option("A table of more columns to colour by, joined by id.")
    ] = None,
    names: Annotated[
        Path | None, option("Names and marks that the explorer exported (.json).")
    ] = None,
    out: Annotated[Path | None, option("By default report.html in RUN.")] = None,
    parquet: Annotated[
        Path | None, option("Also write a table for embedding-atlas.")
    ] = None,
    thumbnails: Annotated[bool, option("Show pictures, at most 5,000.")] = True,
    tsne: Annotated[bool, option("Draw t-SNE figures of the views.")] = True,
    graph: Annotated[
        bool | None, option("A graph per view; by default up to 50,000 samples.")
    ] = None,
    device: DeviceOption = "auto",
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write what a run found as one page that opens without a server or network."""
    from sagl.report.inputs import open_inputs
    from sagl.report.page import write_report

    inputs = open_inputs(
        run,
        store=store,
        views=view or (),
        source=source,
        labels=labels,
        columns=columns,
        names=names,
    )
    with report_progress(quiet) as begun:
        result = write_report(
            run,
            inputs,
            out,
            thumbnails=thumbnails,
            tsne_rows=None if tsne else 0,
            graph=graph,
            parquet=parquet,
            device=device,
            progress=begun,
        )
    answer(result, as_json, show)


@contextmanager
def report_progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    """A bar on stderr with the name of what is being done."""
    from sagl.progress import progress
    from sagl.report.page import STAGES

    with progress(STAGES, "report", "parts", show=not quiet) as bar:

        def begun(what: str) -> None:
            bar.note(what)
            bar.update(1)

        yield begun


def show(result: dict[str, Any]) -> None:
    """The numbers and the path, for people."""
    console = Console(soft_wrap=True, highlight=False)
    for label, value in result["headline"].items():
        console.print(f"{label}: {value}", markup=False)
    for warning in result["warnings"]:
        console.print(f"warning: {warning}", markup=False)
    if result["parquet"]:
        line = f"embedding-atlas {result['parquet']} --x x --y y --neighbors neighbors"
        console.print(line, markup=False)
    size = result["bytes"] / 1e6
    console.print(f"{result['out']} ({size:.1f} MB)", markup=False, style="bold")
