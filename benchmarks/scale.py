"""Whole fits of 10,000 to 1,000,000 samples beside others: time, memory, quality.

    taskset -c 1 python benchmarks/scale.py --threads 1
    python benchmarks/scale.py --samples 1000000 --clusters 50 --methods sagl faiss
    python benchmarks/scale.py --show

Two views of 256 columns of float16, memory-mapped (``made_up.py``), written to --place
once: 1 GB per number of clusters for a million. A fit gives the cluster of every
sample. The others are given both views side by side on the scale that SAGL begins
with, columns of deviation 1 and rows of one length, which costs them memory and no
time. faiss (pip install faiss-cpu), EVoC and UMAP are left out where they are not
installed.

Each fit is a process of its own that ends after --minutes; what did not end is kept as
such. Processor seconds, and the most memory that was its own (``RssAnon``, asked for
ten times a second): pages of the mapped files are not counted. Labels only score.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans, MiniBatchKMeans

from cache import TABLES, Job, measure, read
from made_up import files
from sagl import SAGL, Views
from sagl.evaluation import clustering_scores
from sagl.training.feed import standardization

SAMPLES, CLUSTERS = (10_000, 100_000, 1_000_000), (50, 400, 1000)
TABLE = TABLES / "scale.jsonl.gz"
Labels = NDArray[np.int64]


def side_by_side(views: Views) -> NDArray[np.float32]:
    """What those are given that know of one view: made a part at a time."""
    whole = np.empty((len(views), sum(views.widths)), np.float32)
    measured, start = standardization(views, "standard"), 0
    for block in views.blocks(8192):
        parts = [(h - m) * s for h, (m, s) in zip(block, measured, strict=True)]
        lengths = [np.linalg.norm(x, axis=1, keepdims=True) for x in parts]
        joined = np.hstack([x / n for x, n in zip(parts, lengths, strict=True)])
        whole[start : start + len(joined)] = joined
        start += len(joined)
    return whole


def sagl(views: Views, C: int, seed: int) -> Labels:
    return SAGL(C, random_state=seed, device="cpu").fit(views).labels_


def kmeans(views: Views, C: int, seed: int) -> Labels:
    return KMeans(C, n_init=1, random_state=seed).fit_predict(side_by_side(views))


def minibatch(views: Views, C: int, seed: int) -> Labels:
    model = MiniBatchKMeans(C, batch_size=10_240, n_init=3, random_state=seed)
    return model.fit_predict(side_by_side(views))


def faiss(views: Views, C: int, seed: int) -> Labels:
    import faiss

    x = side_by_side(views)
    model = faiss.Kmeans(
        x.shape[1], C, niter=25, seed=seed, max_points_per_centroid=10**9
    )
    model.train(x)
    return model.index.search(x, 1)[1][:, 0]


def evoc(views: Views, C: int, seed: int) -> Labels:
    from evoc import EVoC

    model = EVoC(approx_n_clusters=C, random_state=seed)
    return model.fit_predict(side_by_side(views))


def umap(views: Views, C: int, seed: int) -> Labels:
    from sklearn.cluster import HDBSCAN
    from umap import UMAP

    x = side_by_side(views)
    flat = UMAP(n_neighbors=30, min_dist=0, random_state=seed).fit_transform(x)
    return HDBSCAN(min_cluster_size=max(5, len(x) // (10 * C))).fit_predict(flat)


METHODS: dict[str, Callable[[Views, int, int], Labels]] = {
    method.__name__: method for method in (sagl, faiss, kmeans, minibatch, evoc, umap)
}


class Memory(threading.Thread):
    """The most memory of this process that is no page of a file, in MiB."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.before = self.most = self._now()
        self.start()

    def run(self) -> None:
        while True:
            self.most = max(self.most, self._now())
            time.sleep(0.1)

    def _now(self) -> float:
        lines = Path("/proc/self/status").read_text().splitlines()
        (held,) = (line.split()[1] for line in lines if line.startswith("RssAnon"))
        return int(held) / 1024


