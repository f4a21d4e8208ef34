"""Does a criterion that needs no labels order partitions well? On generated tasks.

    python benchmarks/score.py --data ../shared/data --count 60 --most 700
    python benchmarks/score.py --minutes 0

Of each task (`tasks.py`) one default fit; all partitions that its search came by,
balanced and of any sizes, and some of k-means are candidates (`criteria.py`). Labels of
the training samples only score them. Printed are, per criterion, over tasks: the rank
correlation (Spearman) with ACC and NMI; the regret of its choice, in points below the
best candidate; the share of tasks on which the choice is within a point of it; the mean
regret in ACC and NMI where classes are of equal sizes (none three times another) and
where not; and what the choice gains over that of the fit itself, in points of (ACC +
NMI) / 2. *Rules* choose as the fit does: the best balanced candidate by one criterion,
unless the best of any sizes by `evidence` is clearer by a margin.

Then criteria and rules are chosen on a random half of the sets (or of the pairs of a
set and some of its views), a thousand times over, and judged on the other half by what
they gain.

Runs are kept in benchmarks/runs/score.jsonl.gz by task, seed and revision, and what is
there is not measured again.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import spearmanr

from cache import TABLES, Job, measure
from criteria import candidates_of, criteria
from left_out import TIMES, choices, halves, numbers_of, row, task_options
from sagl.evaluation.metrics import clustering_accuracy, nmi
from tasks import task

TABLE = TABLES / "score.jsonl.gz"
DELIVERED = "what SAGL takes"
TRUTHS = ("acc", "nmi")
POINT = 0.01
SCORE = {"regressions": 1.0, "attention": 0.5, "affinity": 0.5}  # as in the search
# Each a weighted sum of columns; the score's terms are in nats per log C.
CRITERIA = {
    "score": SCORE,
    "regressions alone": {"regressions": 1.0},
    "attention graph alone": {"attention": 1.0},
    "affinity alone": {"affinity": 1.0},
    "evidence": {"evidence": 1.0},
    "clarity": {"clarity": 1.0},
    "agreement": {"agreement": 1.0},
    "neighbours alone": {"attention": 0.5, "affinity": 0.5},
    "score, ¼ of the regressions": {**SCORE, "regressions": 0.25},
    "score + ½ agreement": {**SCORE, "agreement": 0.5},
    "score + agreement": {**SCORE, "agreement": 1.0},
    "clarity + agreement": {"clarity": 1.0, "agreement": 1.0},
    "silhouette": {"silhouette": 1.0},
    "silhouette, UMAP": {"umap": 1.0},
    "score + silhouette, UMAP": {**SCORE, "umap": 1.0},
    "cross-validation (TURTLE)": {"turtle": 1.0},
    "score + cross-validation": {**SCORE, "turtle": 1.0},
}

# The criterion for balanced candidates, and the margin.
RULES = {
    "rule: score, 0.02": ("score", 0.02),
    "rule: score, 0.04": ("score", 0.04),
    "rule: score, 0.1": ("score", 0.1),
    "rule: score, ∞": ("score", np.inf),
    "rule: score + agreement, 0.07": ("score + agreement", 0.07),
    "rule: neighbours alone, 0.07": ("neighbours alone", 0.07),
    "rule: affinity alone, 0.07": ("affinity alone", 0.07),
    "rule: ¼ of the regressions, 0.07": ("score, ¼ of the regressions", 0.07),
}
CHOICES = (DELIVERED, *CRITERIA, *RULES)


def run(directory: Path, job: Job) -> Job:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    each, seed = task(directory, job["task"]), job["seed"]
    start = time.process_time()
    found = candidates_of(each.train, each.n_clusters, seed)
    searched = time.process_time() - start
    columns = criteria(each.train, each.n_clusters, found, seed)
    partitions = [labels.numpy() for labels in found.partitions]
    columns["acc"] = [clustering_accuracy(each.labels, p) for p in partitions]
    columns["nmi"] = [nmi(each.labels, p) for p in partitions]
    return {
        "set": each.set,
        "views": "+".join(each.train.names),
        "kinds": found.kinds,
        "delivered": found.delivered,
        "columns": {k: [round(x, 4) for x in v] for k, v in columns.items()},
        "seconds": [round(searched, 1), round(time.process_time() - start, 1)],
    }


def values(result: Job, name: str) -> NDArray[np.float64]:
    """Of each candidate by the criterion of this name."""
    columns = result["columns"]
    parts = [w * np.array(columns[c]) for c, w in CRITERIA[name].items()]
    total: NDArray[np.float64] = np.sum(parts, axis=0)
    return total


def chosen(result: Job, name: str) -> int:
    """The candidate that the criterion takes; of equals, the first one found."""
    if name == DELIVERED:
        return int(result["delivered"])
    if name in RULES:
        return by_rule(result, *RULES[name])
    return int(values(result, name).argmax())


def by_rule(result: Job, of_balanced: str, margin: float) -> int:
    """The best balanced candidate, or the best of any sizes where it is clearer."""
    kinds, clear = np.array(result["kinds"]), values(result, "clarity")
    balanced, free = (np.flatnonzero(kinds == kind) for kind in ("balanced", "any"))
    best = balanced[values(result, of_balanced)[balanced].argmax()]
    if len(free):
        other = free[values(result, "evidence")[free].argmax()]
        if clear[other] - clear[best] > margin:
            return int(other)
    return int(best)


def regret(result: Job, name: str, truth: str) -> float:
    """How far the choice is below the best candidate."""
    true = result["columns"][truth]
    return float(max(true) - true[chosen(result, name)])


def correlation(result: Job, name: str, truth: str) -> float:
    """Spearman's; zero where the criterion or the truth says the same of all."""
    a, b = values(result, name), np.array(result["columns"][truth])
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(spearmanr(a, b).statistic)


