"""The default recipe, one setting for every set, beside k-means: ACC, NMI, ARI.

    python benchmarks/quality.py --data ../shared/data
    python benchmarks/quality.py --sets pets_clip --param 'gate="sharpen"'

Inductive protocol: fitted on the training split without labels, each test sample
predicted alone; labels only score. Mean, standard deviation and worst of the seeds.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from sklearn.cluster import KMeans

from cache import Job, measure
from data import DEFAULT_VIEWS, load
from sagl import SAGL
from sagl.evaluation import clustering_scores
from sagl.experiments.demo import concatenated

MEASURES = ("acc", "nmi", "ari")


def run(job: Job) -> Job:
    torch.set_num_threads(1)
    split = load(Path(job["data"]), job["set"])
    start = time.perf_counter()
    if job["method"] == "k-means":
        model = KMeans(split.n_clusters, n_init=10, random_state=job["seed"])
        model.fit(concatenated(split.train))
        predicted = model.predict(concatenated(split.test))
    else:
        sagl = SAGL(split.n_clusters, random_state=job["seed"], **job["params"])
        predicted = sagl.fit(split.train).predict(split.test)
    seconds = time.perf_counter() - start
    return {**clustering_scores(split.test_labels, predicted), "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="../shared/data")
    parser.add_argument("--sets", nargs="+", default=list(DEFAULT_VIEWS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cache", type=Path, default=Path("quality.jsonl"))
    parser.add_argument(
        "--param", action="append", default=[], help="for SAGL: NAME=VALUE, in JSON"
    )
    options = parser.parse_args()
    params = dict(given.split("=", 1) for given in options.param)
    params = {name: json.loads(value) for name, value in params.items()}
    jobs = [
        {
            "data": options.data,
            "set": name,
            "method": method,
            "seed": seed,
            "params": params if method == "SAGL" else {},
        }
        for name in options.sets
        for method in ("k-means", "SAGL")
        for seed in range(options.seeds)
    ]
    results = measure(jobs, run, options.cache, options.jobs)
    print(table(results, options.sets))


def table(results: list[Job], sets: list[str]) -> str:
    """Markdown: one row per set and method, the better mean of each set in bold."""
    lines = [
        "| set | method | ACC | NMI | ARI | worst ACC | seconds | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in sets:
        runs = {
            method: [r for r in results if (r["set"], r["method"]) == (name, method)]
            for method in ("k-means", "SAGL")
        }
        means = {m: np.mean([r["acc"] for r in rs]) for m, rs in runs.items()}
        for method, rs in runs.items():
            best = means[method] == max(means.values())
            cells = [
                f"{np.mean([r[k] for r in rs]):.3f} ± {np.std([r[k] for r in rs]):.3f}"
                for k in MEASURES
            ]
            cells[0] = f"**{cells[0]}**" if best else cells[0]
            worst = min(r["acc"] for r in rs)
            seconds = np.median([r["seconds"] for r in rs])
            lost = "" if best or method != "SAGL" else "SAGL loses here"
            lines.append(
                f"| {name} | {method} | {' | '.join(cells)} | {worst:.3f} "
                f"| {seconds:.0f} | {lost} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
