"""One method and one seed: ``python -m sagl.experiments.one_run TASK RESULT``.

A process of its own, because its peak memory can then be measured, because several can
run at once, and because a crash costs one row and not the table. It reads a task (JSON)
and writes a result (JSON, atomically). Labels of the training part reach supervised
methods alone; those of the scored part only score, and there may be none. How well the
views predict the clusters found (``label_free``, in nats) is measured in any case.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sagl.baselines.base import Baseline, Watch
from sagl.baselines.registry import Method
from sagl.estimator import SAGL
from sagl.evaluation.metrics import clustering_accuracy, clustering_scores
from sagl.features.split import Source
from sagl.selection import label_free_score
from sagl.storage import write_json
from sagl.training.callbacks import Callback
from sagl.training.trainer import Trainer
from sagl.views import Views

__all__ = ["Result", "Task", "run_task"]

Result = dict[str, Any]
_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Task:
    """What one process is to do."""

    method: Method
    source: Source
    n_clusters: int
    seed: int
    looks: int  # at how many moments of the training the test samples are labelled
    device: str = "auto"
    views: tuple[str, ...] | None = None  # those to fit, if not all

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "source": self.source.as_dict()}

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Task:
        method = dict(value["method"])
        method["needs"] = tuple(method["needs"])
        views = value["views"]
        return cls(
            **{
                **value,
                "method": Method(**method),
                "source": Source.from_dict(value["source"]),
                "views": None if views is None else tuple(views),
            }
        )


def run_task(task: Task) -> Result:
    """Fit, predict, score; what it found, how long it took, how much memory."""
    everything, train_labels = task.source.train.read()
    scored, truth = task.source.scored.read()
    train = _only(everything, task.views)
    scored = _only(scored, task.views)
    model = _model(task)
    watch = Watch(scored, task.looks)
    labels = train_labels if task.method.supervised else None
    _warm_up()
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if isinstance(model, Baseline):
            model.fit(train, labels, watch=watch)
        elif isinstance(model, SAGL):
            model.set_params(callbacks=[_Look(watch, model, train)]).fit(train)
        else:  # anything with scikit-learn's methods
            model.fit(train, labels) if labels is not None else model.fit(train)
    seconds = time.perf_counter() - start - watch.paused
    predicted = np.asarray(model.predict(scored))
    peak = peak_mib()  # before the score, which is no part of the method
    scores: dict[str, float] = {"n_clusters": len(np.unique(predicted))}
    curve: list[tuple[float, float]] = []
    if truth is not None:
        scores = clustering_scores(truth, predicted)
        curve = [(at, clustering_accuracy(truth, labels)) for at, labels in watch.curve]
        curve.append((seconds, scores["acc"]))
    return {
        "scores": scores,
        "label_free": _label_free(model, train, everything),
        "seconds": seconds,
        "peak_mib": peak,
        "curve": curve,
        "warnings": sorted({" ".join(str(w.message).split()) for w in caught}),
    }


def _only(views: Views, names: tuple[str, ...] | None) -> Views:
    return views if names is None else Views({name: views[name] for name in names})


def _model(task: Task) -> Any:
    made = task.method.load()
    params = {"random_state": task.seed, **task.method.params}
    if "device" in inspect.signature(made).parameters:
        params.setdefault("device", task.device)
    return made(task.n_clusters, **params)


def _label_free(model: Any, train: Views, everything: Views) -> dict[str, float]:
    """How well all views, fitted or not, predict the clusters of the fitted samples.

    Not only those that were fitted: runs on different views could not be compared.
    """
    labels = getattr(model, "labels_", None)
    score = label_free_score(
        everything, model.predict(train) if labels is None else labels
    )
    return {**score._asdict(), "total": score.total}


def _warm_up() -> None:
    """Let torch load what it loads on first use, which is no part of any method."""
    layer = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(layer.parameters())
    layer(torch.zeros(1, 2)).sum().backward()
    optimizer.step()


class _Look(Callback):
    """Lets a watch look at SAGL while it trains."""

    def __init__(self, watch: Watch, model: SAGL, views: Views) -> None:
        self.watch = watch
        self.model = model
        self.views = views
        watch.begin()

    def on_step(self, trainer: Trainer) -> None:
        if trainer.partitions is not None:
            return  # clusters are known before the training, heads after it
        if self.watch.due(trainer.step, trainer.plan.steps):
            self.watch.look(lambda views: self._predict(trainer, views))

    def _predict(self, trainer: Trainer, views: Views) -> Any:
        peek = SAGL(**self.model.get_params(deep=False))
        settings = peek.resolved(len(self.views))
        return peek.adopt(trainer.network, settings, self.views).predict(views)


def peak_mib() -> float:
    """The most memory this process has held so far, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():
        peak_kb = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        if peak_kb:
            return int(peak_kb[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def run_apart(
    task: Task, file: Path, threads: int, why_stop: Callable[[], str]
) -> Result:
    """Run a task in a process of its own and keep what it comes to in ``file``.

    An earlier result stays until there is a new one. ``why_stop`` is asked all the
    while; a process that is stopped leaves nothing.
    """
    order, fresh = file.with_suffix(".task"), file.with_suffix(".new")
    log_file = file.with_suffix(".log")
    fresh.unlink(missing_ok=True)
    write_json(order, task.as_dict())
    limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
    command = [sys.executable, "-m", "sagl.experiments.one_run"]
    stopped = ""
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [*command, str(order), str(fresh)],
            env={**os.environ, **limits},
            stdout=log,
            stderr=log,
        )
        while process.poll() is None:
            stopped = why_stop()
            if stopped:
                process.kill()
                process.wait()
                break
            time.sleep(_POLL_SECONDS)
    order.unlink(missing_ok=True)
    result = read_result(fresh)
    if result is None:
        fresh.unlink(missing_ok=True)
        if stopped:
            return {"error": stopped}
        result = {"error": _last_words(log_file, process.returncode)}
        write_json(file, result)
    else:
        fresh.replace(file)
    if "error" not in result:
        log_file.unlink(missing_ok=True)
    return result


def read_result(file: Path) -> Result | None:
    """What a process wrote, or None if there is nothing, or nothing whole."""
    try:
        result: Result = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return result


def _last_words(log: Path, code: int) -> str:
    """Why a process ended without a result."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    said = next((line.strip() for line in reversed(lines) if line.strip()), "")
    if code < 0:
        return f"killed by signal {-code}; out of memory? {said}".strip()
    return f"ended with code {code}: {said}"


def main(task_file: str, result_file: str) -> None:
    task = Task.from_dict(json.loads(Path(task_file).read_text(encoding="utf-8")))
    try:
        result = run_task(task)
    except Exception as error:  # whatever it is becomes a row of the table
        reason = " ".join(str(error).split())
        result = {"error": f"{type(error).__name__}: {reason}"}
    write_json(Path(result_file), result)


if __name__ == "__main__":
    main(*sys.argv[1:])