def one(job: Job, place: Path) -> Job:
    """A fit, in the process that is here for it."""
    torch.set_num_threads(job["threads"])
    views, truth = files(place, job["samples"], job["clusters"], job["seed"])
    memory = Memory()
    start, processor = time.perf_counter(), time.process_time()
    labels = METHODS[job["method"]](views, job["clusters"], job["seed"])
    spent = {
        "seconds": time.perf_counter() - start,
        "processor": time.process_time() - processor,
        "MiB": memory.most - memory.before,
    }
    scores = clustering_scores(truth, labels)
    return spent | {"acc": float(scores["acc"]), "nmi": float(scores["nmi"])}


def apart(job: Job, place: Path, minutes: float) -> Job:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--place", str(place)]
    threads = {f"{name}_NUM_THREADS": str(job["threads"]) for name in _POOLS}
    try:
        done = subprocess.run(
            [*command, "--one", json.dumps(job)],
            check=True,
            stdout=subprocess.PIPE,
            timeout=60 * minutes,
            env={**os.environ, **threads},
        )
    except subprocess.TimeoutExpired:
        return {"ended": False}
    result: Job = json.loads(done.stdout.splitlines()[-1])
    return result


_POOLS = ("OMP", "MKL", "OPENBLAS", "NUMBA")
_NEEDS = {"faiss": "faiss", "evoc": "evoc", "umap": "umap"}


def jobs(options: argparse.Namespace) -> list[Job]:
    """What is to be measured, the cheapest first."""
    there = [m for m in options.methods if m not in _NEEDS or find_spec(_NEEDS[m])]
    return [
        {"samples": n, "clusters": C, "method": method, "seed": options.seed}
        | {"threads": options.threads}
        for n in options.samples
        for C in options.clusters
        if n >= 10 * C
        for method in there
    ]


def show(runs: list[Job]) -> None:
    print("| samples | clusters | method | seconds | processor | MiB | ACC | NMI |")
    print("|---|---|---|---|---|---|---|---|")
    for run in sorted(runs, key=lambda r: (r["samples"], r["clusters"], r["method"])):
        head = f"| {run['samples']:,} | {run['clusters']} | {run['method']} "
        if run.get("ended") is False:
            print(f"{head}| did not end | | | | |")
            continue
        spent = f"{run['seconds']:,.0f} | {run['processor']:,.0f} | {run['MiB']:,.0f}"
        print(f"{head}| {spent} | {run['acc']:.3f} | {run['nmi']:.3f} |")
    for C, exponent in exponents(runs).items():
        print(f"\nSAGL, {C} clusters: processor seconds grow as n^{exponent:.2f}.")


def exponents(runs: list[Job]) -> dict[int, float]:
    """By number of clusters, of SAGL from the fewest samples to the most."""
    found = {}
    for C in sorted({run["clusters"] for run in runs}):
        ours = [
            (run["samples"], run["processor"])
            for run in runs
            if run["clusters"] == C and run["method"] == "sagl" and "processor" in run
        ]
        if len(ours) > 1:
            (n, few), (m, many) = min(ours), max(ours)
            found[C] = float(np.log(many / few) / np.log(m / n))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, nargs="+", default=SAMPLES)
    parser.add_argument("--clusters", type=int, nargs="+", default=CLUSTERS)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=120, help="per fit, at most")
    parser.add_argument("--place", type=Path, default=Path("scale-data"))
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--show", action="store_true", help="what is kept, only")
    parser.add_argument("--one", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(options.one, options.place)))
        return
    if options.show:
        show([{**json.loads(key), **run} for key, run in read(options.table).items()])
        return
    for C in options.clusters:  # of the largest size at once: files do not change later
        files(options.place, max(options.samples), C, options.seed)

    run = partial(apart, place=options.place, minutes=options.minutes)
    show(measure(jobs(options), run, options.table, workers=1))


if __name__ == "__main__":
    main()
