"""Every method on the same samples, several seeds each: a table that survives anything.

Each run is a process of its own (``one_run.py``) and leaves one file in the output
directory, named after everything that decides its result. A run that is there is not
repeated, so a comparison that was killed, or is asked for once more with another
method, takes up where it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sagl._version import PEERS_REVISION, REVISION
from sagl.baselines.registry import Method
from sagl.checks import integer
from sagl.experiments.one_run import Task
from sagl.features.split import Source
from sagl.run import make_writable
from sagl.storage import write_json

Result = dict[str, Any]
RUNS = "runs"
_POLL_SECONDS = 0.2


class Comparison:
    """A set of runs in one directory.

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
    needs : {"labels", "score"}, default="labels"
        What every run must come to: scores by true labels, or the label-free score,
        with scores by labels if there are labels. An earlier run without its
        label-free score counts as one that was never done in the second case alone.
    views : mapping of a method's name to names of views, optional
        Methods that are fitted to some of the views only.
    """

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
        needs: Literal["labels", "score"] = "labels",
        views: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.source = source
        self.out = out
        self.device = device
        if seeds < 1:
            raise ValueError(f"seeds must be at least 1; got {seeds}")
        train, train_labels = source.train.read()
        scored, truth = source.scored.read()
        if truth is None and needs == "labels":
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
        self._needs = needs
        self._views = {name: tuple(some) for name, some in (views or {}).items()}
        self._train_labelled = train_labels is not None
        self._data = [train.fingerprint(), scored.fingerprint()]
        self.methods: list[Method] = []
        self.skipped: dict[str, str] = {}
        self.tasks: list[Task] = []
        self.add(methods)

    @property
    def total(self) -> int:
        """How many runs there are."""
        return len(self.tasks)

    def add(self, methods: Sequence[Method]) -> list[Task]:
        """Take in more methods; the tasks that they make."""
        tasks: list[Task] = []
        for method in methods:
            self.methods.append(method)
            reason = _unmet(method, self._train_labelled)
            if reason is not None:
                self.skipped[method.name] = reason
                continue
            tasks += [
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
        self.tasks += tasks
        return tasks

    def run(
        self,
        *,
        jobs: int = 1,
        minutes: float | None = None,
        progress: Callable[[Task, Result], None] = lambda task, result: None,
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

        with ThreadPoolExecutor(jobs) as pool:
            try:
                list(pool.map(work, _in_turn(self.tasks if tasks is None else tasks)))
            except KeyboardInterrupt:
                self._stop = True
                raise

    def result(self, task: Task) -> Result | None:
        """What a run came to, or None if it has not been done."""
        found = _read(self._file(task))
        if found is None or "error" in found or self._needs == "labels":
            return found
        return found if "label_free" in found else None

    _stop = False

    def _run(self, task: Task, threads: int, deadline: float | None) -> Result:
        done = self.result(task)
        if done is not None and "error" not in done:
            return done
        if self._stop or (deadline is not None and time.monotonic() >= deadline):
            return {"error": "not run: the time was up"}
        file = self._file(task)
        # An earlier result stays until there is a new one.
        order, fresh = file.with_suffix(".task"), file.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        write_json(order, task.as_dict())
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": str(threads),
            "MKL_NUM_THREADS": str(threads),
        }
        command = [sys.executable, "-m", "sagl.experiments.one_run"]
        with file.with_suffix(".log").open("wb") as log:
            process = subprocess.Popen(
                [*command, str(order), str(fresh)],
                env=environment,
                stdout=log,
                stderr=log,
            )
            stopped = self._wait(process, deadline)
        order.unlink(missing_ok=True)
        result = _read(fresh)
        if result is None:
            fresh.unlink(missing_ok=True)
            if stopped:
                return {"error": stopped}
            result = {"error": _last_words(file.with_suffix(".log"), process)}
            write_json(file, result)
        else:
            fresh.replace(file)
        if "error" not in result:
            file.with_suffix(".log").unlink(missing_ok=True)
        return result

    def _wait(self, process: subprocess.Popen[bytes], deadline: float | None) -> str:
        while process.poll() is None:
            late = deadline is not None and time.monotonic() >= deadline
            if late or self._stop:
                process.kill()
                process.wait()
                return "stopped: the time was up" if late else "stopped"
            time.sleep(_POLL_SECONDS)
        return ""

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


def _cores() -> int:
    """Those that this process may use, which a batch system may have restricted."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _in_turn(tasks: Sequence[Task]) -> list[Task]:
    """First one seed of every method: a table cut short still has all rows."""
    return sorted(tasks, key=lambda task: task.seed)


def _read(file: Path) -> Result | None:
    try:
        found: Result = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found


def _unmet(method: Method, labelled: bool) -> str | None:
    if method.supervised and not labelled:
        return "not run: needs the labels of the training samples"
    if "class names" in method.needs and "class_names" not in method.params:
        return "not run: needs class names and a text encoder"
    return None


def _last_words(log: Path, process: subprocess.Popen[bytes]) -> str:
    """Why a process ended without a result."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    said = next((line.strip() for line in reversed(lines) if line.strip()), "")
    if process.returncode < 0:
        return f"killed by signal {-process.returncode}; out of memory? {said}".strip()
    return f"ended with code {process.returncode}: {said}"
