"""A stream in which classes appear one after another: update, fit anew, or leave as is.

    python benchmarks/stream.py --data ../shared/data --sets cub10 handwritten

The training samples (of more than 2,000 so many, drawn by seed) come in at most six
batches. The first one holds the first half of
the classes, each later one brings another, or several where there are many. A class
comes with half of its samples; the others are spread evenly over the batches after.
Batch by batch a model is updated from what it keeps (*update*), updated with all
earlier samples (*with old*), fitted anew to all samples with the true number of
classes so far, which no other is told (*from scratch*), and left as is (*frozen*).
After each batch they are scored on the test samples of the classes so far: ACC and
NMI, mean over batches. *New* is how many of the classes that appeared are found, in
their batch or later, each as a cluster of its own: of all samples of the batch in one
new cluster at least half are of the class, and half of the class are in it; *false*,
how many other new clusters were announced; *moved* the mean share of earlier samples
that changed cluster.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import normalized_mutual_info_score

from cache import TABLES, Job
from data import Split
from per_set import measure_sets, parser_of
from sagl import SAGL, Views
from sagl.evaluation import clustering_accuracy

METHODS = ("frozen", "update", "with old", "from scratch")
ROWS = 2_000  # training samples, at most
LATER = 5  # batches after the first one, at most


def run(split: Split, job: Job) -> Job:
    seed = job["seed"]
    truth = split.train_labels
    steps = classes_by_batch(np.unique(truth), seed)
    batches = list(stream(truth, steps, seed))
    classes = steps[0]
    first = SAGL(len(classes), random_state=seed).fit(split.train[batches[0]])
    models = dict.fromkeys(METHODS, first)
    known: dict[str, set[int]] = {how: set(classes.tolist()) for how in METHODS}
    seen = batches[0]
    rows: list[Job] = []
    for appeared, batch in zip(steps[1:], batches[1:], strict=True):
        classes = np.concatenate([classes, appeared])
        here = np.flatnonzero(np.isin(split.test_labels, classes))
        test, wanted = split.test[here], split.test_labels[here]
        told = {}
        for how in ("update", "with old"):
            before = models[how].n_clusters_
            old = split.train[seen] if how == "with old" else None
            models[how] = models[how].update(split.train[batch], old)
            labels = models[how].labels_[-len(batch) :]
            new = range(before, models[how].n_clusters_)
            found = {class_of(truth[batch], labels == k) for k in new}
            found -= {*known[how], None}
            known[how] |= found
            told[how] = {
                "appeared": len(appeared),
                "found": len(found),
                "false": len(new) - len(found),
                "moved": models[how].update_.moved,
            }
        seen = np.concatenate([seen, batch])
        anew = SAGL(len(classes), random_state=seed).fit(split.train[seen])
        models["from scratch"] = anew
        for how in METHODS:
            scores = scored(models[how], test, wanted)
            rows.append(
                {"method": how, "classes": len(classes), **scores, **told.get(how, {})}
            )
    return {"rows": rows}


def classes_by_batch(classes: NDArray[np.int64], seed: int) -> list[NDArray[np.int64]]:
    """Which classes come with which batch: half of them with the first."""
    order = np.random.default_rng(seed).permutation(classes)
    first = len(order) // 2
    later = np.array_split(order[first:], min(LATER, len(order) - first))
    return [order[:first], *later]


def stream(
    truth: NDArray[np.int64], steps: list[NDArray[np.int64]], seed: int
) -> Iterator[NDArray[np.int64]]:
    """Rows of each batch: half of a class where it appears, the others later."""
    rng = np.random.default_rng(seed)
    parts: list[list[NDArray[np.int64]]] = [[] for _ in steps]
    for start, classes in enumerate(steps):
        for each in classes:
            rows = rng.permutation(np.flatnonzero(truth == each))
            n_later = len(steps) - start - 1
            at_once = len(rows) if n_later == 0 else -(-len(rows) // 2)
            parts[start].append(rows[:at_once])
            for part, some in zip(
                parts[start + 1 :],
                np.array_split(rows[at_once:], max(1, n_later)),
                strict=False,
            ):
                part.append(some)
    for part in parts:
        yield rng.permutation(np.concatenate(part))


def class_of(truth: NDArray[np.int64], inside: NDArray[np.bool_]) -> int | None:
    """The class of which at least half are inside, and they are half of all inside."""
    if not inside.any():
        return None
    classes, counts = np.unique(truth[inside], return_counts=True)
    best = classes[counts.argmax()]
    enough = 2 * counts.max() >= max(inside.sum(), (truth == best).sum())
    return int(best) if enough else None


def scored(model: SAGL, views: Views, truth: NDArray[np.int64]) -> Job:
    labels = model.predict(views)
    return {
        "acc": float(clustering_accuracy(truth, labels)),
        "nmi": float(normalized_mutual_info_score(truth, labels)),
    }


def main() -> None:
    parser = parser_of(__doc__, str(TABLES / "stream.jsonl.gz"), "seeds", 5)
    options = parser.parse_args()
    results = measure_sets(options, run, rows=ROWS)
    print("| set | seeds | method | ACC | NMI | last ACC | new | false | moved |")
    print("|---" * 9 + "|")
    for name in options.sets:
        of_set = [r["rows"] for r in results if r["set"] == name]
        for how in METHODS if of_set else ():
            rows = [row for each in of_set for row in each if row["method"] == how]
            last = [
                [row for row in each if row["method"] == how][-1] for each in of_set
            ]
            print(f"| {name} | {len(of_set)} | {how} | {cells(rows, last)} |")


def cells(rows: list[Job], last: list[Job]) -> str:
    mean = [f"{np.mean([row[what] for row in rows]):.3f}" for what in ("acc", "nmi")]
    mean.append(f"{np.mean([row['acc'] for row in last]):.3f}")
    if "found" not in rows[0]:
        return " | ".join([*mean, "", "", ""])
    found, appeared, false = (
        sum(row[what] for row in rows) for what in ("found", "appeared", "false")
    )
    moved = np.mean([row["moved"] for row in rows])
    return " | ".join([*mean, f"{found} of {appeared}", f"{false}", f"{moved:.1%}"])


if __name__ == "__main__":
    main()
