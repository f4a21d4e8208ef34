"""What the commands that run studies share: their options, running, showing."""

from __future__ import annotations

import json
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape, render
from rich.table import Table

from sagl.cli.options import (
    DeviceOption,
    JsonOption,
    QuietOption,
    listed,
    option,
    print_json,
    taken_up,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sagl.experiments.study import Study
    from sagl.experiments.table import Row
    from sagl.features.split import Source

_BOLD = ("[bold]", "[/bold]")
_BETWEEN = 3  # blanks between two columns of a table

data_option = partial(option, panel="What to run on")
run_option = partial(option, panel="Runs")
SeedsOption = Annotated[int, run_option("Runs per row.")]


def find_data(
    data: Annotated[
        Path | None,
        data_option(
            "A directory with train/ and perhaps test/, each with one file per view "
            "and labels.npy; or a feature store."
        ),
    ] = None,
    views: Annotated[
        str | None, data_option("Of --data, only these: NAME,NAME,…")
    ] = None,
    view: Annotated[
        list[str] | None,
        data_option("Or: a view to fit. Repeat.", "--view", metavar="NAME=FILE"),
    ] = None,
    labels: Annotated[
        Path | None, data_option("Labels for --view: they only score.")
    ] = None,
    test_view: Annotated[
        list[str] | None,
        data_option("The same view of test samples.", metavar="NAME=FILE"),
    ] = None,
    test_labels: Annotated[Path | None, data_option("Labels for --test-view.")] = None,
) -> Source:
    """The source that the options name."""
    from sagl.features.split import Part, Source, find_source

    if data is not None:
        if view or labels or test_view or test_labels:
            raise ValueError("give --data, or --view and --labels, not both")
        return find_source(data, listed(views))
    if not view:
        raise ValueError(
            "nothing to compare on; give --data DIR, or --view and --labels"
        )
    train = Part(tuple(view), None if labels is None else str(labels))
    test = None
    if test_view:
        test = Part(tuple(test_view), None if test_labels is None else str(test_labels))
    return Source("views", train, test)


def study_arguments(
    param: Annotated[
        list[str] | None,
        option(
            "A parameter of SAGL for all runs, e.g. steps=500. Repeat.",
            metavar="NAME=VALUE",
        ),
    ] = None,
    clusters: Annotated[
        int | None, option("By default as many as there are distinct labels.")
    ] = None,
    seeds: SeedsOption = 5,
    out: Annotated[
        Path, run_option("Results are kept, and taken up, here.", metavar="DIR")
    ] = Path("study"),
    device: DeviceOption = "auto",
) -> dict[str, Any]:
    """Arguments of a study of SAGL."""
    return {
        "params": parse_params(param),
        "n_clusters": clusters,
        "seeds": seeds,
        "out": out,
        "device": device,
    }


class Running(NamedTuple):
    """How the runs of a study are done and shown."""

    jobs: int
    minutes: float | None
    quiet: bool
    as_json: bool

    def run(self, study: Study) -> None:
        """Run it, write everything, and show it."""
        if self.jobs < 1:
            raise ValueError(f"--jobs must be at least 1; got {self.jobs}")
        progress = show_runs(study.total, self.quiet)
        with taken_up():
            study.run(jobs=self.jobs, minutes=self.minutes, progress=progress)
        files = study.write()
        if self.as_json:
            print_json({**study.as_json(), "files": files})
        else:
            show_study(study, files)


def running(
    jobs: Annotated[int, run_option("Runs at the same time.")] = 1,
    minutes: Annotated[float | None, run_option("Stop after so many minutes.")] = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> Running:
    return Running(jobs, minutes, quiet, as_json)


def show_runs(total: int, quiet: bool) -> Callable[[Any, dict[str, Any]], None]:
    """A line on stderr for every run that ends."""
    done = 0

    def show(task: Any, result: dict[str, Any]) -> None:
        nonlocal done
        done += 1
        if quiet:
            return
        what = result.get("error") or f"{_quality(result)} in {result['seconds']:.1f} s"
        name = f"{task.method.title or task.method.name}, seed {task.seed}"
        typer.echo(f"[{done}/{total}] {name}: {what}", err=True)

    return show


def _quality(result: dict[str, Any]) -> str:
    if "acc" in result["scores"]:
        return f"ACC {result['scores']['acc']:.3f}"
    return f"score {result['label_free']['total']:.3f}"


def parse_params(texts: list[str] | None) -> dict[str, Any]:
    """``NAME=VALUE`` options."""
    params: dict[str, Any] = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not (equals and name.strip()):
            raise ValueError(f"--param {text}: expected NAME=VALUE")
        params[name.strip()] = parse_value(value)
    return params


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


def show_study(study: Study, files: Sequence[str]) -> None:
    """Tables as wide as the terminal, what follows, and where everything is."""
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
    rows = study.rows()
    below = "" not in study.first  # notes, unless they mark the choice
    shown = [i for i, name in enumerate(columns) if name or not below]
    apart = [row.supervised for row in rows]
    for together in _fitting(columns, lines, shown, head, console.width):
        print_table(console, columns, lines, together, apart)
    for sentence in (*(_notes(rows) if below else ()), *study.sentences()):
        whole = "sagl fit" in sentence  # a command to be copied
        console.print(sentence, highlight=False, markup=False, soft_wrap=whole)
    where = f"kept in {study.out}: {', '.join(files)}"
    console.print(where, highlight=False, markup=False, soft_wrap=True)
    if study.command != "compare" and find_spec("matplotlib") is None:
        typer.echo(
            'sagl: figures need matplotlib: pip install "sagl[report]"', err=True
        )


def _notes(rows: Sequence[Row]) -> list[str]:
    """One line for each note, with all whom it concerns."""
    titles: dict[str, list[str]] = {}
    for row in rows:
        if row.note:
            titles.setdefault(row.note, []).append(row.title)
    return [f"{', '.join(names)}: {note}" for note, names in titles.items()]


def _fitting(
    columns: Sequence[str],
    lines: Sequence[Sequence[str]],
    shown: Sequence[int],
    head: int,
    width: int,
) -> list[list[int]]:
    """Columns shared out among tables of the terminal's width, each with the head."""

    def needed(i: int) -> int:
        cells = [columns[i], *(render(line[i]).plain for line in lines)]
        return max(cell_len(text) for text in cells) + _BETWEEN

    tables = [list(range(head))]
    for i in shown[head:]:
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
