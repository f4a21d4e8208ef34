"""What the commands that run studies share: their options, running, showing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sagl.cli.options import (
    DEVICE,
    JSON,
    QUIET,
    listed,
    option,
    print_json,
    taken_up,
    takes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sagl.experiments.study import Study
    from sagl.experiments.table import Row
    from sagl.features.split import Source

_BETWEEN = 3  # blanks between two columns of a table

data_option = partial(option, panel="What to run on")
run_option = partial(option, panel="Runs")
SEEDS = run_option(5, "Runs per row.")


def find_data(
    data: Path | None = data_option(
        None,
        "A directory with train/ and perhaps test/, each with one file per view "
        "and labels.npy; or a feature store.",
    ),
    views: str | None = data_option(None, "Of --data, only these: NAME,NAME,…"),
    view: list[str] | None = data_option(
        None, "Or: a view to fit. Repeat.", "--view", metavar="NAME=FILE"
    ),
    labels: Path | None = data_option(None, "Labels for --view: they only score."),
    test_view: list[str] | None = data_option(
        None, "The same view of test samples.", metavar="NAME=FILE"
    ),
    test_labels: Path | None = data_option(None, "Labels for --test-view."),
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
    train = Part(tuple(view), str(labels) if labels else None)
    test = None
    if test_view:
        test = Part(tuple(test_view), str(test_labels) if test_labels else None)
    return Source("views", train, test)


@dataclass(frozen=True)
class Running:
    """How the runs of a study are done and shown."""

    jobs: int = run_option(1, "Runs at the same time.")
    minutes: float | None = run_option(None, "Stop after so many minutes.")
    quiet: bool = QUIET
    as_json: bool = JSON

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise ValueError(f"--jobs must be at least 1; got {self.jobs}")

    def run(self, study: Study) -> None:
        """Run it, write everything, and show it."""
        progress = show_runs(study.total, self.quiet)
        with taken_up():
            study.run(jobs=self.jobs, minutes=self.minutes, progress=progress)
        files = study.write()
        if self.as_json:
            print_json({**study.as_json(), "files": files})
        else:
            show_study(study, files)


@dataclass(frozen=True)
class StudyOptions:
    """What every study is made with, and how its runs are done."""

    source: Source
    runs: Running
    param: list[str] | None = option(
        None,
        "A parameter of SAGL for all runs, e.g. steps=500. Repeat.",
        metavar="NAME=VALUE",
    )
    clusters: int | None = option(
        None, "By default as many as there are distinct labels."
    )
    seeds: int = SEEDS
    out: Path = run_option(
        Path("study"), "Results are kept, and taken up, here.", metavar="DIR"
    )
    device: str = DEVICE

    def run(self, study: Callable[..., Study], **more: Any) -> None:
        """Make a study and run it; ``more`` is what it takes beside the options."""
        pairs = parse_pairs("--param", self.param)
        arguments = {
            "source": self.source,
            "out": self.out,
            "params": {name: parse_value(value) for name, value in pairs.items()},
            "n_clusters": self.clusters,
            "seeds": self.seeds,
            "device": self.device,
        }
        self.runs.run(study(**{**arguments, **more}))


study_options = takes(find_data, Running)(StudyOptions)


def show_runs(total: int, quiet: bool) -> Callable[[Any, dict[str, Any]], None]:
    """A line on stderr for every run that ends."""
    done = 0

    def show(task: Any, result: dict[str, Any]) -> None:
        nonlocal done
        done += 1
        if quiet:
            return
        outcome = result.get("error")
        if outcome is None:
            outcome = f"score {result['label_free']['total']:.3f}"
            if "acc" in result["scores"]:
                outcome = f"ACC {result['scores']['acc']:.3f}"
            outcome += f" in {result['seconds']:.1f} s"
        name = f"{task.method.title or task.method.name}, seed {task.seed}"
        typer.echo(f"[{done}/{total}] {name}: {outcome}", err=True)

    return show


def parse_pairs(
    option: str, texts: list[str] | None, form: str = "NAME=VALUE"
) -> dict[str, str]:
    """The values of an option that takes NAME=VALUE and may be repeated."""
    pairs: dict[str, str] = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not (equals and name):
            raise ValueError(f"{option} {text}: expected {form}")
        if name in pairs:
            raise ValueError(f"{option} {text}: {name} is given twice")
        pairs[name] = value
    return pairs


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
    columns, lines, head = study.table()
    rows, sentences = study.rows(), study.sentences()
    places = list(range(head, len(columns)))
    if study.columns[-1] == "":  # notes stand below, unless they mark the choice
        places = [i for i in places if columns[i]]
        sentences = [*_notes(rows), *sentences]
    cells = [[_cell(text) for text in line] for line in lines]
    for fitting in _fitting(columns, cells, places, head, console.width):
        shown = [*range(head), *fitting]
        table = narrow_table([columns[i] for i in shown])
        for i, (row, line) in enumerate(zip(rows, cells, strict=True)):
            if row.supervised and i and not rows[i - 1].supervised:
                table.add_section()
            if any(line[i] for i in fitting):
                table.add_row(*(line[i] for i in shown))
        console.print(table)
    for sentence in sentences:
        whole = "sagl fit" in sentence  # a command to be copied
        console.print(sentence, highlight=False, markup=False, soft_wrap=whole)
    where = f"kept in {study.out}: {', '.join(files)}"
    console.print(where, highlight=False, markup=False, soft_wrap=True)
    if study.command != "compare" and find_spec("matplotlib") is None:
        typer.echo(
            'sagl: figures need matplotlib: pip install "sagl[report]"', err=True
        )


def _cell(text: str) -> Text:
    """A cell of a table in Markdown."""
    bold = text.startswith("**") and text.endswith("**")
    return Text(text.strip("*"), style="bold") if bold else Text(text)


def _notes(rows: Sequence[Row]) -> list[str]:
    """One line for each note, with all whom it concerns."""
    titles: dict[str, list[str]] = {}
    for row in rows:
        if row.note:
            titles.setdefault(row.note, []).append(row.title)
    return [f"{', '.join(names)}: {note}" for note, names in titles.items()]


def _fitting(
    columns: Sequence[str],
    cells: Sequence[Sequence[Text]],
    places: Sequence[int],
    head: int,
    width: int,
) -> list[list[int]]:
    """Columns shared out among tables of the terminal's width, each after the head."""

    def needed(i: int) -> int:
        texts = [Text(columns[i]), *(line[i] for line in cells)]
        return max(text.cell_len for text in texts) + _BETWEEN

    left = width - sum(map(needed, range(head)))
    tables: list[list[int]] = [[]]
    for i in places:
        if tables[-1] and sum(map(needed, [*tables[-1], i])) > left:
            tables.append([])
        tables[-1].append(i)
    return tables


def narrow_table(columns: Sequence[str]) -> Table:
    """Without lines between columns, which are as wide as their widest cell."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left", no_wrap=True)
    return table
