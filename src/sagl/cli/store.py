"""``sagl store``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from sagl.cli.options import (
    JOIN,
    JSON,
    VIEWS,
    add_command,
    argument,
    listed,
    option,
    print_json,
    say,
    show_table,
    takes,
)

STORE_PATH = argument(..., "A feature store.", "STORE")


def _facts(path: Path) -> dict[str, Any]:
    from sagl.features.store import FeatureStore

    return FeatureStore.open(path).describe()


def _show(facts: dict[str, Any]) -> None:
    rows = [
        [
            *(name, str(view["model"] or ""), f"{view['rows']:,}", f"{view['dim']:,}"),
            *(view["dtype"], f"{view['files']:,}", f"{view['bytes'] / 2**20:,.1f}"),
        ]
        for name, view in facts["views"].items()
    ]
    columns = ("view", "model", "samples", "width", "type", "files", "MiB")
    show_table(f"feature store {facts['store']}", columns, rows, left=2)
    labelled = "with labels" if facts["labelled"] else "without labels"
    say(f"{facts['samples']:,} samples are in every view, {labelled}")
    if facts["skipped"]:
        say(f"{facts['skipped']:,} were skipped: skipped.csv says why")
    for name in facts["unfinished"]:
        say(f"view {name} is not finished")


@takes(show=_show)
def info(path: Path = STORE_PATH) -> dict[str, Any]:
    """Show the views of a store, their models and their samples.

    Example: sagl store info features
    """
    return _facts(path)


def verify(path: Path = STORE_PATH, as_json: bool = JSON) -> None:
    """Read everything: checksums, rows, and values that are NaN or infinite.

    Ends with exit code 1 when something is wrong.

    Example: sagl store verify features
    """
    from sagl.features.store_tools import verify as find_faults

    faults = find_faults(path)
    if as_json:
        print_json({"store": str(path), "faults": faults})
    else:
        summary = f"{path}: {len(faults)} faults" if faults else f"{path} is whole"
        for line in (*faults, summary):
            say(line)
    if faults:
        raise typer.Exit(1)


@takes(show=_show)
def merge(
    paths: list[Path] = argument(..., "Stores, or unfinished parts of one.", "STORE…"),
    out: Path | None = option(
        None,
        "The merged store; without it a single STORE is finished.",
        metavar="STORE",
    ),
) -> dict[str, Any]:
    """Make one store of several, or finish one that several processes wrote to.

    Example: sagl store merge first second --out both
    """
    from sagl.features.store_tools import merge as merge_stores

    return _facts(merge_stores(paths, out))


def _show_files(facts: dict[str, Any]) -> None:
    for file in facts["files"]:
        say(file)


@takes(show=_show_files)
def export(
    path: Path = STORE_PATH,
    out: Path = option(..., "Where the files go.", metavar="DIR"),
    form: str = option("npy", "npy, npz, parquet or csv.", "--format"),
    views: str | None = VIEWS,
    join: str | None = JOIN,
) -> dict[str, Any]:
    """Write one file per view, the ids and the labels for other tools.

    Example: sagl store export features --out files --format parquet
    """
    from sagl.features.store import FeatureStore
    from sagl.features.store_tools import export as export_store

    opened, how = FeatureStore.open(path), join or "error"
    files = export_store(opened, out, form, names=listed(views), join=how)  # type: ignore[arg-type]
    return {"files": [str(file) for file in files]}


store = typer.Typer(
    name="store",
    help="Look at, check, merge and export feature stores.",
    no_args_is_help=True,
)
for command in (info, verify, merge, export):
    add_command(store, command)
