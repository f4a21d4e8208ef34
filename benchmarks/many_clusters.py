"""A default fit of many samples in many clusters: time, memory, quality beside k-means.

    python benchmarks/many_clusters.py --samples 20000 --clusters 400

Two views of 512 columns each in which the same classes show (``scale.samples``). Times
are wall-clock, with two threads: let nothing else run. Labels only score; ACC and NMI
are of the training samples.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
import torch

from sagl import SAGL
from sagl.baselines import KMeans
from sagl.evaluation import clustering_scores
from scale import samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--clusters", type=int, default=400)
    parser.add_argument("--columns", type=int, nargs="+", default=[512, 512])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    C = options.clusters
    views, truth = samples(options.samples, options.seed, C, tuple(options.columns))
    head = ["method", "seconds", "peak MiB", "ACC", "NMI", "clusters in use"]
    print(f"| {' | '.join(head)} |\n{'|---' * len(head)}|", flush=True)
    for model in (KMeans(C, random_state=0), SAGL(C, random_state=0)):
        start = time.perf_counter()
        labels = model.fit(views).labels_
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        scores = clustering_scores(truth, labels)
        print(
            f"| {type(model).__name__} | {seconds:.0f} | {peak:,.0f} "
            f"| {scores['acc']:.3f} | {scores['nmi']:.3f} | {len(np.unique(labels))} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
