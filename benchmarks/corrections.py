"""What corrections are worth: ACC on test samples against how many labels are given.

    python benchmarks/corrections.py --data ../shared/data --sets cub10 bbcsport

Per seed a model is fitted, and an oracle names the clusters: each by the class with
which it is matched, one to one, on the training samples. It is asked about training
samples, by ``model.worth_asking``, the most doubtful first or at random, and answers
with the cluster of the sample's class; the model is refitted with all answers so far.
Test samples are predicted one by one and never corrected. *Probe* is logistic
regression on the views side by side, trained on the same random answers alone. Of sets
with more than 2,000 training samples so many are drawn, by seed.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from cache import TABLES, Job
from data import Split
from per_set import measure_sets, parser_of
from sagl import SAGL, Views
from sagl.evaluation import clustering_accuracy

ROWS = 2_000  # training samples, at most
COUNTS = (5, 10, 20, 50, 100)
FIGURE = Path(__file__).parent / "figures" / "corrections.png"
# Okabe and Ito's palette, which colour-blind people can tell apart.
LOOKS = {
    "worth asking": ("#009E73", "D"),
    "by doubt": ("#0072B2", "o"),
    "at random": ("#D55E00", "s"),
    "probe": ("#999999", "^"),
}


def run(split: Split, job: Job) -> Job:
    seed = job["seed"]
    truth = np.unique(split.train_labels, return_inverse=True)[1]
    model = SAGL(split.n_clusters, random_state=seed).fit(split.train)
    answer = answers(truth, model.labels_, split.n_clusters)
    chance = np.random.default_rng(seed).permutation(len(truth))
    orders = {
        "worth asking": np.array(model.worth_asking(split.train, COUNTS[-1])),
        "by doubt": np.argsort(model.confidence_, kind="stable"),
        "at random": chance,
    }
    result: Job = {"0": score(model, split.test, split.test_labels)}
    for how, order in orders.items():
        for count in COUNTS:
            asked = order[:count]
            labels = {int(row): int(answer[row]) for row in asked}
            refitted = model.refit(split.train, {"labels": labels})
            result[f"{how} {count}"] = score(refitted, split.test, split.test_labels)
    for count in COUNTS:
        result[f"probe {count}"] = probe(
            split.train, truth, chance[:count], split.test, split.test_labels
        )
    return result


def answers(
    truth: NDArray[np.int64], labels: NDArray[np.int64], n_clusters: int
) -> NDArray[np.int64]:
    """The cluster that stands for each sample's class."""
    shared = np.zeros((n_clusters, n_clusters))
    np.add.at(shared, (truth, labels), 1)
    _, cluster = linear_sum_assignment(shared, maximize=True)
    return cluster[truth]


def score(model: SAGL, views: Views, truth: NDArray[np.int64]) -> float:
    return float(clustering_accuracy(truth, model.predict(views)))


def probe(
    train: Views,
    truth: NDArray[np.int64],
    rows: NDArray[np.int64],
    test: Views,
    test_truth: NDArray[np.int64],
) -> float | None:
    """ACC of a classifier that has the answers alone; None for a single class."""
    if len(np.unique(truth[rows])) < 2:
        return None
    both = [np.hstack([h for _, h in views.items()]) for views in (train, test)]
    scale = StandardScaler().fit(both[0])
    classifier = LogisticRegression(max_iter=2000)
    classifier.fit(scale.transform(both[0][rows]), truth[rows])
    classes = np.unique(test_truth, return_inverse=True)[1]
    return float((classifier.predict(scale.transform(both[1])) == classes).mean())


def main() -> None:
    parser = parser_of(__doc__, str(TABLES / "corrections.jsonl.gz"), "seeds", 5)
    options = parser.parse_args()
    results = measure_sets(options, run, rows=ROWS)
    print("| set | labels |", " | ".join(map(str, (0, *COUNTS))), "|")
    print("|---" * (3 + len(COUNTS)) + "|")
    for name in options.sets:
        of_set = [r for r in results if r["set"] == name]
        for how in LOOKS:
            cells = [f"{mean(of_set, '0'):.3f}" if how != "probe" else ""]
            cells += [f"{mean(of_set, f'{how} {count}'):.3f}" for count in COUNTS]
            print(f"| {name} | {how} |", " | ".join(cells), "|")
    draw(results, options.sets)


def mean(results: list[Job], key: str) -> float:
    known = [r[key] for r in results if r.get(key) is not None]
    return float(np.mean(known)) if known else float("nan")


def draw(results: list[Job], sets: list[str]) -> None:
    """One curve per set and way to choose whom to ask."""
    figure, axes = plt.subplots(
        1, len(sets), figsize=(3.4 * len(sets), 3.4), sharey=True, squeeze=False
    )
    for axis, name in zip(axes[0], sets, strict=True):
        of_set = [r for r in results if r["set"] == name]
        for how, (colour, marker) in LOOKS.items():
            counts = COUNTS if how == "probe" else (0, *COUNTS)
            keys = ["0" if count == 0 else f"{how} {count}" for count in counts]
            values = [mean(of_set, key) for key in keys]
            axis.plot(counts, values, marker=marker, color=colour, label=how)
        axis.set_title(name)
        axis.set_xlabel("labels given")
        axis.set_xscale("symlog", linthresh=5)
        axis.set_xticks((0, *COUNTS), map(str, (0, *COUNTS)))
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("ACC on test samples")
    axes[0][0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(FIGURE, dpi=120)


if __name__ == "__main__":
    main()
