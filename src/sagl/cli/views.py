"""``sagl views``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sagl.cli.options import (
    FILES,
    JOIN,
    JSON,
    QUIET,
    STORE,
    option,
    print_json,
    say,
    show_table,
)

if TYPE_CHECKING:
    from sagl.selection import ViewChoice
    from sagl.views import Views


def views(
    store: Path | None = STORE,
    view: list[str] | None = FILES,
    join: str | None = JOIN,
    out: Path | None = option(None, "A picture: .png, .svg or .pdf.", metavar="FILE"),
    batch_size: int | None = option(
        None,
        "Average over batches of so many rows; by default exact "
        "up to 50,000 rows, then 512.",
    ),
    seed: int = option(0, "Of the batches."),
    clusters: int | None = option(
        None,
        "Also choose the views to use for so many clusters, without labels: "
        "more views can hurt. Takes minutes.",
    ),
    quiet: bool = QUIET,
    as_json: bool = JSON,
) -> None:
    """Compare every pair of views by CKA and say which repeat or complement each other.

    1 is the same, 0 nothing in common, whatever the scale and rotation of the features.
    With --clusters, also say which of them to use.
    """
    from sagl.evaluation.cka import (
        cka_matrix,
        judge_views,
        rows_to_read,
        suitable_batch_size,
    )
    from sagl.features.split import read_input
    from sagl.progress import progress

    if out is not None:
        from sagl.report.saving import check_format

        check_format(out)
    given = read_input(store, view, join=join or "error").views  # type: ignore[arg-type]
    if len(given.names) < 2:
        raise ValueError(
            f"there is one view only, {given.names[0]!r}; comparing takes two or more"
        )
    size = suitable_batch_size(given) if batch_size is None else batch_size
    total = rows_to_read(given, size)
    with progress(total, "comparing", "rows", show=not quiet) as bar:
        cka = cka_matrix(given, batch_size=size, seed=seed, progress=bar.update)
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
        _show(given, cka, pairs)
        if out is not None:
            say(f"picture: {out}")
        if choice is not None:
            _show_choice(choice)


def _as_json(choice: ViewChoice) -> dict[str, Any]:
    tried = [
        {"views": list(subset.names), "score": subset.score.total}
        for subset in choice.tried
    ]
    return {"views": list(choice.best), "tried": tried}


def _show_choice(choice: ViewChoice) -> None:
    rows = [
        [", ".join(subset.names), f"{subset.score.total:.3f}"]
        for subset in choice.tried
    ]
    title = "which views to use, by a score that needs no labels"
    show_table(title, ("views", "score"), rows)
    say(f"use: {', '.join(choice.best)}")


def _show(given: Views, cka: Any, pairs: Any) -> None:
    from sagl.evaluation.cka import THRESHOLDS

    title = f"CKA of {len(given.names)} views, {len(given):,} samples"
    rows = [
        [name, *(f"{value:.3f}" for value in row)]
        for name, row in zip(given.names, cka, strict=True)
    ]
    show_table(title, ("view", *given.names), rows)
    for pair in pairs:
        say(pair.in_words())
    levels = ", ".join(f"{v} from {least:g}" for v, least in THRESHOLDS.items())
    say(f"rules of thumb: {levels}, below that unrelated", style="dim")
