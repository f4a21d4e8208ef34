"""Does the run know what it does not know? Confidence beside the truth, per set.

    python benchmarks/doubt.py --data ../shared/data

Fits the default recipe and prints, for test samples each predicted alone: the mean
confidence, the ACC, and for some agreements how many samples are kept and how many of
those are right, clusters being matched to classes once, on all test samples. Seeds that
keep no sample say nothing of how many are right.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment

from cache import Job
from data import load
from per_set import measure_sets, parser_of
from sagl import SAGL

AGREEMENTS = (0.9, 0.95)


def run(job: Job) -> Job:
    torch.set_num_threads(1)
    split = load(Path(job["data"]), job["set"])
    model = SAGL(split.n_clusters, random_state=job["seed"]).fit(split.train)
    found, confidence = model.predict_with_confidence(split.test)
    _, truth = np.unique(split.test_labels, return_inverse=True)
    shared = np.zeros((split.n_clusters, split.n_clusters))
    np.add.at(shared, (found, truth), 1)
    class_of = linear_sum_assignment(shared, maximize=True)[1]
    right = class_of[found] == truth
    result = {"confidence": float(confidence.mean()), "acc": float(right.mean())}
    for agreement in AGREEMENTS:
        kept = confidence >= model.threshold(agreement)
        result[f"kept {agreement}"] = float(kept.mean())
        result[f"right {agreement}"] = float(right[kept].mean()) if kept.any() else None
    return result


def main() -> None:
    parser = parser_of(__doc__, "doubt.jsonl.gz", "seeds", 3)
    options = parser.parse_args()
    results = measure_sets(options, run)
    columns = ["confidence", "acc"]
    columns += [f"{what} {a}" for a in AGREEMENTS for what in ("kept", "right")]
    print("| set |", " | ".join(columns), "|")
    print("|---" * (len(columns) + 1) + "|")
    for name in options.sets:
        rows = [r for r in results if r["set"] == name]
        cells = [_spread([r[c] for r in rows if r[c] is not None]) for c in columns]
        print("|", " | ".join([name, *cells]), "|")


def _spread(values: list[float]) -> str:
    return f"{np.mean(values):.3f} ± {np.std(values):.3f}" if values else "—"


if __name__ == "__main__":
    main()
