"""Does the score that needs no labels choose well? Restarts of the network, per set.

    python benchmarks/selection.py --data ../shared/data --restarts 8

Trains the network (no refinement) from several seeds on each set and prints the rank
correlation between the label-free score of the training samples and the true ACC of the
test samples, the ACC of the restart that the score picks, the best and the mean.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from scipy.stats import spearmanr

from cache import Job
from data import load
from per_set import measure_sets, parser_of
from sagl import SAGL
from sagl.evaluation import clustering_accuracy
from sagl.selection import label_free_score


def run(job: Job) -> Job:
    torch.set_num_threads(1)
    split = load(Path(job["data"]), job["set"])
    model = SAGL(split.n_clusters, refine=False, random_state=job["seed"])
    model.fit(split.train)
    found = label_free_score(split.train, model.labels_)
    return {
        "acc": clustering_accuracy(split.test_labels, model.predict(split.test)),
        "linear": found.linear,
        "graph": found.graph,
    }


def main() -> None:
    parser = parser_of(__doc__, "selection.jsonl.gz", "restarts", 8)
    options = parser.parse_args()
    results = measure_sets(options, run)
    print("| set | rank correlation | chosen | best | mean |\n|---|---|---|---|---|")
    for name in options.sets:
        rows = [r for r in results if r["set"] == name]
        acc = np.array([r["acc"] for r in rows])
        total = np.array([r["linear"] + r["graph"] for r in rows])
        print(
            f"| {name} | {spearmanr(acc, total).statistic:.2f} "
            f"| {acc[total.argmax()]:.3f} | {acc.max():.3f} | {acc.mean():.3f} |"
        )


if __name__ == "__main__":
    main()
