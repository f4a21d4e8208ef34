"""Methods that leave samples out, at full and at equal coverage: a curve, its area.

    python benchmarks/coverage_curves.py --data ../shared/data
    python benchmarks/coverage_curves.py --minutes 0 --picture coverage.png

Each method clusters the training samples; labels only score. Samples are ordered by how
sure the method is of them, and accuracy is that of the surest so many: clusters are
matched to classes once, on all samples. Its area is the mean accuracy over all
coverages, from the surest sample alone to all.

- SAGL: by its confidence. Left out are those that `predict(agreement=0.9)` leaves out.
- EVoC and UMAP + HDBSCAN: those that the method labelled come first, by the strength
  of membership that it gives; then those it left out, which get the cluster of the
  nearest ten labelled ones, by the share of these that are of one cluster.

Runs are kept in benchmarks/runs/coverage.jsonl.gz by set, method, seed and revision,
and what is there is not measured again; --minutes 0 prints it.
"""

from __future__ import annotations

import argparse
import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from cache import TABLES, Job, measure
from data import by_size, load
from sagl import SAGL, Views
from sagl._version import PEERS_REVISION, REVISION
from sagl.baselines.registry import find_method

TABLE = TABLES / "coverage.jsonl.gz"
AGREEMENT = 0.9
SETS = ("bbcsport", "cub10", "flowers_het", "handwritten", "landuse21", "wiki")
METHODS = {"sagl": "SAGL", "umap-hdbscan": "UMAP + HDBSCAN", "evoc": "EVoC"}
COLOURS = {"sagl": "#0072B2", "umap-hdbscan": "#D55E00", "evoc": "#009E73"}
# Who clusters for them, and what says how strongly a sample belongs.
PACKAGES = {
    "umap-hdbscan": ("sklearn.cluster", "HDBSCAN", "probabilities_"),
    "evoc": ("evoc", "EVoC", "membership_strengths_"),
}
GRID = np.arange(1, 101) / 100  # coverages at which curves are kept


class Answer(NamedTuple):
    """A cluster for every sample, how sure that is, and who is left out."""

    labels: NDArray[np.int64]
    sureness: NDArray[np.float64]  # higher is surer
    covered: NDArray[np.bool_]


def of_sagl(train: Views, n_clusters: int, seed: int) -> Answer:
    model = SAGL(n_clusters, random_state=seed).fit(train)
    labels, confidence = model.predict_with_confidence(train)
    return Answer(labels, confidence, confidence >= model.threshold(AGREEMENT))


def of_peer(name: str, train: Views, n_clusters: int, seed: int) -> Answer:
    method = find_method(name)
    model = method.load()(n_clusters=n_clusters, random_state=seed, **method.params)
    with recorded(name) as answers:
        model.fit(train)
    covered = np.asarray(model.covered_)
    # HDBSCAN may be asked several times, and one answer taken.
    strength = next(s for labels, s in answers if np.array_equal(labels >= 0, covered))
    labels = model.predict(train)
    shares = model.decision_function(train).max(axis=1)
    return Answer(labels, np.where(covered, 1 + strength, shares), covered)


@contextmanager
def recorded(name: str) -> Iterator[list[tuple[NDArray[Any], NDArray[Any]]]]:
    """Labels and strengths of membership, whenever the clustering package answers."""
    module, of_package, attribute = PACKAGES[name]
    package = getattr(import_module(module), of_package)
    answers: list[tuple[NDArray[Any], NDArray[Any]]] = []
    original: Callable[..., NDArray[Any]] = package.fit_predict

    def fit_predict(model: Any, *args: Any, **kwargs: Any) -> NDArray[Any]:
        labels = original(model, *args, **kwargs)
        answers.append((labels, np.asarray(getattr(model, attribute))))
        return labels

    with patch.object(package, "fit_predict", fit_predict):
        yield answers


