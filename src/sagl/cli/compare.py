"""``sagl compare``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from sagl.cli.data_options import (
    DataOption,
    DataViewsOption,
    LabelsOption,
    TestLabelsOption,
    TestViewOption,
    ViewFilesOption,
    find_data,
)
from sagl.cli.experiment import (
    JobsOption,
    MinutesOption,
    parse_value,
    print_table,
    run_kept,
)
from sagl.cli.options import DeviceOption, JsonOption, QuietOption, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sagl.baselines.registry import Method
    from sagl.experiments.compare import Comparison
    from sagl.experiments.compare_table import Row

# Columns of the table that stand together in a terminal; 0 is the method.
_TOGETHER = ((0, 1, 2, 3), (0, 4, 5, 10, 11), (0, 6, 7, 8, 9))


def compare(
    data: DataOption = None,
    views: DataViewsOption = None,
    view: ViewFilesOption = None,
    labels: LabelsOption = None,
    test_view: TestViewOption = None,
    test_labels: TestLabelsOption = None,
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
    jobs: JobsOption = 1,
    minutes: MinutesOption = None,
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

    source = find_data(data, views, view, labels, test_view, test_labels)
    chosen = parse_methods(methods, param or [], class_names, text_encoder, text_view)
    comparison = Comparison(
        source,
        chosen,
        out,
        n_clusters=clusters,
        seeds=seeds,
        looks=looks,
        device=device,
    )
    run_kept(comparison, jobs, minutes, quiet)
    rows = _write(comparison)
    if as_json:
        from sagl.experiments.compare_table import as_json as to_json

        print_json(to_json(comparison, rows))
    else:
        _show(comparison, rows)


def parse_methods(
    names: str,
    params: list[str],
    class_names: Path | None,
    text_encoder: str | None,
    text_view: str | None,
) -> list[Method]:
    """The methods that the options name, with their parameters."""
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
    return method, name, parse_value(value)


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
    supervised = [row.supervised for row in rows]
    for columns in _TOGETHER:
        print_table(console, COLUMNS, lines, columns, apart=supervised)
    for row in rows:
        if row.note:
            console.print(f"{row.title}: {row.note}", highlight=False, markup=False)
    console.print(f"kept in {comparison.out}: table.md, table.csv, table.json")
