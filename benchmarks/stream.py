"""A stream in which classes appear one after another: update, fit anew, or leave as is.

    python benchmarks/stream.py --data ../shared/data --sets cub10 handwritten

The training samples come in as many batches as there are classes after the first half
of them. The first batch holds the first half of the classes, each later one brings one
class more; samples of a class are spread evenly over the batches from its first one on.
Batch by batch a model is updated from what it keeps (*update*), updated with all
earlier samples (*with old*), fitted anew to all samples with the true number of
classes so far, which no other is told (*from scratch*), and left as is (*frozen*).
After each batch they are scored on the test samples of the classes so far: ACC and
NMI, mean over batches. *New* is how many of the classes that appeared are found, each
as a cluster of its own: of all samples of the batch in one new cluster at least half
are of the class, and half of the class are in it; *false*, how many other new clusters
were announced; *moved* the mean share of earlier samples that changed cluster.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import normalized_mutual_info_score

from cache import TABLES, Job
from data import load
from per_set import measure_sets, parser_of
from sagl import SAGL, Views
from sagl.evaluation import clustering_accuracy

METHODS = ("frozen", "update", "with old", "from scratch")


def run(job: Job) -> Job:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    directory, name, seed = Path(job["data"]), job["set"], job["seed"]
    split = load(directory, name)
    truth = np.load(directory / name / "train" / "labels.npy")
    classes = np.random.default_rng(seed).permutation(np.unique(truth))
    batches = list(stream(truth, classes, seed))
    known = len(classes) // 2
    first = SAGL(known, random_state=seed).fit(split.train[batches[0]])
    models = dict.fromkeys(METHODS, first)
    seen = batches[0]
    rows: list[Job] = []
    for batch in batches[1:]:
        known += 1
        new = classes[known - 1]
        here = np.flatnonzero(np.isin(split.test_labels, classes[:known]))
        test, wanted = split.test[here], split.test_labels[here]
        told = {}
        for how in ("update", "with old"):
            before = models[how].n_clusters_
            old = split.train[seen] if how == "with old" else None
            models[how] = models[how].update(split.train[batch], old)
            labels = models[how].labels_[-len(batch) :]
            told[how] = found(truth[batch] == new, labels, before)
            told[how] |= {"moved": models[how].update_.moved}
            told[how] |= {"told": len(models[how].update_.new_clusters)}
        seen = np.concatenate([seen, batch])
        models["from scratch"] = SAGL(known, random_state=seed).fit(split.train[seen])
        for how in METHODS:
            scores = scored(models[how], test, wanted)
            rows.append(
                {"method": how, "classes": known, **scores, **told.get(how, {})}
            )
    return {"rows": rows}


def stream(
    truth: NDArray[np.int64], classes: NDArray[np.int64], seed: int
) -> Iterator[NDArray[np.int64]]:
    """Rows of each batch: one class more in each, after the first half of them."""
    first = len(classes) // 2
    n_batches = len(classes) - first + 1
    rng = np.random.default_rng(seed)
    parts: list[list[NDArray[np.int64]]] = [[] for _ in range(n_batches)]
    for place, each in enumerate(classes):
        start = max(0, place - first + 1)
        rows = rng.permutation(np.flatnonzero(truth == each))
        shares = np.array_split(rows, n_batches - start)
        for batch, some in enumerate(shares, start=start):
            parts[batch].append(some)
    for part in parts:
        yield rng.permutation(np.concatenate(part))


def found(is_new: NDArray[np.bool_], labels: NDArray[np.int64], before: int) -> Job:
    """Whether one of the clusters that are new is the class that appeared."""
    for cluster in range(before, int(labels.max()) + 1):
        inside = labels == cluster
        both = (inside & is_new).sum()
        if 2 * both >= inside.sum() and 2 * both >= is_new.sum():
            return {"found": 1}
    return {"found": 0}


def scored(model: SAGL, views: Views, truth: NDArray[np.int64]) -> Job:
    labels = model.predict(views)
    return {
        "acc": float(clustering_accuracy(truth, labels)),
        "nmi": float(normalized_mutual_info_score(truth, labels)),
    }


def main() -> None:
    parser = parser_of(__doc__, str(TABLES / "stream.jsonl.gz"), "seeds", 5)
    options = parser.parse_args()
    results = measure_sets(options, run)
    print("| set | method | ACC | NMI | last ACC | new | false | moved |")
    print("|---" * 8 + "|")
    for name in options.sets:
        of_set = [r["rows"] for r in results if r["set"] == name]
        for how in METHODS:
            rows = [row for each in of_set for row in each if row["method"] == how]
            last = [
                [row for row in each if row["method"] == how][-1] for each in of_set
            ]
            print(f"| {name} | {how} |", " | ".join(cells(rows, last)), "|")


def cells(rows: list[Job], last: list[Job]) -> list[str]:
    mean = [f"{np.mean([row[what] for row in rows]):.3f}" for what in ("acc", "nmi")]
    mean.append(f"{np.mean([row['acc'] for row in last]):.3f}")
    if "found" not in rows[0]:
        return [*mean, "", "", ""]
    hits = sum(row["found"] for row in rows)
    others = sum(row["told"] for row in rows) - hits
    moved = np.mean([row["moved"] for row in rows])
    return [*mean, f"{hits} of {len(rows)}", f"{others}", f"{moved:.1%}"]


if __name__ == "__main__":
    main()
