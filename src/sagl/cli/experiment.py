"""What the commands that run experiments share: their options, running, showing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape, render
from rich.table import Table

from sagl.cli.options import print_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sagl.experiments.compare import Comparison
    from sagl.experiments.study import Study

JobsOption = Annotated[int, typer.Option(help="Runs at the same time.")]
MinutesOption = Annotated[
    float | None, typer.Option(help="Stop after so many minutes.")
]
ClustersOption = Annotated[
    int | None,
    typer.Option(help="By default as many as there are distinct labels."),
]
SeedsOption = Annotated[int, typer.Option(help="Runs per row.")]
OutOption = Annotated[
    Path, typer.Option(metavar="DIR", help="Results are kept, and taken up, here.")
]
ParamOption = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="NAME=VALUE",
        help="A parameter of SAGL for all runs, e.g. steps=500. Repeat.",
    ),
]
_BOLD = ("[bold]", "[/bold]")
_BETWEEN = 3  # blanks between two columns of a table


def run_study(
    study: Study, *, jobs: int, minutes: float | None, quiet: bool, as_json: bool
) -> None:
    """Run it, write everything, and show it."""
    run_kept(study, jobs, minutes, quiet)
    written = study.write()
    if as_json:
        print_json({**study.as_json(), "files": written})
    else:
        _show(study, written)


def run_kept(
    runs: Study | Comparison, jobs: int, minutes: float | None, quiet: bool
) -> None:
    """Do the runs; an interruption says how to go on."""
    if jobs < 1:
        raise ValueError(f"--jobs must be at least 1; got {jobs}")
    try:
        runs.run(jobs=jobs, minutes=minutes, progress=progress(runs, quiet))
    except KeyboardInterrupt:
        typer.echo("sagl: interrupted; the same command takes up the rest", err=True)
        raise typer.Exit(130) from None


def progress(
    runs: Study | Comparison, quiet: bool
) -> Callable[[Any, dict[str, Any]], None]:
    """A line on stderr for every run that ends."""
    done = 0

    def show(task: Any, result: dict[str, Any]) -> None:
        nonlocal done
        done += 1
        if quiet:
            return
        what = result.get("error") or f"{_quality(result)} in {result['seconds']:.1f} s"
        name = f"{task.method.title or task.method.name}, seed {task.seed}"
        typer.echo(f"[{done}/{runs.total}] {name}: {what}", err=True)

    return show


def _quality(result: dict[str, Any]) -> str:
    if "acc" in result["scores"]:
        return f"ACC {result['scores']['acc']:.3f}"
    return f"score {result['label_free']['total']:.3f}"


def parse_params(texts: list[str] | None) -> dict[str, Any]:
    """``NAME=VALUE`` options."""
    found: dict[str, Any] = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not (equals and name.strip()):
            raise ValueError(f"--param {text}: expected NAME=VALUE")
        found[name.strip()] = parse_value(value)
    return found


def parse_value(text: str) -> Any:
    """The value as JSON if it is, else as text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def parse_values(option: str, text: str) -> list[Any]:
    """``VALUE,VALUE,…``."""
    values = [part.strip() for part in text.split(",")]
    if not all(values):
        raise ValueError(f"{option} {text}: expected VALUE,VALUE,…")
    return [parse_value(value) for value in values]


def _show(study: Study, written: list[str]) -> None:
    console = Console()
    console.print(study.heading(), highlight=False, markup=False)
    columns, lines, head = study.table(_BOLD)
    lines = [
        [
            escape(cell) if i < head or not columns[i] else cell
            for i, cell in enumerate(line)
        ]
        for line in lines
    ]
    for together in _fitting(columns, lines, head, console.width):
        print_table(console, columns, lines, together)
    for sentence in study.sentences():
        console.print(sentence, highlight=False, markup=False, soft_wrap=True)
    where = f"kept in {study.comparison.out}: {', '.join(written)}"
    console.print(where, highlight=False, markup=False, soft_wrap=True)
    if not any(name.endswith(".png") for name in written):
        typer.echo(
            'sagl: figures need matplotlib: pip install "sagl[report]"', err=True
        )


def _fitting(
    columns: Sequence[str], lines: Sequence[Sequence[str]], head: int, width: int
) -> list[list[int]]:
    """Columns shared out among tables of the terminal's width, each with the head."""

    def needed(i: int) -> int:
        cells = [columns[i], *(render(line[i]).plain for line in lines)]
        return max(cell_len(text) for text in cells) + _BETWEEN

    tables = [list(range(head))]
    for i in range(head, len(columns)):
        if sum(map(needed, [*tables[-1], i])) > width and len(tables[-1]) > head:
            tables.append(list(range(head)))
        tables[-1].append(i)
    return tables


def print_table(
    console: Console,
    columns: Sequence[str],
    lines: Sequence[Sequence[str]],
    together: Sequence[int],
    apart: Sequence[bool] = (),
) -> None:
    """Some columns of a table; lines that are ``apart`` make a section."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for i in together:
        side: Literal["left", "right"] = "right" if i else "left"
        table.add_column(columns[i], justify=side, no_wrap=True)
    before = False
    for line, separate in zip(lines, apart or [False] * len(lines), strict=True):
        if separate and not before:
            table.add_section()
        before = separate
        if any(line[i] for i in together[1:]):
            table.add_row(*(line[i] for i in together))
    console.print(table)
