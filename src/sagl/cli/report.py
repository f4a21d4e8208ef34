"""``sagl report``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from sagl.cli.options import (
    DEVICE,
    JSON,
    QUIET,
    RUN,
    answer,
    option,
)


def report(
    run: Path = RUN,
    store: Path | None = option(None, "The feature store that the run was fitted on."),
    view: list[str] | None = option(
        None, "Or its views, as for sagl fit.", metavar="NAME=FILE"
    ),
    source: str | None = option(
        None, "Pictures or texts to show: a folder, list or table."
    ),
    labels: Path | None = option(None, "True labels, one per sample: they only score."),
    columns: Path | None = option(
        None, "A table of more columns to colour by, joined by id."
    ),
    names: Path | None = option(
        None, "Names and marks that the explorer exported (.json)."
    ),
    out: Path | None = option(None, "By default report.html in RUN."),
    parquet: Path | None = option(None, "Also write a table for embedding-atlas."),
    thumbnails: bool = option(True, "Show pictures, at most 5,000."),
    tsne: bool = option(True, "Draw t-SNE figures of the views."),
    graph: bool | None = option(
        None, "A graph per view; by default up to 50,000 samples."
    ),
    device: str = DEVICE,
    quiet: bool = QUIET,
    as_json: bool = JSON,
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

        def begun(stage: str) -> None:
            bar.note(stage)
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
