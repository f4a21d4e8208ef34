"""One fit: into a run directory, or as one run of a study in a process of its own.

A run of a study (``python -m sagl.experiments.fit RESULT PARENT`` with a task as JSON
on stdin) is a process because its peak memory can then be measured, because several can
run at once, and because a crash costs one row and not the table. Labels of the training
part reach supervised methods alone; those of the scored part only score, and there may
be none. How well the views predict the clusters (``label_free``, in nats) is measured
in any case.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np
import torch
from scipy.sparse import csr_matrix, save_npz

from sagl.baselines.base import Baseline, Watch
from sagl.baselines.registry import Method
from sagl.estimator import SAGL
from sagl.evaluation.metrics import clustering_accuracy, clustering_scores
from sagl.features.backbones import parse_backbones
from sagl.features.extraction import extract_source
from sagl.features.split import Source, holds_features, open_input, read_input
from sagl.features.store import Join, Joined
from sagl.model import clear_unfinished
from sagl.processes import end_with_parent
from sagl.run import FEATURES, GRAPH, GRAPH_LIMIT, SOURCE, refuse_existing_run
from sagl.schema import check, check_signed, read_json, signed
from sagl.selection import label_free_score
from sagl.storage import held, replacing, write_json, write_text
from sagl.training.callbacks import Callback
from sagl.training.checkpoint import FILE_NAME
from sagl.training.distributed import ranks
from sagl.training.trainer import Trainer
from sagl.views import Views

__all__ = ["Result", "Task", "fit_run", "run_input", "run_task"]

Result = dict[str, Any]
_POLL_SECONDS = 0.2


def fit_run(
    model: SAGL,
    views: Views,
    out: Path,
    *,
    graph: bool | None = None,
    ids: Sequence[str] | None = None,
    source: Mapping[str, Any] | None = None,
) -> SAGL:
    """Fit ``model`` and write it to ``out``, with the graph of its training samples.

    A fit that was interrupted is taken up from the checkpoint in ``out``. ``graph``
    says whether to write ``graph.npz``; by default up to 50,000 samples. ``ids`` are
    what the samples are called in ``labels.csv``; ``source`` says where they are, in
    ``source.json``. Of several processes, the first one writes.
    """
    with _writing(out):
        model.set_params(checkpoint_dir=out).fit(views)
        _save(model, views, out, graph, ids, source)
    return model


def write_fitted(
    model: SAGL,
    views: Views,
    out: Path,
    *,
    ids: Sequence[str] | None = None,
    source: Mapping[str, Any] | None = None,
) -> None:
    """Write a model that is there, a corrected one say, as ``fit_run`` writes one.

    ``views`` are those of its training samples.
    """
    with _writing(out):
        (out / FILE_NAME).touch()  # if this is killed, its files may be written anew
        _save(model, views, out, None, ids, source)


@contextmanager
def _writing(out: Path) -> Iterator[None]:
    """Keep other commands away from a directory that holds no run yet."""
    refuse_existing_run(out)
    with held(out, "run") if ranks().first else nullcontext():
        refuse_existing_run(out)  # by whoever held it
        yield


def _save(
    model: SAGL,
    views: Views,
    out: Path,
    graph: bool | None,
    ids: Sequence[str] | None,
    source: Mapping[str, Any] | None,
) -> None:
    """Write the run, and remove what was only needed to make it."""
    weights: csr_matrix | None = None
    if graph if graph is not None else len(views) <= GRAPH_LIMIT:
        weights = model.attention_graph(views, together=True)
    if not ranks().first:
        return
    if weights is not None:
        with replacing(out / GRAPH) as temporary, temporary.open("wb") as file:
            save_npz(file, weights)
    if source:
        write_json(out / SOURCE, dict(source))
    model.save(out, ids=ids)
    clear_unfinished(out)


def run_input(
    out: Path,
    source: str | None,
    files: Sequence[str] | None,
    backbones: Sequence[str] | None,
    *,
    names: Sequence[str] | None = None,
    join: Join | None = None,
    **options: Any,
) -> Joined:
    """The views to fit: from files, from a store, or extracted into ``out/features``.

    ``options`` are those of ``extract_source``. An interrupted extraction is taken up.
    """
    if source is None or holds_features(Path(source)):
        if backbones:
            fault = f"{source} holds features already" if source else "there is none"
            raise ValueError(f"--backbone needs a SOURCE of samples: {fault}")
        if source is None and not files:
            raise ValueError("give a SOURCE, or views with --view NAME=FILE")
        id_column = options["reader"]["id_column"]
        return read_input(source, files, names, join or "error", id_column)
    if files:
        raise ValueError("give a SOURCE, or views with --view; not both")
    if not backbones:
        raise ValueError(
            f"{source}: give --backbone, once per view; sagl backbones lists some. "
            f"Features that are there are views: --view NAME={source}"
        )
    wanted = list(parse_backbones(backbones))
    share = (ranks().index, ranks().count)
    extract_source(source, backbones, out / FEATURES, share=share, **options)
    ranks().barrier()  # the last one finishes the store
    # What one model could not read, all do without.
    given = open_input(out / FEATURES, names or wanted, join or "inner")
    return replace(given, source={**given.source, "store": FEATURES})


@dataclass(frozen=True)
class Task:
    """One method with one seed: what one process is to do."""

    method: Method
    source: Source
    n_clusters: int
    seed: int
    looks: int  # at how many moments of the training the test samples are labelled
    device: str = "auto"
    views: tuple[str, ...] | None = None  # those to fit, if not all

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def run_task(task: Task) -> Result:
    """Fit, predict, score: how good, how long, how much memory."""
    everything, train_labels = task.source.train.read()
    scored, truth = task.source.scored.read()
    train = everything
    if task.views is not None:
        train, scored = (
            Views({name: views[name] for name in task.views})
            for views in (train, scored)
        )
    estimator = task.method.load()
    params = {"random_state": task.seed, **task.method.params}
    if "device" in inspect.signature(estimator).parameters:
        params.setdefault("device", task.device)
    model: Any = estimator(task.n_clusters, **params)
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
    clusters = getattr(model, "labels_", None)
    # By all views, fitted or not: else runs on different views could not be compared.
    label_free = label_free_score(
        everything, model.predict(train) if clusters is None else clusters
    )
    return {
        "scores": scores,
        "label_free": {**label_free._asdict(), "total": label_free.total},
        "seconds": seconds,
        "peak_mib": peak,
        "curve": curve,
        "warnings": sorted({" ".join(str(w.message).split()) for w in caught}),
    }


def _warm_up() -> None:
    """Let torch load what it loads on first use, which is no part of any method."""
    layer = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(layer.parameters())
    layer(torch.zeros(1, 2)).sum().backward()
    optimizer.step()


class _Failed(TypedDict):
    """What a run leaves that came to nothing."""

    error: str


class _Done(TypedDict):
    """What a run leaves, as it is tabulated."""

    scores: dict[str, float]
    label_free: dict[str, float]
    seconds: float
    peak_mib: float
    curve: list[list[float]]
    warnings: NotRequired[list[str]]


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
    """The most memory this process has held so far, in MiB.

    On Linux not ``getrusage``: it counts what the parent held before.
    """
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
    """Run a task in a process of its own, which writes its result to ``file``.

    An earlier result stays until there is a new one; what a process that failed has
    printed is kept beside it. ``why_stop`` is asked all the while; a process that is
    stopped leaves nothing.
    """
    limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
    order: str | None = json.dumps(task.as_dict())
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "sagl.experiments.fit", str(file), f"{os.getpid()}"],
            env={**os.environ, **limits},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            text=True,
        )
        while process.poll() is None:
            try:
                process.communicate(order, timeout=_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                order = None  # it is on its way
            reason = why_stop()
            if reason and process.poll() is None:
                process.kill()
                process.wait()
                return {"error": f"stopped: {reason}"}
        log.seek(0)
        output = log.read()
    result = read_result(file) if process.returncode == 0 else None
    if result is None:
        result = {"error": _last_words(output, process.returncode)}
        write_result(file, result)
    log_file = file.with_suffix(".log")
    if "error" in result:
        write_text(log_file, output)
    else:
        log_file.unlink(missing_ok=True)
    return result


def write_result(file: Path, result: Result) -> None:
    write_json(file, signed(result))


def read_result(file: Path) -> Result | None:
    """What a process wrote, or None if there is nothing, or something damaged."""
    try:
        result: Result = read_json(file)
        check(dict[str, Any], result)
        check_signed(result)  # those of earlier versions are not
        result.pop("checksum", None)
        # That of an earlier version may lack the label-free score.
        check(_Failed if "error" in result else _Done, result, version=0)
        if "error" not in result:
            _check_done(result)
    except (OSError, ValueError):
        return None
    return result


def _check_done(result: Result) -> None:
    """Refuse what would leave gaps in a table."""
    whole = "n_clusters" in result["scores"] and "total" in result["label_free"]
    if not whole or any(len(point) != 2 for point in result["curve"]):
        raise ValueError("scores are missing")


def _last_words(output: str, code: int) -> str:
    """Why a process that printed this ended without a result."""
    last = next((line for line in reversed(output.split("\n")) if line.strip()), "")
    if code < 0:
        return f"killed by signal {-code}; out of memory? {last.strip()}".strip()
    return f"ended with code {code}: {last.strip()}"


def main(file: str) -> None:
    task = check(Task, json.load(sys.stdin))
    try:
        result = run_task(task)
    except Exception as error:  # whatever it is becomes a row of the table
        reason = " ".join(str(error).split())
        result = {"error": f"{type(error).__name__}: {reason}"}
    write_result(Path(file), result)


if __name__ == "__main__":
    end_with_parent(int(sys.argv[2]))
    main(sys.argv[1])
