"""Options of the commands that run experiments: what to run them on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sagl.cli.source_options import listed

if TYPE_CHECKING:
    from sagl.features.split import Source

DataOption = Annotated[
    Path | None,
    typer.Option(
        help="A directory with train/ and perhaps test/, each with one file per "
        "view and labels.npy; or a feature store."
    ),
]
DataViewsOption = Annotated[
    str | None, typer.Option(help="Of --data, only these: NAME,NAME,…")
]
ViewFilesOption = Annotated[
    list[str] | None,
    typer.Option("--view", metavar="NAME=FILE", help="Or: a view to fit. Repeat."),
]
LabelsOption = Annotated[
    Path | None, typer.Option(help="Labels for --view: they only score.")
]
TestViewOption = Annotated[
    list[str] | None,
    typer.Option(
        "--test-view", metavar="NAME=FILE", help="The same view of test samples."
    ),
]
TestLabelsOption = Annotated[Path | None, typer.Option(help="Labels for --test-view.")]


def find_data(
    data: Path | None,
    views: str | None,
    view: list[str] | None,
    labels: Path | None,
    test_view: list[str] | None,
    test_labels: Path | None,
) -> Source:
    """The source that the options name."""
    from sagl.features.split import Part, Source, find_source

    if data is not None:
        if view or labels or test_view or test_labels:
            raise ValueError("give --data, or --view and --labels, not both")
        return find_source(data, listed(views))
    if not view:
        raise ValueError(
            "nothing to compare on; give --data DIR, or --view and --labels"
        )
    train = Part(tuple(view), None if labels is None else str(labels))
    test = None
    if test_view:
        test = Part(tuple(test_view), None if test_labels is None else str(test_labels))
    return Source("views", train, test)
