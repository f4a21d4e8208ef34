"""``sagl store``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from sagl.cli.options import (
    JOIN,
    JSON,
    VIEWS,
    answer,
    argument,
    listed,
    option,
    print_json,
    say,
    show_table,
)

store = typer.Typer(
    name="store",
    help="Look at, check, merge and export feature stores.",
    no_args_is_help=True,
)
STORE_PATH = argument(..., "A feature store.", "STORE")


@store.command()
def info(path: Path = STORE_PATH, as_json: bool = JSON) -> None:
    """Show the views of a store, their models and their samples."""
    answer(_facts(path), as_json, _show)


@store.command()
def verify(path: Path = STORE_PATH, as_json: bool = JSON) -> None:
    """Read everything: checksums, rows, and values that are NaN or infinite.

    Ends with exit code 1 when something is wrong.
    """
    from sagl.features.store_tools import verify as find_faults

    faults = find_faults(path)
    if as_json:
        print_json({"store": str(path), "faults": faults})
    else:
        for fault in faults:
            typer.echo(fault)
        typer.echo(f"{path}: {len(faults)} faults" if faults else f"{path} is whole")
    if faults:
        raise typer.Exit(1)


@store.command()
def merge(
    paths: list[Path] = typer.Argument(
        ..., metavar="STORE…", help="Stores, or unfinished parts of one."
    ),
    out: Path | None = option(
        None, "The merged store; without it a single STORE is finished."
    ),
    as_json: bool = JSON,
) -> None:
    """Make one store of several, or finish one that several processes wrote to."""
    from sagl.features.store_tools import merge as merge_stores

    answer(_facts(merge_stores(paths, out)), as_json, _show)


@store.command()
def export(
    path: Path = STORE_PATH,
    out: Path = option(..., "Where the files go.", metavar="DIR"),
    form: str = option("npy", "npy, npz, parquet or csv.", "--format"),
    views: str | None = VIEWS,
    join: str | None = JOIN,
    as_json: bool = JSON,
) -> None:
    """Write one file per view, the ids and the labels for other tools."""
    from sagl.features.store import FeatureStore
    from sagl.features.store_tools import export as export_store

    files = export_store(
        FeatureStore.open(path),
        out,
        form,  # type: ignore[arg-type]
        names=listed(views),
        join=join or "error",  # type: ignore[arg-type]
    )
    if as_json:
        print_json({"files": [str(file) for file in files]})
    else:
        for file in files:
            typer.echo(file)


def _facts(path: Path) -> dict[str, Any]:
    from sagl.features.store import FeatureStore

    return FeatureStore.open(path).describe()


def _show(facts: dict[str, Any]) -> None:
    show_table(
        f"feature store {facts['store']}",
        ("view", "model", "samples", "width", "type", "files", "MiB"),
        [
            [
                name,
                str(view["model"] or ""),
                f"{view['rows']:,}",
                f"{view['dim']:,}",
                view["dtype"],
                f"{view['files']:,}",
                f"{view['bytes'] / 2**20:,.1f}",
            ]
            for name, view in facts["views"].items()
        ],
        left=2,
    )
    labelled = "with labels" if facts["labelled"] else "without labels"
    say(f"{facts['samples']:,} samples are in every view, {labelled}")
    if facts["skipped"]:
        say(f"{facts['skipped']:,} were skipped: skipped.csv says why")
    for name in facts["unfinished"]:
        say(f"view {name} is not finished")
