"""``sagl compare``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from sagl.cli.options import DeviceOption, JsonOption, QuietOption, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sagl.baselines.registry import Method
    from sagl.experiments.compare import Comparison
    from sagl.experiments.compare_table import Row
    from sagl.features.split import Source

# Columns of the table that stand together in a terminal; 0 is the method.
_TOGETHER = ((0, 1, 2, 3), (0, 4, 5, 10), (0, 6, 7, 8, 9))


def compare(
    data: Annotated[
        Path | None,
        typer.Option(
            help="A directory with train/ and perhaps test/, each with one file per "
            "view and labels.npy; or a feature store."
        ),
    ] = None,
    views: Annotated[
        str | None, typer.Option(help="Of --data, only these: NAME,NAME,…")
    ] = None,
    view: Annotated[
        list[str] | None,
        typer.Option("--view", metavar="NAME=FILE", help="Or: a view to fit. Repeat."),
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Labels for --view: they only score.")
    ] = None,
    test_view: Annotated[
        list[str] | None,
        typer.Option(
            "--test-view", metavar="NAME=FILE", help="The same view of test samples."
        ),
    ] = None,
    test_labels: Annotated[
        Path | None, typer.Option(help="Labels for --test-view.")
    ] = None,
    methods: Annotated[
        str,
        typer.Option(
            help="all, or NAME,NAME,…; module:Class takes a class of your own."
        ),
    ] = "all",
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            metavar="METHOD:NAME=VALUE",
            help="A parameter of one method, e.g. turtle:steps=1000. Repeat.",
        ),
    ] = None,
    clusters: Annotated[
        int | None,
        typer.Option(help="By default as many as there are distinct labels."),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Runs per method.")] = 5,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Results are kept, and taken up, here.")
    ] = Path("comparison"),
    jobs: Annotated[int, typer.Option(help="Runs at the same time.")] = 1,
    minutes: Annotated[
        float | None, typer.Option(help="Stop after so many minutes.")
    ] = None,
    looks: Annotated[
        int, typer.Option(help="Points of each curve of quality over time.")
    ] = 8,
    class_names: Annotated[
        Path | None,
        typer.Option(help="One name per line, for zero-shot and LaFTer."),
    ] = None,
    text_encoder: Annotated[
        str | None,
        typer.Option(help="A CLIP directory or name, for zero-shot and LaFTer."),
    ] = None,
    text_view: Annotated[
        str | None,
        typer.Option(help="The view that belongs to the text encoder."),
    ] = None,
    device: DeviceOption = "auto",
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run every method on the same views and tabulate how good and how fast it is.

    Labels only score, except in rows that say otherwise. Runs are kept in DIR: the same
    command takes up what was interrupted.
    """
    from sagl.experiments.compare import Comparison

    source = _source(data, views, view, labels, test_view, test_labels)
    chosen = _methods(methods, param or [], class_names, text_encoder, text_view)
    if jobs < 1:
        raise ValueError(f"--jobs must be at least 1; got {jobs}")
    comparison = Comparison(
        source,
        chosen,
        out,
        n_clusters=clusters,
        seeds=seeds,
        looks=looks,
        device=device,
    )
    try:
        comparison.run(
            jobs=jobs, minutes=minutes, progress=_progress(comparison, quiet)
        )
    except KeyboardInterrupt:
        typer.echo("sagl: interrupted; the same command takes up the rest", err=True)
        raise typer.Exit(130) from None
    rows = _write(comparison)
    if as_json:
        from sagl.experiments.compare_table import as_json as to_json

        print_json(to_json(comparison, rows))
    else:
        _show(comparison, rows)


def _source(
    data: Path | None,
    views: str | None,
    view: list[str] | None,
    labels: Path | None,
    test_view: list[str] | None,
    test_labels: Path | None,
) -> Source:
    from sagl.features.split import Part, Source, find_source

    if data is not None:
        if view or labels or test_view or test_labels:
            raise ValueError("give --data, or --view and --labels, not both")
        return find_source(data, views.split(",") if views else None)
    if not view:
        raise ValueError(
            "nothing to compare on; give --data DIR, or --view and --labels"
        )
    train = Part(tuple(view), None if labels is None else str(labels))
    test = None
    if test_view:
        test = Part(tuple(test_view), None if test_labels is None else str(test_labels))
    return Source("views", train, test)


