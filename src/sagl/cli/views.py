"""``sagl views``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sagl.cli.options import JsonOption, QuietOption, option, print_json

if TYPE_CHECKING:
    from sagl.selection import ViewChoice
    from sagl.views import Views


def views(
    store: Annotated[
        Path | None, typer.Argument(metavar="[STORE]", help="A feature store.")
    ] = None,
    view: Annotated[
        list[str] | None, option("Or: a view. Repeat.", "--view", metavar="NAME=FILE")
    ] = None,
    join: Annotated[
        Literal["error", "inner"],
        option("Samples that not all views have: inner leaves them out."),
    ] = "error",
    out: Annotated[
        Path | None, option("A picture: .png, .svg or .pdf.", metavar="FILE")
    ] = None,
    batch_size: Annotated[
        int | None,
        option(
            "Average over batches of so many rows; by default exact "
            "up to 50,000 rows, then 512."
        ),
    ] = None,
    seed: Annotated[int, option("Of the batches.")] = 0,
    clusters: Annotated[
        int | None,
        option(
            "Also choose the views to use for so many clusters, without labels: "
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
    given = _read(store, view or [], join)
    cka, size = _compare(given, batch_size, seed, quiet)
    pairs = judge_views(cka, given.names)
    choice = None
    if clusters is not None:
        from sagl.selection import choose_views

        choice = choose_views(given, clusters, random_state=seed, progress=not quiet)
    if out is not None:
        from sagl.report import save
        from sagl.report.figures import draw_cka

        save(draw_cka(cka, given.names), out)
    if as_json:
        print_json(
            {
                "n_samples": len(given),
                "views": dict(zip(given.names, given.widths, strict=True)),
                "cka": cka.tolist(),
                "batch_size": size,
                "pairs": [asdict(pair) for pair in pairs],
                "choice": None if choice is None else _as_json(choice),
            }
        )
    else:
        _show(given, cka, pairs, out)
        if choice is not None:
            _show_choice(choice)


def _read(
    store: Path | None, options: list[str], join: Literal["error", "inner"]
) -> Views:
    if (store is None) == (not options):
        raise ValueError("give a feature store or --view NAME=FILE, one of the two")
    if store is None:
        from sagl.features.split import read_views

        opened = read_views(options)
    else:
        from sagl.features.store import FeatureStore

        opened = FeatureStore.open(store).views(join=join)
    if len(opened.names) < 2:
        raise ValueError(
            f"there is one view only, {opened.names[0]!r}; comparing takes two or more"
        )
    return opened


def _compare(
    given: Views, batch_size: int | None, seed: int, quiet: bool
) -> tuple[Any, int | None]:
    from sagl.evaluation.cka import cka_matrix, rows_to_read, suitable_batch_size
    from sagl.progress import progress

    size = suitable_batch_size(given) if batch_size is None else batch_size
    total = rows_to_read(given, size)
    with progress(total, "comparing", "rows", show=not quiet) as bar:
        return cka_matrix(given, batch_size=size, seed=seed, progress=bar.update), size


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


def _show(given: Views, cka: Any, pairs: Any, out: Path | None) -> None:
    from sagl.evaluation.cka import THRESHOLDS

    table = Table(title=f"CKA of {len(given.names)} views, {len(given):,} samples")
    table.add_column("view", style="bold")
    for name in given.names:
        table.add_column(Text(name), justify="right")
    for name, row in zip(given.names, cka, strict=True):
        table.add_row(Text(name), *(f"{value:.3f}" for value in row))
    console = Console(soft_wrap=True)
    console.print(table)
    for pair in pairs:
        console.print(pair.in_words(), markup=False, highlight=False)
    levels = ", ".join(f"{v} from {least:g}" for v, least in THRESHOLDS.items())
    console.print(f"rules of thumb: {levels}, below that unrelated", style="dim")
    if out is not None:
        console.print(f"picture: {out}", markup=False, highlight=False)
