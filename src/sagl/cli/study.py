"""What the commands that run studies share: their options, running, showing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
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
    refuse_idle,
    running,
    samples,
    say,
    taken_up,
    takes,
    together,
    visible,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sagl.experiments.study import Study
    from sagl.experiments.table import Row
    from sagl.features.split import Source

SEEDS = running(5, "Runs per row.")


def find_data(
    data: Path | None = samples(
        None,
        "A directory with train/ and perhaps test/, each with one file per view "
        "and labels.npy; or a feature store.",
        metavar="DIR",
    ),
    views: str | None = samples(None, "Of --data, only these.", metavar="NAME,…"),
    view: list[str] | None = samples(
        None, "Or: a view to fit. Repeat.", "--view", metavar="NAME=FILE"
    ),
    labels: str | None = samples(
        None, "Labels for --view: they only score.", metavar="FILE"
    ),
    test_view: list[str] | None = samples(
        None, "The same view of test samples.", metavar="NAME=FILE"
    ),
    test_labels: str | None = samples(None, "Labels for --test-view.", metavar="FILE"),
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
    refuse_idle("--view names the views", "views")
    if not test_view:
        refuse_idle("there is no --test-view", "test_labels")
    test = Part(tuple(test_view), test_labels) if test_view else None
    return Source("views", Part(tuple(view), labels), test)


@dataclass(frozen=True)
class Running:
    """How the runs of a study are done and shown."""

    jobs: int = running(1, "Runs at the same time.")
    minutes: float | None = running(None, "Stop after so many minutes.")
    quiet: bool = QUIET
    as_json: bool = JSON

    def __post_init__(self) -> None:
        from sagl.checks import integer, number

        integer("--jobs", self.jobs, 1)
        if self.minutes is not None:
            number("--minutes", self.minutes, 0)

    def run(self, study: Study) -> None:
        """Run it, write everything, and show it."""
        with together() as ranks, taken_up():
            own = -(-study.total // ranks.count)  # runs of the first process
            progress = show_runs(own, self.quiet or not ranks.first)
            study.run(jobs=self.jobs, minutes=self.minutes, progress=progress)
        if not ranks.first:
            return
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
    out: Path = running(
        Path("study"), "Results are kept, and taken up, here.", metavar="DIR"
    )
    device: str = DEVICE

    def run(self, study: Callable[..., Study], **more: Any) -> None:
        """Make a study and run it; ``more`` is what it takes beside the options."""
        pairs = parse_pairs("--param", self.param)
        arguments = {
            **{
                name: getattr(self, name)
                for name in ("source", "out", "seeds", "device")
            },
            "params": {name: parse_value(value) for name, value in pairs.items()},
            "n_clusters": self.clusters,
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
    """A table as wide as the terminal, what follows, and where everything is."""
    console = Console()
    console.print(study.heading(), highlight=False, markup=False)
    (columns, lines), rows = study.table(), study.rows()
    named = [column for column in columns if column]  # notes stand below
    cells = [[_cell(text) for text in line[: len(named)]] for line in lines]
    plain = [[c, *(line[i].plain for line in cells)] for i, c in enumerate(named)]
    widths = fitting_widths(plain, console.width)
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=0)
    for i, width in enumerate(widths):
        table.add_column(named[i], justify="right" if i else "left", width=width)
    for line, row, after in zip(cells, rows, [*rows[1:], rows[-1]], strict=True):
        apart = after.supervised and not row.supervised
        table.add_row(*line[: len(widths)], end_section=apart)
    console.print("", table, "", sep="\n")
    sentences = [*_notes(rows), *study.sentences()]
    if left_out := ", ".join(named[len(widths) :]):
        sentences.insert(0, f"for want of room in table.md alone: {left_out}")
    for sentence in sentences:
        whole = "sagl fit" in sentence  # a command to be copied
        console.print(sentence, highlight=False, markup=False, soft_wrap=whole)
    say(f"kept in {study.out}: {', '.join(files)}")
    if study.command != "compare" and find_spec("matplotlib") is None:
        cure = 'pip install "sagl[report]"'
        typer.echo(f"sagl: figures need matplotlib: {cure}", err=True)


def fitting_widths(columns: Sequence[Sequence[str]], width: int) -> list[int]:
    """Of the first columns, as many as fit beside each other.

    Two blanks apart, or if that is too wide, cells broken between words and one blank.
    """
    whole = [max(map(cell_len, texts)) for texts in columns]
    if sum(whole) + 2 * len(whole) <= width:
        return [most + 1 for most in whole]
    words = [max(map(cell_len, " ".join(texts).split())) for texts in columns]
    while sum(words) + len(words) > width and len(words) > 2:
        words.pop()
    left = width - sum(words) - len(words)
    return [min(whole[0], words[0] + max(left, 0)), *words[1:]]


def _cell(text: str) -> Text:
    """A cell of a table in Markdown; a deviation is one word."""
    bold = text.startswith("**") and text.endswith("**")
    text = visible(text.strip("*").replace("± ", "±"))
    return Text(text, style="bold" if bold else "")


def _notes(rows: Sequence[Row]) -> list[str]:
    """One line for each note, with all whom it concerns."""
    titles: dict[str, list[str]] = {}
    for row in rows:
        if row.note:
            titles.setdefault(row.note, []).append(row.title)
    return [f"{', '.join(names)}: {note}" for note, names in titles.items()]