def _methods(
    names: str,
    params: list[str],
    class_names: Path | None,
    text_encoder: str | None,
    text_view: str | None,
) -> list[Method]:
    from dataclasses import replace

    from sagl.baselines.registry import METHODS, find_method

    wanted = list(METHODS) if names == "all" else names.split(",")
    chosen = [find_method(name.strip()) for name in wanted]
    more: dict[str, dict[str, Any]] = {method.name: {} for method in chosen}
    for text in params:
        name, key, value = _param(text)
        if name not in more:
            raise ValueError(f"--param {text}: {name!r} is not among the methods")
        more[name][key] = value
    if class_names is not None and text_encoder is not None:
        lines = class_names.read_text(encoding="utf-8").splitlines()
        extra = {
            "class_names": [line.strip() for line in lines if line.strip()],
            "text_encoder": text_encoder,
            "view": text_view,
        }
        for method in chosen:
            if "class names" in method.needs:
                more[method.name] |= extra
    return [replace(m, params={**m.params, **more[m.name]}) for m in chosen]


def _param(text: str) -> tuple[str, str, Any]:
    """``METHOD:NAME=VALUE``, the value as JSON if it is, else as text."""
    place, equals, value = text.partition("=")
    method, colon, name = place.rpartition(":")
    if not (equals and colon and method and name):
        raise ValueError(f"--param {text}: expected METHOD:NAME=VALUE")
    try:
        return method, name, json.loads(value)
    except json.JSONDecodeError:
        return method, name, value


def _progress(comparison: Comparison, quiet: bool) -> Any:
    done = 0

    def show(task: Any, result: dict[str, Any]) -> None:
        nonlocal done
        done += 1
        if quiet:
            return
        what = result.get("error") or (
            f"ACC {result['scores']['acc']:.3f} in {result['seconds']:.1f} s"
        )
        name = f"{task.method.title or task.method.name}, seed {task.seed}"
        typer.echo(f"[{done}/{len(comparison.tasks)}] {name}: {what}", err=True)

    return show


def _write(comparison: Comparison) -> list[Row]:
    from sagl.experiments.compare_table import as_csv, as_json, markdown, rows_of
    from sagl.storage import write_json, write_text

    rows = rows_of(comparison)
    write_text(comparison.out / "table.md", markdown(rows))
    write_text(comparison.out / "table.csv", as_csv(rows))
    write_json(comparison.out / "table.json", as_json(comparison, rows))
    return rows


def _show(comparison: Comparison, rows: Sequence[Row]) -> None:
    """Scores, costs, remarks: tables narrow enough for a terminal."""
    from sagl.experiments.compare_table import COLUMNS, cells

    protocol = "test samples, each predicted alone"
    if comparison.source.test is None:
        protocol = "the fitted samples"
    console = Console()
    console.print(
        f"{comparison.source.name}: {comparison.n_clusters} clusters, "
        f"{comparison.n_train:,} samples fitted; scored on {comparison.n_scored:,} "
        f"{protocol}"
    )
    lines = cells(rows, bold=("[bold]", "[/bold]"))
    for columns in _TOGETHER:
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for i in columns:
            side: Literal["left", "right"] = "right" if i else "left"
            table.add_column(COLUMNS[i], justify=side, no_wrap=True)
        for row, line, before in zip(rows, lines, [None, *rows[:-1]], strict=True):
            if row.supervised and not (before and before.supervised):
                table.add_section()
            if any(line[i] for i in columns[1:]):
                table.add_row(*(line[i] for i in columns))
        console.print(table)
    for row in rows:
        if row.note:
            console.print(f"{row.title}: {row.note}", highlight=False, markup=False)
    console.print(f"kept in {comparison.out}: table.md, table.csv, table.json")
