"""``sagl views``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sagl.cli.options import JsonOption, QuietOption, print_json, read_views

if TYPE_CHECKING:
    from sagl.selection import ViewChoice
    from sagl.views import Views


def views(
    store: Annotated[
        Path | None, typer.Argument(metavar="[STORE]", help="A feature store.")
    ] = None,
    view: Annotated[
        list[str] | None,
        typer.Option("--view", metavar="NAME=FILE", help="Or: a view. Repeat."),
    ] = None,
    join: Annotated[
        Literal["error", "inner"],
        typer.Option(help="Samples that not all views have: inner leaves them out."),
    ] = "error",
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A picture: .png, .svg or .pdf."),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            help="Average over batches of so many rows; by default exact "
            "up to 50,000 rows, then 512."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the batches.")] = 0,
    clusters: Annotated[
        int | None,
        typer.Option(
            help="Also choose the views to use for so many clusters, without labels: "
            "more views can hurt. Takes minutes."
        ),
    ] = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compare every pair of views by CKA and say which repeat or complement each other.

    1 is the same, 0 nothing in common, whatever the scale and rotation of the features.
    With --clusters, also say which of them to use.
    """
    from sagl.evaluation.cka import judge_views

    if out is not None:
        from sagl.report.saving import check_format

        check_format(out)
    found = _read(store, view or [], join)
    cka, size = _compare(found, batch_size, seed, quiet)
    pairs = judge_views(cka, found.names)
    choice = None
    if clusters is not None:
        from sagl.selection import choose_views

        choice = choose_views(found, clusters, random_state=seed, progress=not quiet)
    if out is not None:
        from sagl.report import save
        from sagl.report.figures import draw_cka

        save(draw_cka(cka, found.names), out)
    if as_json:
        print_json(
            {
                "n_samples": len(found),
                "views": dict(zip(found.names, found.widths, strict=True)),
                "cka": cka.tolist(),
                "batch_size": size,
                "pairs": [
                    {
                        "first": pair.first,
                        "second": pair.second,
                        "cka": pair.cka,
                        "verdict": pair.verdict,
                    }
                    for pair in pairs
                ],
                "choice": None if choice is None else _as_json(choice),
            }
        )
    else:
        _show(found, cka, pairs, out)
        if choice is not None:
            _show_choice(choice)


def _read(
    store: Path | None, options: list[str], join: Literal["error", "inner"]
) -> Views:
    if (store is None) == (not options):
        raise ValueError("give a feature store or --view NAME=FILE, one of the two")
    if store is None:
        found = read_views(options)
    else:
        from sagl.features.store import FeatureStore

        found = FeatureStore.open(store).views(join=join)
    if len(found.names) < 2:
        raise ValueError(
            f"there is one view only, {found.names[0]!r}; comparing takes two or more"
        )
    return found


def _compare(
    found: Views, batch_size: int | None, seed: int, quiet: bool
) -> tuple[Any, int | None]:
    from sagl.evaluation.cka import cka_matrix, rows_to_read, suitable_batch_size
    from sagl.progress import progress

    size = suitable_batch_size(found) if batch_size is None else batch_size
    total = rows_to_read(found, size)
    with progress(total, "comparing", "rows", show=not quiet) as bar:
        return cka_matrix(found, batch_size=size, seed=seed, progress=bar.update), size


def _as_json(choice: ViewChoice) -> dict[str, Any]:
    return {
        "views": list(choice.best),
        "tried": [
            {"views": list(subset.names), "score": subset.score.total}
            for subset in choice.tried
        ],
    }


def _show_choice(choice: ViewChoice) -> None:
    table = Table(title="which views to use, by a score that needs no labels")
    table.add_column("views", style="bold")
    table.add_column("score", justify="right")
    for subset in choice.tried:
        table.add_row(Text(", ".join(subset.names)), f"{subset.score.total:.3f}")
    console = Console(soft_wrap=True)
    console.print(table)
    best = ", ".join(choice.best)
    console.print(f"use: {best}", markup=False, highlight=False)


def _show(found: Views, cka: Any, pairs: Any, out: Path | None) -> None:
    from sagl.evaluation.cka import THRESHOLDS

    table = Table(title=f"CKA of {len(found.names)} views, {len(found):,} samples")
    table.add_column("view", style="bold")
    for name in found.names:
        table.add_column(Text(name), justify="right")
    for name, row in zip(found.names, cka, strict=True):
        table.add_row(Text(name), *(f"{value:.3f}" for value in row))
    console = Console(soft_wrap=True)
    console.print(table)
    for pair in pairs:
        console.print(pair.in_words(), markup=False, highlight=False)
    levels = ", ".join(f"{v} from {least:g}" for v, least in THRESHOLDS.items())
    console.print(f"rules of thumb: {levels}, below that unrelated", style="dim")
    if out is not None:
        console.print(f"picture: {out}", markup=False, highlight=False)
