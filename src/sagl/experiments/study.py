"""Many fits on the same samples: run, taken up, tabulated, written.

Each run is a process of its own (``one_run.py``) and leaves one file in the output
directory, named after everything that decides its result. A run that is there is not
repeated, so a study that was killed, or is asked for once more with another method,
takes up where it was. Whatever is compared (methods, ablations, settings, views) is a
list of methods; a subclass says which ones, and what follows from the rows.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from sagl._version import PEERS_REVISION, REVISION
from sagl.baselines.registry import Method
from sagl.checks import integer
from sagl.experiments.one_run import Result, Task, read_result, run_apart
from sagl.experiments.paper import published_figures
from sagl.experiments.table import (
    COLUMNS,
    Row,
    cells,
    csv_table,
    markdown_table,
    record,
    rows_of,
    shown,
)
from sagl.features.split import Source
from sagl.run import make_writable
from sagl.storage import write_json, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Study"]

Progress = Callable[[Task, Result], None]
RUNS = "runs"
SCORE = "label-free score (nats)"
_NEVER = "—"


class Study:
    """A set of runs in one directory, and the table of what they came to.

    Parameters
    ----------
    source : Source
    methods : sequence of Method
    out : Path
        Where results are kept.
    n_clusters : int, optional
        By default the number of distinct true labels.
    seeds : int, default=5
        Runs per method, with seeds 0, 1, and so on.
    looks : int, default=8
        Moments at which the quality so far is measured, outside the timed part.
    device : str, default="auto"
    views : mapping of a method's name to names of views, optional
        Methods that are fitted to some of the views only.
    """

    command: ClassVar[str]
    # What every run must come to: scores by true labels, or the label-free score, with
    # scores by labels if there are labels. An earlier run without its label-free score
    # counts as one that was never done in the second case alone.
    needs: ClassVar[Literal["labels", "score"]] = "score"
    first: ClassVar[tuple[str, ...]] = ("ACC", "NMI", "ARI", "score")  # columns
    hidden: ClassVar[tuple[str, ...]] = ()
    renamed: ClassVar[dict[str, str]] = {}

    def __init__(
        self,
        source: Source,
        methods: Sequence[Method],
        out: Path,
        *,
        n_clusters: int | None = None,
        seeds: int = 5,
        looks: int = 8,
        device: str = "auto",
        views: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.source = source
        self.out = out
        self.device = device
        if seeds < 1:
            raise ValueError(f"seeds must be at least 1; got {seeds}")
        train, train_labels = source.train.read()
        scored, truth = source.scored.read()
        if truth is None and self.needs == "labels":
            raise ValueError(
                f"{source.name}: there are no labels to score with; a comparison needs "
                "the true labels of the samples that it scores"
            )
        self.labelled = truth is not None
        if n_clusters is not None:
            self.n_clusters = integer("n_clusters", n_clusters, 2)
        elif truth is not None:
            self.n_clusters = len(np.unique(truth))
        else:
            raise ValueError(
                f"{source.name}: without labels the number of clusters is unknown; "
                "give it (--clusters)"
            )
        self.n_train, self.n_scored = len(train), len(scored)
        self.seeds = seeds
        self._looks = looks
        self._views = {name: tuple(some) for name, some in (views or {}).items()}
        self._train_labelled = train_labels is not None
        self._data = [train.fingerprint(), scored.fingerprint()]
        self._stop = False
        self.methods: list[Method] = []
        self.skipped: dict[str, str] = {}
        self.tasks: list[Task] = []
        self.add(methods)

    @property
    def total(self) -> int:
        """How many runs there will have been."""
        return len(self.tasks)

    def add(self, methods: Sequence[Method]) -> None:
        """Take in more methods."""
        for method in methods:
            self.methods.append(method)
            reason = _unmet(method, self._train_labelled)
            if reason is not None:
                self.skipped[method.name] = reason
                continue
            self.tasks += [
                Task(
                    method,
                    self.source,
                    self.n_clusters,
                    seed,
                    self._looks,
                    self.device,
                    self._views.get(method.name),
                )
                for seed in range(self.seeds if method.seeded else 1)
            ]

    def run(
        self,
        *,
        jobs: int = 1,
        minutes: float | None = None,
        progress: Progress = lambda task, result: None,
        tasks: Sequence[Task] | None = None,
    ) -> None:
        """Do every run that is not there yet; stop starting them after ``minutes``.

        ``tasks`` restricts it to some of the runs.
        """
        make_writable(self.out / RUNS)
        deadline = None if minutes is None else time.monotonic() + 60 * minutes
        threads = max(1, _cores() // jobs)

        def work(task: Task) -> None:
            progress(task, self._run(task, threads, deadline))

        # First one seed of every method: a table cut short still has all rows.
        in_turn = sorted(
            self.tasks if tasks is None else tasks, key=lambda task: task.seed
        )
        with ThreadPoolExecutor(jobs) as pool:
            try:
                list(pool.map(work, in_turn))
            except KeyboardInterrupt:
                self._stop = True
                raise

    def result(self, task: Task) -> Result | None:
        """What a run came to, or None if it has not been done."""
        result = read_result(self._file(task))
        if result is None or "error" in result or self.needs == "labels":
            return result
        return result if "label_free" in result else None

    def _run(self, task: Task, threads: int, deadline: float | None) -> Result:
        done = self.result(task)
        if done is not None and "error" not in done:
            return done
        if self._stop or (deadline is not None and time.monotonic() >= deadline):
            return {"error": "not run: the time was up"}

        def why_stop() -> str:
            if deadline is not None and time.monotonic() >= deadline:
                return "stopped: the time was up"
            return "stopped" if self._stop else ""

        return run_apart(task, self._file(task), threads, why_stop)

    def _file(self, task: Task) -> Path:
        method = task.method
        own = method.path.startswith("sagl.estimator:")
        decides = {
            "sagl": REVISION if own else PEERS_REVISION,
            "path": method.path,
            "params": method.params,
            "seed": task.seed,
            "n_clusters": task.n_clusters,
            "looks": task.looks,
            "data": self._data,
        }
        if task.views is not None:
            decides["views"] = task.views
        text = json.dumps(decides, sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        name = "".join(c if c.isalnum() or c in "-_." else "_" for c in method.name)
        return self.out / RUNS / f"{name}-{task.seed}-{digest}.json"

    def rows(self) -> list[Row]:
        """One per method, in the order in which they are shown."""
        results = [(task, self.result(task)) for task in self.tasks]
        published = published_figures(self.source.name)
        return rows_of(self.methods, results, self.skipped, published)

    def settings_of(self, row: Row) -> dict[str, Any]:
        """What sets the method apart, by the name of a column."""
        return {"method": row.marked_title}

    def figures(self) -> dict[str, Axes]:
        """Figures by the name of their file, as far as there is something to draw."""
        return {}

    def findings(self) -> dict[str, Any]:
        """What follows from the runs, for machines."""
        return {}

    def sentences(self) -> list[str]:
        """The same for people."""
        return []

    def heading(self) -> str:
        """What was fitted, and by which protocol it was scored."""
        fitted = (
            f"{self.source.name}: {self.n_clusters} clusters, {self.n_train:,} samples "
            "fitted; "
        )
        if not self.labelled:
            return fitted + "no labels: scored without them, on the fitted samples"
        how = "inductive: test samples, each predicted alone"
        if self.source.test is None:
            how = "the fitted samples"
        return fitted + f"scored with labels on {self.n_scored:,} ({how})"

    def table(
        self, bold: tuple[str, str] = ("**", "**")
    ) -> tuple[list[str], list[list[str]], int]:
        """Columns, lines, and how many columns say what sets a method apart.

        Columns in which nothing stands are left out.
        """
        rows = self.rows()
        settings = [self.settings_of(row) for row in rows]
        head = len(settings[0])
        columns = [*settings[0], *COLUMNS[1:]]
        lines = [
            [*map(shown, setting.values()), *line[1:]]
            for setting, line in zip(settings, cells(rows, bold), strict=True)
        ]
        kept = [
            i
            for i, name in enumerate(columns[head:], start=head)
            if name not in self.hidden and any(line[i].strip(_NEVER) for line in lines)
        ]
        places = {name: place for place, name in enumerate(self.first)}
        kept.sort(key=lambda i: places.get(columns[i], len(places)))
        order = [*range(head), *kept]
        return (
            [self.renamed.get(columns[i], columns[i]) for i in order],
            [[line[i] for i in order] for line in lines],
            head,
        )

    def markdown(self) -> str:
        """The table with what it says in words."""
        columns, lines, _ = self.table()
        text = [self.heading(), markdown_table(columns, lines), *self.sentences()]
        return "\n\n".join(part.strip() for part in text) + "\n"

    def records(self) -> list[dict[str, Any]]:
        """The rows as names and plain values."""
        return [{**self.settings_of(row), **record(row)} for row in self.rows()]

    def as_json(self) -> dict[str, Any]:
        """Everything: the protocol, the rows, every run, what follows."""
        runs = [
            {
                "method": task.method.name,
                "seed": task.seed,
                **(self.result(task) or {"error": "not run yet"}),
            }
            for task in self.tasks
        ]
        return {
            "command": self.command,
            "data": self.source.name,
            "n_train": self.n_train,
            "n_scored": self.n_scored,
            "n_clusters": self.n_clusters,
            "labelled": self.labelled,
            "protocol": "inductive" if self.source.test else "fitted samples",
            "rows": [
                {"told": self.settings_of(row), **asdict(row)} for row in self.rows()
            ],
            "runs": runs,
            "found": self.findings(),
        }

    def write(self) -> list[str]:
        """Write tables and figures; the names of the files."""
        write_text(self.out / "table.md", self.markdown())
        write_text(self.out / "table.csv", csv_table(self.records()))
        write_json(self.out / "table.json", self.as_json())
        names = ["table.md", "table.csv", "table.json"]
        if importlib.util.find_spec("matplotlib") is not None:
            from sagl.report import save

            for name, drawn in self.figures().items():
                for form in ("png", "svg"):
                    save(drawn, self.out / f"{name}.{form}")
                    names.append(f"{name}.{form}")
        return names


def acc_of(row: Row | None) -> float | None:
    return None if row is None else row.mean.get("acc")


def score_of(row: Row | None) -> float | None:
    """The label-free score, higher is better."""
    return None if row is None else row.label_free.get("total")


def best_by_score(rows: list[Row], seeds: int) -> Row | None:
    """The row that the label-free score chooses, among those with all their seeds.

    If none is complete yet, among those with most.
    """
    scored = [row for row in rows if row.label_free]
    most = max((row.runs for row in scored), default=0)
    full = [row for row in scored if row.runs >= min(seeds, most)]
    return max(full, key=lambda row: row.label_free["total"], default=None)


def marked(rows: list[Row], seeds: int, mark: str) -> list[Row]:
    """Best label-free score first, those without one last; the choice is marked."""
    best = best_by_score(rows, seeds)
    rows = [
        replace(row, note=f"{mark} {row.note}".strip()) if row is best else row
        for row in rows
    ]
    return sorted(rows, key=lambda row: -row.label_free.get("total", -1.0))


def _cores() -> int:
    """Those that this process may use, which a batch system may have restricted."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _unmet(method: Method, labelled: bool) -> str | None:
    if method.supervised and not labelled:
        return "not run: needs the labels of the training samples"
    if "class names" in method.needs and "class_names" not in method.params:
        return "not run: needs class names and a text encoder"
    return None