def table(results: Sequence[Job]) -> str:
    """Rows of markdown, the smallest regret first; ± is the standard error."""
    rows = []
    over = 100 * gains(results)
    for name, more in zip(CHOICES, over.T, strict=True):
        order = ["–", "–"]
        if name in CRITERIA:
            order = [
                _mean([correlation(r, name, t) for r in results], 2) for t in TRUTHS
            ]
        missed = [np.array([regret(r, name, t) for r in results]) for t in TRUTHS]
        points = [_mean(100 * m, 1) for m in missed]
        near = [f"{(m <= POINT + 1e-9).mean():.0%}" for m in missed]
        both = 100 * np.mean(missed, axis=0)
        equal = np.array([r["balanced"] for r in results])
        kinds = [_mean(both[of], 1) if of.any() else "–" for of in (equal, ~equal)]
        cells = [name, *order, *points, *near, *kinds, _mean(more, 2)]
        rows.append((both.mean(), cells))
    lines = [
        "| criterion | ρ with ACC | ρ with NMI | regret in ACC | in NMI "
        "| within a point in ACC | in NMI | regret, equal classes | unequal "
        "| over SAGL's choice |",
        "|---" * 10 + "|",
    ]
    lines += [f"| {' | '.join(cells)} |" for _, cells in sorted(rows)]
    return "\n".join(lines)


def _mean(numbers: Sequence[float] | NDArray[np.float64], digits: int) -> str:
    error = np.std(numbers) / len(numbers) ** 0.5
    return f"{np.mean(numbers):.{digits}f} ± {error:.{digits}f}"


def gains(results: Sequence[Job]) -> NDArray[np.float64]:
    """What criteria gain over what SAGL takes, in (ACC + NMI) / 2, (tasks, choices).

    The first column is SAGL's own choice: zero.
    """

    def missed(result: Job, name: str) -> float:
        return float(np.mean([regret(result, name, truth) for truth in TRUTHS]))

    return np.array(
        [[missed(r, DELIVERED) - missed(r, name) for name in CHOICES] for r in results]
    )


def on_halves(results: Sequence[Job]) -> str:
    """Criteria chosen on one half and judged on the other; each alone, for both."""
    units = {
        "sets": [r["set"] for r in results],
        "sets and views": [f"{r['set']} {r['views']}" for r in results],
    }
    lines = [
        "| halves of | where chosen | left out | gap | chosen most often |",
        "|---" * 5 + "|",
    ]
    for unit, of_tasks in units.items():
        first = halves(of_tasks, TIMES)
        ours, theirs, best = choices(gains(results), first)
        most = np.bincount(best, minlength=len(CHOICES))
        often = ", ".join(
            f"{CHOICES[i]} ({most[i] / TIMES:.0%})" for i in most.argsort()[:-4:-1]
        )
        lines.append(row(f"{len(set(of_tasks))} {unit}", ours, theirs, often))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    task_options(parser, 200)
    options = parser.parse_args()
    jobs = [
        {"task": n, "seed": seed}
        for seed in range(options.seeds)
        for n in numbers_of(options)
    ]
    of_tasks = partial(run, options.data)
    results = measure(jobs, of_tasks, TABLE, options.jobs, minutes=options.minutes)
    if not results:
        return
    for r in results:
        r["balanced"] = task(options.data, r["task"]).is_balanced
    counts = [len(r["kinds"]) for r in results]
    print(
        f"\n{len(results)} tasks, {sum(r['balanced'] for r in results)} with classes "
        f"of about equal sizes; {np.mean(counts):.0f} candidates each in the mean"
    )
    print(f"\n{table(results)}\n\n{on_halves(results)}")


if __name__ == "__main__":
    main()
