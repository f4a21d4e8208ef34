"""Many fits on the same samples: run, taken up, tabulated, written.

Each run is a process of its own (``fit.py``) and leaves one file in the output
directory, named after everything that decides its result. A run that is there is not
repeated, so a study that was killed, or is asked for once more with another method,
takes up where it was. Whatever is compared (methods, ablations, settings, views) is a
list of methods; a subclass says which ones, and what follows from the rows.
"""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import io
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from sagl._version import PEERS_REVISION, REVISION
from sagl.baselines.registry import METHODS, Method
from sagl.checks import integer
from sagl.estimator import SAGL
from sagl.experiments.fit import Result, Task, read_result, run_apart
from sagl.experiments.table import (
    COLUMNS,
    NEVER,
    Row,
    cells,
    markdown_table,
    rows_of,
    shown,
)
from sagl.features.split import Source
from sagl.parameters import sagl_parameters
from sagl.settings import Settings
from sagl.storage import make_writable, write_json, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Study"]

RUNS = "runs"
SCORE = "label-free score (nats)"


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
    params : mapping, optional
        Parameters of SAGL, for methods that ``add_sagl`` adds.
    """

    command: ClassVar[str]
    # What every run must come to: scores by true labels, or the label-free score, with
    # scores by labels if there are labels. An earlier run without its label-free score
    # counts as one that was never done in the second case alone.
    needs: ClassVar[Literal["labels", "score"]] = "score"
    # Of the table, after those that set a method apart; empty ones are left out.
    columns: ClassVar[tuple[str, ...]] = (
        *("ACC", "NMI", "ARI", "score", "AMI", "clusters", "seconds", "peak MiB"),
        *("to k-means+10", "to TURTLE", "published", ""),
    )
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
        params: Mapping[str, Any] | None = None,
    ) -> None:
        self.source = source
        self.out = out
        self.device = device
        self.params = dict(params or {})
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
        self._train_labelled = train_labels is not None
        self._data = [train.fingerprint(), scored.fingerprint()]
        self._stop = False
        self._settings: dict[str, dict[str, Any]] = {}
        self.methods: list[Method] = []
        self.skipped: dict[str, str] = {}
        self.tasks: list[Task] = []
        self.add(methods)

    @property
    def total(self) -> int:
        """How many runs there will have been."""
        return len(self.tasks)

    def add(
        self, methods: Sequence[Method], views: tuple[str, ...] | None = None
    ) -> None:
        """Take in more methods, fitted to some of the views only if these are given."""
        for method in methods:
            self.methods.append(method)
            if method.supervised and not self._train_labelled:
                missing = "the labels of the training samples"
            elif "class names" in method.needs and "class_names" not in method.params:
                missing = "class names and a text encoder"
            else:
                missing = ""
            if missing:
                self.skipped[method.name] = f"not run: needs {missing}"
                continue
            same = (method, self.source, self.n_clusters)
            self.tasks += [
                Task(*same, seed, self._looks, self.device, views)
                for seed in range(self.seeds if method.seeded else 1)
            ]

    def add_sagl(self, settings: Mapping[str, Any]) -> str:
        """Take in SAGL with these settings, which come before ``params``; its name."""
        name = ",".join(f"{key}={shown(v)}" for key, v in settings.items())
        params = {**self.params, **settings}
        self.resolved(params)
        if name not in self._settings:
            self._settings[name] = dict(settings)
            self.add([replace(METHODS["sagl"], name=name, title=name, params=params)])
        return name

    def resolved(self, params: Mapping[str, Any]) -> Settings:
        """Complete settings of SAGL; what it would refuse is refused before any run."""
        free = sagl_parameters()
        for name in params:
            if name not in free:
                listed = ", ".join(sorted(free))
                raise ValueError(f"{name!r} cannot be set here; there are {listed}")
        return SAGL(self.n_clusters, **params).resolved(self.n_train)

    def run(
        self,
        *,
        jobs: int = 1,
        minutes: float | None = None,
        progress: Callable[[Task, Result], None] = lambda task, result: None,
    ) -> None:
        """Do every run that is not there yet; stop after ``minutes``."""
        make_writable(self.out / RUNS)
        deadline = math.inf if minutes is None else time.monotonic() + 60 * minutes
        threads = max(1, _cores() // jobs)

        def work(task: Task) -> None:
            progress(task, self._run(task, threads, deadline))

        for tasks in self.rounds():
            # First one seed of every method: a table cut short still has all rows.
            in_turn = sorted(tasks, key=lambda task: task.seed)
            with ThreadPoolExecutor(jobs) as pool:
                try:
                    list(pool.map(work, in_turn))
                except KeyboardInterrupt:
                    self._stop = True
                    raise

    def rounds(self) -> Iterator[Sequence[Task]]:
        """The runs; where some depend on the results of others, one part at a time."""
        yield self.tasks

    def result(self, task: Task) -> Result | None:
        """What a run came to, or None if it has not been done."""
        result = read_result(self._file(task))
        if result is None or "error" in result or self.needs == "labels":
            return result
        return result if "label_free" in result else None

    def _run(self, task: Task, threads: int, deadline: float) -> Result:
        def why_stop() -> str:
            if time.monotonic() >= deadline:
                return "the time was up"
            return "interrupted" if self._stop else ""

        done = self.result(task)
        if done is not None and "error" not in done:
            return done
        if reason := why_stop():
            return {"error": f"not run: {reason}"}
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
        return rows_of(self.methods, results, self.skipped)

    def settings_of(self, row: Row) -> dict[str, Any]:
        """What sets the method apart, by the name of a column."""
        return self._settings.get(row.name) or {"method": row.marked_title}

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
        protocol = "inductive: test samples, each predicted alone"
        if self.source.test is None:
            protocol = "the fitted samples"
        return fitted + f"scored with labels on {self.n_scored:,} ({protocol})"

    def texts(self, rows: Sequence[Row]) -> list[dict[str, str]]:
        """Of each row, what may stand in the table, by the name of a column."""
        return [dict(zip(COLUMNS, line, strict=True)) for line in cells(rows)]

    def table(self) -> tuple[list[str], list[list[str]], int]:
        """Columns, lines, and how many columns say what sets a method apart."""
        rows = self.rows()
        settings = [self.settings_of(row) for row in rows]
        texts = self.texts(rows)
        kept = [c for c in self.columns if any(t[c].strip(NEVER) for t in texts)]
        lines = [
            [*map(shown, setting.values()), *(text[c] for c in kept)]
            for setting, text in zip(settings, texts, strict=True)
        ]
        named = [self.renamed.get(column, column) for column in kept]
        return [*settings[0], *named], lines, len(settings[0])

    def markdown(self) -> str:
        """The table with what it says in words."""
        columns, lines, _ = self.table()
        sentences = "".join(f"- {sentence}\n" for sentence in self.sentences())
        parts = [f"{self.heading()}\n", markdown_table(columns, lines), sentences]
        return "\n".join(part for part in parts if part)

    def records(self) -> list[dict[str, Any]]:
        """The rows as names and plain values."""
        return [{**self.settings_of(row), **row.record()} for row in self.rows()]

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
        facts = ("command", "n_train", "n_scored", "n_clusters", "labelled")
        return {
            **{name: getattr(self, name) for name in facts},
            "data": self.source.name,
            "protocol": "inductive" if self.source.test else "fitted samples",
            "rows": [
                {"told": self.settings_of(row), **asdict(row)} for row in self.rows()
            ],
            "runs": runs,
            "found": self.findings(),
        }

    def write(self) -> list[str]:
        """Write tables and figures; the names of the files."""
        records, text = self.records(), io.StringIO()
        writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        write_text(self.out / "table.md", self.markdown())
        write_text(self.out / "table.csv", text.getvalue())
        write_json(self.out / "table.json", self.as_json())
        names = ["table.md", "table.csv", "table.json"]
        if importlib.util.find_spec("matplotlib") is not None:
            from sagl.report import save

            for name, drawn in self.figures().items():
                for form in ("png", "svg"):
                    save(drawn, self.out / f"{name}.{form}")
                    names.append(f"{name}.{form}")
        return names


def _cores() -> int:
    """Those that this process may use, which a batch system may have restricted."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