def run(directory: Path, job: Job) -> Job:
    # Numba's threads set those of torch, too, and wait for each other by spinning.
    os.environ["NUMBA_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    split = load(directory, job["set"])
    truth = split.train_labels
    find = of_sagl if job["method"] == "sagl" else partial(of_peer, job["method"])
    answer = find(split.train, split.n_clusters, job["seed"])
    right = is_right(truth, answer.labels)
    curve = accuracy_over_coverage(right, answer.sureness)
    own = answer.covered
    return {
        "full": round(float(right.mean()), 4),
        "coverage": round(float(own.mean()), 4),
        "covered": round(float(right[own].mean()), 4) if own.any() else None,
        "area": round(float(curve.mean()), 4),
        "curve": np.interp(GRID, covers(len(curve)), curve).round(4).tolist(),
    }


def is_right(truth: NDArray[Any], labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whose cluster is matched to its class, one to one, on all samples."""
    classes, codes = np.unique(truth, return_inverse=True)
    shared = np.zeros((labels.max() + 1, len(classes)))
    np.add.at(shared, (labels, codes), 1)
    clusters, matched = linear_sum_assignment(shared, maximize=True)
    class_of = np.full(len(shared), -1)
    class_of[clusters] = matched
    right: NDArray[np.bool_] = class_of[labels] == codes
    return right


def covers(n: int) -> NDArray[np.float64]:
    """The coverages of n samples, one more at a time."""
    return np.arange(1, n + 1) / n


def accuracy_over_coverage(
    right: NDArray[np.bool_], sureness: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The share that is right among the surest 1, 2, …, n samples.

    Among samples of which a method is equally sure it has no order: what is right is
    spread evenly over them.
    """
    _, group = np.unique(-sureness, return_inverse=True)
    sizes = np.bincount(group)
    expected = (np.bincount(group, weights=right) / sizes)[np.sort(group)]
    result: NDArray[np.float64] = expected.cumsum() / np.arange(1, len(right) + 1)
    return result


def table(results: Sequence[Job]) -> str:
    """A row per set and method: mean ± deviation over seeds."""
    lines = [
        "| set | method | left unlabelled | ACC of the rest | SAGL's there "
        "| ACC of all | area |",
        "|---" * 7 + "|",
    ]
    runs = grouped(results)
    for (place, method), own in runs.items():
        ours = runs.get((place, "sagl"), [])
        coverages = [r["coverage"] for r in own]
        there = [float(np.interp(c, GRID, r["curve"])) for c in coverages for r in ours]
        cells = [
            place,
            METHODS[method],
            spread([1 - c for c in coverages]),
            spread([r["covered"] for r in own if r["covered"] is not None]),
            "" if method == "sagl" else spread(there),
            spread([r["full"] for r in own]),
            spread([r["area"] for r in own]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def grouped(results: Sequence[Job]) -> dict[tuple[str, str], list[Job]]:
    """Runs of all seeds, by set and method."""
    runs: dict[tuple[str, str], list[Job]] = {}
    for r in results:
        runs.setdefault((r["set"], r["method"]), []).append(r)
    return runs


def spread(values: Sequence[float]) -> str:
    return f"{np.mean(values):.3f} ± {np.std(values):.3f}" if values else "–"


def picture(runs: Mapping[tuple[str, str], Sequence[Job]], file: Path) -> None:
    """Accuracy over coverage, a panel per set; a point where a method itself stops."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    sets = list(dict.fromkeys(name for name, _ in runs))
    columns = min(3, len(sets))
    figure, axes = plt.subplots(
        -(-len(sets) // columns),
        columns,
        figsize=(10, 3.1 * -(-len(sets) // columns)),
        sharex=True,
        squeeze=False,
        layout="constrained",
    )
    for axis in axes.flat[len(sets) :]:
        axis.remove()
    for axis, name in zip(axes.flat, sets, strict=False):
        for method, title in METHODS.items():
            own = runs.get((name, method), [])
            if not own:
                continue
            curves = np.array([r["curve"] for r in own])
            mean, colour = curves.mean(axis=0), COLOURS[method]
            axis.plot(GRID, mean, color=colour, label=title)
            axis.fill_between(
                GRID, curves.min(axis=0), curves.max(axis=0), color=colour, alpha=0.15
            )
            stop = np.mean([r["coverage"] for r in own])
            axis.plot(stop, np.interp(stop, GRID, mean), "o", color=colour)
        axis.set_title(name)
        axis.grid(alpha=0.3)
    figure.supxlabel("share of the samples that are given a cluster, the surest first")
    figure.supylabel("accuracy among them")
    handles, titles = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, titles, loc="outside upper center", ncols=3, frameon=False)
    figure.savefig(file, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    sets = by_size(options.data, options.sets)
    jobs = [
        {
            "set": name,
            "method": method,
            "seed": seed,
            "revision": REVISION if method == "sagl" else PEERS_REVISION,
        }
        for seed in range(options.seeds)
        for name in sets
        for method in options.methods
    ]
    of_sets = partial(run, options.data)
    results = measure(jobs, of_sets, TABLE, options.jobs, None, options.minutes)
    results.sort(key=lambda r: (sets.index(r["set"]), list(METHODS).index(r["method"])))
    print(f"\n{table(results)}")
    if options.picture is not None and results:
        picture(grouped(results), options.picture)


if __name__ == "__main__":
    main()
