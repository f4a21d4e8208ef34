"""``sagl demo``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from sagl.cli.options import JsonOption, print_json


def demo(
    out: Annotated[
        Path | None,
        typer.Option(help="Where to write the run; by default a new directory here."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Cluster handwritten digits seen through three views; takes under a minute."""
    from sagl.experiments.demo import free_directory, run_demo

    directory = free_directory(Path("sagl-demo")) if out is None else out
    result = run_demo(directory, seed, verbose=sys.stderr.isatty())
    if as_json:
        print_json(result)
    else:
        _show(result)


def _show(result: dict[str, Any]) -> None:
    views = ", ".join(f"{name} ({width})" for name, width in result["views"].items())
    table = Table(title=f"{result['n_test']} held-out digits, clusters against labels")
    table.add_column("method")
    for column in ("ACC", "NMI", "ARI", "clusters"):
        table.add_column(column, justify="right")
    for name, key in (("k-means, all views", "kmeans"), ("SAGL", "sagl")):
        s = result[key]
        table.add_row(
            name,
            *(f"{s[measure]:.3f}" for measure in ("acc", "nmi", "ari")),
            str(s["n_clusters"]),
        )
    console = Console()
    console.print(f"{result['n_train']} digits without labels; views: {views}")
    console.print(table)
    sparsity = ", ".join(f"{n} {s:.1%}" for n, s in result["sparsity"].items())
    console.print(f"neighbours kept by the sparse graphs: {sparsity} of all pairs")
    console.print(f"trained in {result['seconds']} s with seed {result['seed']}")
    console.print(f"the run is in {result['out']}; look at it with: ", end="")
    console.print(f"sagl info {result['out']}", style="bold")
