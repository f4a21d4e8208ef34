"""How many clusters are there? The estimate that needs no labels beside the truth.

    python benchmarks/cluster_count.py --data ../shared/data --picture counts.png
    python benchmarks/cluster_count.py --tasks 46 --most 700

Training samples alone are looked at; the number of classes is only compared with. With
--tasks the same on generated tasks (`tasks.py`), one seed: how often the estimate is
within 20 %, the interval holds the truth, and an estimate that calls itself sure is
right. Kept in benchmarks/runs/cluster_count.jsonl.gz.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch

from cache import TABLES, Job, measure
from data import Split
from per_set import measure_sets, parser_of
from sagl.report.page import draw_count
from sagl.report.saving import save
from sagl.schema import check
from sagl.search.count import ClusterCount
from sagl.selection import estimate_n_clusters
from tasks import task

NEAR = 0.2  # of the truth


def run(split: Split, job: Job) -> Job:
    return estimate(split.train, split.n_clusters, job["seed"])


def run_task(directory: Path, job: Job) -> Job:
    torch.set_num_threads(1)
    each = task(directory, job["task"])
    result = estimate(each.train, each.n_clusters, job["seed"])
    return {**result, "set": each.set, "balanced": each.is_balanced}


def estimate(views: object, truth: int, seed: int) -> Job:
    start = time.process_time()
    count = estimate_n_clusters(views, random_state=seed)
    seconds = round(time.process_time() - start, 1)
    return {**count.as_dict(), "truth": truth, "seconds": seconds}


def share(hits: Sequence[bool]) -> str:
    return f"{sum(hits)} of {len(hits)} ({np.mean(hits):.0%})" if hits else "none"


def on_tasks(results: Sequence[Job]) -> str:
    """Lines that say how often the estimate and what it says of itself are right."""
    near = [abs(r["best"] - r["truth"]) <= NEAR * r["truth"] for r in results]
    held = [r["low"] <= r["truth"] <= r["high"] for r in results]
    sure = [hit for hit, r in zip(near, results, strict=True) if r["sure"]]
    width = np.median([r["high"] / r["low"] for r in results])
    lines = [
        f"within {NEAR:.0%}: {share(near)}",
        f"the interval holds the truth: {share(held)}; its ends differ by a factor of "
        f"{width:.1f} (median)",
        f"sure: {len(sure)} of {len(results)}; of these within {NEAR:.0%}: "
        f"{share(sure)}",
    ]
    for balanced in (True, False):
        some = [
            n for n, r in zip(near, results, strict=True) if r["balanced"] is balanced
        ]
        kind = "equal" if balanced else "unequal"
        lines.append(f"classes of {kind} sizes, within {NEAR:.0%}: {share(some)}")
    return "\n".join(lines)


def main() -> None:
    parser = parser_of(__doc__, str(TABLES / "cluster_count.jsonl.gz"), "seeds", 1)
    parser.add_argument("--picture", type=Path, help="the curves, one file per set")
    parser.add_argument("--tasks", type=int, help="that many tasks instead of sets")
    parser.add_argument("--most", type=int, default=700, help="samples of a task")
    options = parser.parse_args()
    if options.tasks is not None:
        place = options.data
        numbers = range(options.tasks)
        small = [n for n in numbers if len(task(place, n).train) <= options.most]
        jobs = [{"task": n, "seed": 0} for n in small]
        of_task = partial(run_task, place)
        print(
            on_tasks(
                measure(
                    jobs, of_task, options.cache, options.jobs, minutes=options.minutes
                )
            )
        )
        return
    results = measure_sets(options, run)
    print("| set | seed | classes | estimate | interval | sure | off by | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for r in results:
        off = abs(r["best"] - r["truth"]) / r["truth"]
        print(
            f"| {r['set']} | {r['seed']} | {r['truth']} | {r['best']} "
            f"| {r['low']} to {r['high']} | {'yes' if r['sure'] else 'no'} "
            f"| {off:.0%} | {r['seconds']:.0f} |"
        )
        if options.picture is not None and r["seed"] == 0:
            curve = {name: r[name] for name in ClusterCount._fields}
            place = options.picture.with_stem(f"{options.picture.stem}-{r['set']}")
            save(draw_count(check(ClusterCount, curve)), place)


if __name__ == "__main__":
    main()
