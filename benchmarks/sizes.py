"""Balanced clusters and clusters of any sizes, with and without a tail: who is right?

    python benchmarks/sizes.py --data ../shared/data --tails 1 5 20

Class sizes of the training split fall geometrically to one in TAIL. The search runs on
the training samples without a network; what it finds is then let go without being
doubted. Printed are ACC of both on these samples, what decides between them, and what
`SAGL(cluster_sizes="auto")` would take. Labels only score.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from cache import Job, measure
from data import load
from per_set import parser_of
from sagl.evaluation import clustering_accuracy
from sagl.search.candidates import search
from sagl.search.config import SearchConfig
from sagl.search.evidence import clarity
from sagl.search.space import Space
from sagl.search.unequal import unequal
from sagl.search.weights import weigh
from sagl.training.feed import scales_of, standardized
from versions import tail_rows

MOST = 5_000  # samples that a search looks at, as in a fit


def run(job: Job) -> Job:
    torch.set_num_threads(1)
    place, seed = Path(job["data"]), job["seed"]
    split = load(place, job["set"])
    labels = np.load(place / job["set"] / "train" / "labels.npy")
    order = np.random.default_rng(seed).permutation(np.unique(labels))
    rows = tail_rows(labels, order, job["tail"])
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(rows)[:MOST])
    truth, C = labels[rows], split.n_clusters
    scales, config = scales_of("auto"), SearchConfig()
    cpu = torch.device("cpu")
    features = [
        h for kind in scales for h in standardized(split.train, rows, cpu, kind)
    ]
    near = config.neighbours(len(rows), C)
    space = weigh(Space(features, near, config, len(scales)), C, seed)
    even, _ = search(space, C, seed)
    free = unequal(space, C, seed, even, doubted=False)
    assert free is not None
    found = [candidates[0].labels for candidates in (even, free)]
    before, after = (clarity(space, clusters, C) for clusters in found)
    return {
        "balanced": clustering_accuracy(truth, found[0].numpy()),
        "any": clustering_accuracy(truth, found[1].numpy()),
        "balanced clarity": before,
        "any clarity": after,
    }


def main() -> None:
    parser = parser_of(__doc__, "sizes.jsonl.gz", "seeds", 1)
    parser.add_argument("--tails", type=int, nargs="+", default=[1, 5, 20])
    options = parser.parse_args()
    jobs = [
        {"data": options.data, "set": name, "seed": seed, "tail": tail}
        for name in options.sets
        for tail in options.tails
        for seed in range(options.repeats)
    ]
    results = measure(jobs, run, options.cache, options.jobs)
    head = ("set", "tail", "seed", "balanced", "any", "clarity", "of any", "taken")
    print("|", " | ".join(head), "|")
    print("|" + "---|" * len(head))
    for r in results:
        clear = r["balanced clarity"], r["any clarity"]
        better = clear[1] - clear[0] > SearchConfig().size_margin
        taken = "any" if better else "balanced"
        print(
            f"| {r['set']} | 1:{r['tail']} | {r['seed']} | {r['balanced']:.3f} "
            f"| {r['any']:.3f} | {clear[0]:.3f} | {clear[1]:.3f} | {taken} |"
        )


if __name__ == "__main__":
    main()
