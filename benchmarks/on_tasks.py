"""Every method at its own defaults on hundreds of generated tasks: ranks and regrets.

    python benchmarks/on_tasks.py --data ../shared/data --count 200
    python benchmarks/on_tasks.py --methods sagl kmeans --count 40 --seeds 2 --most 600

Inductive protocol: fitted on the training samples of a task (`tasks.py`) without
labels, each test sample predicted alone; labels only score. Printed are, per method,
the mean rank among all methods by the mean of its seeds, on how many tasks it is the
best or within one deviation of its seeds of the best, on how many it is more than five
points behind the best other method, and the means; then, where SAGL decided itself
whether clusters are of equal sizes, how often it was right.

Runs are kept in benchmarks/runs/tasks.jsonl.gz by task, method, seed and revision, and
what is there is not measured again; --minutes 0 prints it.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cache import TABLES, Job, measure
from sagl._version import PEERS_REVISION, REVISION
from sagl.baselines.registry import find_method
from sagl.evaluation.metrics import ari, clustering_accuracy, nmi
from tasks import Task, task

TABLE = TABLES / "tasks.jsonl.gz"
METHODS = ("sagl", "kmeans", "turtle", "temi", "scan", "msrl", "cpp")
MEASURES = ("acc", "nmi", "ari")
BEHIND = 0.05


def run(directory: Path, job: Job) -> Job:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    each = task(directory, job["task"])
    method = find_method(job["method"])
    model = method.load()(
        n_clusters=each.n_clusters, random_state=job["seed"], **method.params
    )
    start = time.process_time()
    model.fit(each.train)
    seconds = time.process_time() - start
    labels = model.predict(each.test)
    result: Job = {
        "acc": clustering_accuracy(each.test_labels, labels),
        "nmi": nmi(each.test_labels, labels),
        "ari": ari(each.test_labels, labels),
        "seconds": round(seconds, 2),
    }
    if hasattr(model, "cluster_sizes_"):
        result["sizes"] = model.cluster_sizes_
    return {name: _short(value) for name, value in result.items()}


def _short(value: object) -> object:
    return round(value, 4) if isinstance(value, float) else value


def table(results: Sequence[Job], measure_name: str) -> str:
    """Rows of markdown, the best mean rank first, over tasks that all were run on."""
    methods = sorted({r["method"] for r in results})
    values: dict[tuple[int, str], list[float]] = {}
    for r in results:
        values.setdefault((r["task"], r["method"]), []).append(r[measure_name])
    numbers = sorted(
        n
        for n in {r["task"] for r in results}
        if all((n, m) in values for m in methods)
    )
    mean = np.array([[np.mean(values[n, m]) for m in methods] for n in numbers])
    spread = np.array([[np.std(values[n, m]) for m in methods] for n in numbers])
    lines = [
        f"{measure_name.upper()}, {len(numbers)} tasks",
        "",
        "| method | mean rank | best or as good | 5 points behind | mean |",
        "|---|---|---|---|---|",
    ]
    ranks = _ranks(mean)
    for i in np.argsort(ranks.mean(axis=0)):
        others = np.delete(mean, i, axis=1).max(axis=1)
        good = (mean[:, i] >= others - spread[:, i]).mean()
        behind = (mean[:, i] < others - BEHIND).mean()
        lines.append(
            f"| {methods[i]} | {ranks[:, i].mean():.2f} | {good:.0%} | {behind:.0%} "
            f"| {mean[:, i].mean():.3f} |"
        )
    return "\n".join(lines)


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each row, 1 for the highest; equal ones share the mean of their ranks."""
    higher = (values[:, None, :] > values[:, :, None]).sum(axis=2)
    equal = (values[:, None, :] == values[:, :, None]).sum(axis=2)
    ranks: NDArray[np.float64] = higher + (equal + 1) / 2
    return ranks


def regimes(results: Sequence[Job], directory: Path) -> str:
    """How often sizes were left free where classes are unequal, and not elsewhere."""
    right: dict[str, list[bool]] = {}
    known: dict[int, Task] = {}
    for r in (r for r in results if "sizes" in r):
        each = known.setdefault(r["task"], task(directory, r["task"]))
        kind = "balanced" if each.is_balanced else "any"
        name = "tail" if each.tail > 1 else kind
        right.setdefault(name, []).append(r["sizes"] == kind)
    return "; ".join(
        f"{name}: right in {np.mean(hits):.0%} of {len(hits)}"
        for name, hits in sorted(right.items())
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--most", type=int, default=10**9, help="training samples")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=math.inf)
    options = parser.parse_args()
    numbers = [
        n
        for n in range(options.first, options.first + options.count)
        if len(task(options.data, n).train) <= options.most
    ]
    jobs = [
        {
            "task": n,
            "method": m,
            "seed": seed,
            "revision": REVISION if m.startswith("sagl") else PEERS_REVISION,
        }
        for seed in range(options.seeds)
        for n in numbers
        for m in options.methods
    ]
    of_tasks = partial(run, options.data)
    results = measure(jobs, of_tasks, TABLE, options.jobs, None, options.minutes)
    for name in MEASURES:
        print(f"\n{table(results, name)}")
    print(f"\n{regimes(results, options.data)}")


if __name__ == "__main__":
    main()
