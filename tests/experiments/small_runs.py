"""Runs that take no time: few samples, few steps, no process of their own."""

import numpy as np

from sagl.baselines import find_method
from sagl.experiments.fit import run_task
from sagl.storage import write_json

# Enough to find the clear clusters of `write_split`.
QUICK = {"steps": 20, "refine": False, "batch_size": 60}


def run_in_this_process(monkeypatch):
    """Do what the processes would do, here; the list of tasks that were really run."""
    ran = []

    def run_here(task, file, threads, why_stop):
        result = run_task(task)
        write_json(file, result)
        ran.append((task.method.name, task.seed))
        return result

    monkeypatch.setattr("sagl.experiments.study.run_apart", run_here)
    return ran


def run_some(study, count):
    """Do the first few runs of a study, as if it had been interrupted then."""
    tasks = study.tasks
    study.tasks = tasks[:count]
    study.run()
    study.tasks = tasks


def write_views(directory, names, n=60, C=3, labels=True):
    """As many views as there are names, the later the noisier."""
    rng = np.random.default_rng(1)
    y = np.arange(n) % C
    (directory / "train").mkdir(parents=True)
    for noise, name in enumerate(names):
        h = 3 * rng.normal(size=(C, 5))[y] + (0.1 + 2 * noise) * rng.normal(size=(n, 5))
        np.save(directory / "train" / f"{name}.npy", h.astype(np.float32))
    if labels:
        np.save(directory / "train" / "labels.npy", y)
    return directory


def write_split(directory, n_train=60, n_test=30, C=3, labels=True):
    """Two clear views of three clusters as files."""
    rng = np.random.default_rng(0)
    centres = [5 * rng.normal(size=(C, width)) for width in (4, 6)]
    for part, n in (("train", n_train), ("test", n_test)):
        place = directory / part
        place.mkdir(parents=True)
        y = np.arange(n) % C
        for name, c in zip(("wide", "narrow"), centres, strict=True):
            h = c[y] + 0.1 * rng.normal(size=(n, c.shape[1]))
            np.save(place / f"{name}.npy", h.astype(np.float32))
        if labels or part == "test":
            np.save(place / "labels.npy", y)
    return directory


def methods(*names):
    return [find_method(name) for name in names]
