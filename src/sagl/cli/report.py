"""``sagl report``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sagl.cli.options import (
    DEVICE,
    ID_COLUMN,
    LABELS,
    QUIET,
    RUN,
    check_joining,
    option,
    refuse_idle,
    samples,
    say,
    takes,
)

drawn = partial(option, panel="The page")


@dataclass
class Known:
    """What is known about the samples: arguments of ``open_inputs``."""

    store: Path | None = samples(
        None, "The feature store that the run was fitted on.", metavar="STORE"
    )
    views: list[str] | None = samples(
        None, "Or its views, as for sagl fit.", "--view", metavar="NAME=FILE"
    )
    id_column: str | None = ID_COLUMN
    source: str | None = samples(
        None, "Pictures or texts to show: a folder, list or table.", metavar="SOURCE"
    )
    labels: Path | None = LABELS
    columns: Path | None = samples(
        None, "A table of more columns to colour by, joined by id.", metavar="FILE"
    )
    names: Path | None = samples(
        None, "Names and marks that the explorer exported (.json).", metavar="FILE"
    )


@dataclass
class Page:
    """What the page has: arguments of ``write_report``."""

    out: Path | None = drawn(None, "By default report.html in RUN.", metavar="FILE")
    embedding: str = drawn(
        "tsne",
        "How the map is made: tsne, or umap (of the extra peers).",
        metavar="HOW",
    )
    view_maps: bool = drawn(
        False, "A map of each view as well, side by side.", "--view-maps"
    )
    beside: Path | None = drawn(
        None, "Another run of these samples: which of them moved.", metavar="RUN"
    )
    map_file: Path | None = drawn(
        None, "Also draw the labelled map: .png, .svg or .pdf.", "--map", metavar="FILE"
    )
    parquet: Path | None = drawn(
        None, "Also write a table for embedding-atlas.", metavar="FILE"
    )
    thumbnails: bool = drawn(True, "Show pictures, at most 5,000.")
    graph: bool | None = drawn(
        None, "A graph per view; by default up to 50,000 samples."
    )
    device: str = DEVICE


def _show(result: dict[str, Any]) -> None:
    for label, value in result["headline"].items():
        say(f"{label}: {value}")
    for warning in result["warnings"]:
        say(f"warning: {warning}")
    if result["moved"] is not None:
        say(f"moved between the two runs: {result['moved']:,} samples")
    if result["map"]:
        say(f"map: {result['map']}")
    if result["parquet"]:
        say(f"embedding-atlas {result['parquet']} --x x --y y --neighbors neighbors")
    say(f"{result['out']} ({result['bytes'] / 1e6:.1f} MB)", style="bold")


@takes(Known, Page, show=_show)
def report(
    known: Known,
    page: Page,
    run: Path = RUN,
    tsne: bool = drawn(True, "Draw t-SNE figures of the views."),
    quiet: bool = QUIET,
) -> dict[str, Any]:
    """Write what a run found as one page that opens without a server or network.

    Example: sagl report run --labels labels.csv
    """
    from sagl.report.inputs import open_inputs
    from sagl.report.page import write_report

    check_joining(known.store, known.views, known.id_column)
    if not known.views:
        refuse_idle("it is of --view files", "id_column")
    known.views = known.views or []
    inputs = open_inputs(run, **vars(known))
    if inputs.kind != "image":
        refuse_idle("there are no pictures to show", "thumbnails")
    if inputs.views is None:
        idle = ("tsne", "graph", "view_maps")
        refuse_idle("the views are not there; give --view or --store", *idle)
    rows = None if tsne else 0
    with report_progress(quiet) as begun:
        return write_report(run, inputs, tsne_rows=rows, progress=begun, **vars(page))


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
