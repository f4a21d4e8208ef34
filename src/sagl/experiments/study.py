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
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sagl._version import PEERS_REVISION, REVISION
from sagl.baselines.registry import METHODS, Method
from sagl.checks import integer
from sagl.environment import cores
from sagl.estimator import SAGL
from sagl.experiments.fit import Result, Task, read_result, run_apart
from sagl.experiments.table import NEVER, Row, cells, markdown_table, rows_of, shown
from sagl.features.split import Source
from sagl.parameters import sagl_parameters
from sagl.settings import Settings
from sagl.storage import clear_leftovers, held, make_writable, write_json, write_text
from sagl.training.distributed import ranks
from sagl.unchanged import Unchanged

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Study"]

RUNS = "runs"
TABLES = ("table.md", "table.csv", "table.json")
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
    needs_labels: ClassVar[bool] = False
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
        self.seeds = integer("seeds", seeds, 1)
        # Each run reads them anew, and is kept as one of what is there now.
        self._files = Unchanged({*source.train.files, *source.scored.files})
        for part in {source.train, source.scored}:
            part.check_files()
        train, train_labels = source.train.read()
        scored, truth = source.scored.read()
        self.labelled = truth is not None
        if self.needs_labels and not self.labelled:
            raise ValueError(
                f"{source.name}: there are no labels to score with; a comparison needs "
                "the true labels of the samples that it scores"
            )
        if n_clusters is None:
            if truth is None:
                raise ValueError(
                    f"{source.name}: without labels the number of clusters is unknown; "
                    "give it (--clusters)"
                )
            n_clusters = len(np.unique(truth))
        self.n_clusters = integer("n_clusters", n_clusters, 2)
        self.n_train, self.n_scored = len(train), len(scored)
        self._looks = looks
        self._train_labelled = train_labels is not None
        self._data = [train.fingerprint(), scored.fingerprint()]
        self._stop = False
        self._told: dict[str, dict[str, Any]] = {}
        self.methods: list[Method] = []
        self.skipped: dict[str, str] = {}
        self.tasks: list[Task] = []
        for method in methods:
            self.add(method)

    @property
    def total(self) -> int:
        """How many runs there will have been."""
        return len(self.tasks)

    def add(
        self,
        method: Method,
        told: Mapping[str, Any] | None = None,
        views: tuple[str, ...] | None = None,
    ) -> None:
        """Take in one more method, fitted to some of the views only if these are given.

        ``told`` is what sets it apart in the table, by the name of a column.
        """
        self.methods.append(method)
        self._told[method.name] = dict(told or {})
        if method.supervised and not self._train_labelled:
            missing = "the labels of the training samples"
        elif "class names" in method.needs and "class_names" not in method.params:
            missing = "class names and a text encoder"
        else:
            same = (method, self.source, self.n_clusters)
            self.tasks += [
                Task(*same, seed, self._looks, self.device, views)
                for seed in range(self.seeds if method.seeded else 1)
            ]
            return
        self.skipped[method.name] = f"not run: needs {missing}"

    def add_sagl(self, settings: Mapping[str, Any]) -> str:
        """Take in SAGL with these settings, which come before ``params``; its name."""
        name = ",".join(f"{key}={shown(v)}" for key, v in settings.items())
        params = {**self.params, **settings}
        self.resolved(params)
        if name not in self._told:
            sagl = replace(METHODS["sagl"], name=name, title=name, params=params)
            self.add(sagl, settings)
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
        """Do every run that is not there yet; stop after ``minutes``.

        Each of several processes does some of them; all must see ``out``.
        """
        deadline = math.inf if minutes is None else time.monotonic() + 60 * minutes
        threads = max(1, cores() // jobs)

        def work(task: Task) -> None:
            progress(task, self._run(task, threads, deadline))

        with self._alone():
            for tasks in self.rounds():
                # First one seed of every method: a table cut short still has all rows.
                in_turn = sorted(tasks, key=lambda task: task.seed)
                here = ranks()
                own = in_turn[here.index :: here.count]
                with ThreadPoolExecutor(jobs) as pool:
                    try:
                        list(pool.map(work, own))
                    except BaseException:
                        self._stop = True
                        raise
                here.barrier()  # what comes next may depend on all results

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other commands away from the runs; the first of our processes does."""
        runs = self.out / RUNS
        for table in (self.out / name for name in TABLES):
            if table.exists() and not runs.exists():
                raise ValueError(
                    f"{table} is of no study, and would be overwritten; choose another "
                    "directory"
                )
        make_writable(runs)
        if not ranks().first:
            yield
            return
        with held(runs, "study"):
            clear_leftovers(self.out)  # nobody else is at work on it
            yield

    def rounds(self) -> Iterator[Sequence[Task]]:
        """The runs; where some depend on the results of others, one part at a time."""
        yield self.tasks

    def result(self, task: Task) -> Result | None:
        """What a run came to, or None if it has not been done."""
        return read_result(self._file(task))

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
        self._files.check()
        return run_apart(task, self._file(task), threads, why_stop)

    def _file(self, task: Task) -> Path:
        method = task.method
        own = method.path == METHODS["sagl"].path
        decides = {
            "sagl": REVISION if own else PEERS_REVISION,
            "path": method.path,
            "params": method.params,
            "seed": task.seed,
            "n_clusters": task.n_clusters,
            "looks": task.looks,
            "data": self._data,
            **({} if task.views is None else {"views": task.views}),
        }
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
        return self._told.get(row.name) or {"method": row.marked_title}

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

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Columns and lines; of the columns that study and rows share, those in use."""
        rows = self.rows()
        settings, texts = [self.settings_of(row) for row in rows], cells(rows)
        kept = [c for c in self.columns if any(t[c].strip(NEVER) for t in texts)]
        lines = [
            [*map(shown, setting.values()), *(text[c] for c in kept)]
            for setting, text in zip(settings, texts, strict=True)
        ]
        return [*settings[0], *(self.renamed.get(c, c) for c in kept)], lines

    def markdown(self) -> str:
        """The table with what it says in words."""
        sentences = "".join(f"- {sentence}\n" for sentence in self.sentences())
        parts = [f"{self.heading()}\n", markdown_table(*self.table()), sentences]
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
        names = [*TABLES]
        if importlib.util.find_spec("matplotlib") is not None:
            from sagl.report import save

            for name, drawn in self.figures().items():
                for form in ("png", "svg"):
                    save(drawn, self.out / f"{name}.{form}")
                    names.append(f"{name}.{form}")
        return names
