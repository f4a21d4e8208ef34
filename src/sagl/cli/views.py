"""``sagl views``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from sagl.cli.options import (
    FILES,
    ID_COLUMN,
    JOIN,
    QUIET,
    STORE,
    check_joining,
    option,
    refuse_idle,
    say,
    show_table,
    takes,
)


def _show(facts: dict[str, Any]) -> None:
    from sagl.evaluation.cka import THRESHOLDS, PairVerdict

    names = list(facts["views"])
    title = f"CKA of {len(names)} views, {facts['n_samples']:,} samples"
    rows = [
        [name, *(f"{value:.3f}" for value in row)]
        for name, row in zip(names, facts["cka"], strict=True)
    ]
    show_table(title, ("view", *names), rows)
    for pair in facts["pairs"]:
        say(PairVerdict(**pair).in_words())
    levels = ", ".join(f"{v} from {least:g}" for v, least in THRESHOLDS.items())
    say(f"rules of thumb: {levels}, below that unrelated", style="dim")
    if facts["out"]:
        say(f"picture: {facts['out']}")
    if choice := facts["choice"]:
        rows = [[", ".join(t["views"]), f"{t['score']:.3f}"] for t in choice["tried"]]
        title = "which views to use, by a score that needs no labels"
        show_table(title, ("views", "score"), rows)
        say(f"use: {', '.join(choice['views'])}")


@takes(show=_show)
def views(
    store: Path | None = STORE,
    view: list[str] | None = FILES,
    id_column: str | None = ID_COLUMN,
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
) -> dict[str, Any]:
    """Compare every pair of views by CKA and say which repeat or complement each other.

    1 is the same, 0 nothing in common, whatever the scale and rotation of the features.
    With --clusters, also say which of them to use. Samples that miss a view are left
    out.

    Example: sagl views store --clusters 10
    """
    from sagl.evaluation import cka
    from sagl.features.split import read_input
    from sagl.progress import progress
    from sagl.selection import choose_views

    if out is not None:
        from sagl.report.saving import check_format

        check_format(out)
    check_joining(store, view, id_column)
    given = read_input(
        store,
        view,
        join=join or "error",  # type: ignore[arg-type]
        id_column=id_column,
    ).views
    given = cka.with_all_views(given)
    if len(given.names) < 2:
        raise ValueError(
            f"there is one view only, {given.names[0]!r}; comparing takes two or more"
        )
    size = cka.suitable_batch_size(given) if batch_size is None else batch_size
    if clusters is None and size is None:
        refuse_idle("all rows are compared at once", "seed")
    total = cka.rows_to_read(given, size)
    with progress(total, "comparing", "rows", show=not quiet) as bar:
        matrix = cka.cka_matrix(given, batch_size=size, seed=seed, progress=bar.update)
    choice = None
    if clusters is not None:
        chosen = choose_views(given, clusters, random_state=seed, progress=not quiet)
        tried = [
            {"views": list(subset.names), "score": subset.score.total}
            for subset in chosen.tried
        ]
        choice = {"views": list(chosen.best), "tried": tried}
    if out is not None:
        from sagl.report import save
        from sagl.report.figures import draw_cka

        save(draw_cka(matrix, given.names), out)
    return {
        "n_samples": len(given),
        "views": dict(zip(given.names, given.widths, strict=True)),
        "cka": matrix.tolist(),
        "batch_size": size,
        "pairs": [asdict(pair) for pair in cka.judge_views(matrix, given.names)],
        "choice": choice,
        "out": out and str(out),
    }
