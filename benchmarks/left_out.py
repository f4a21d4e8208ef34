"""What tuning is worth on sets that it has not seen: constants chosen on half of them.

    python benchmarks/left_out.py --data ../shared/data --count 60 --most 700
    python benchmarks/left_out.py --minutes 0

One constant at a time is moved away from its default (``SEARCH``, ``PARAMETERS``), and
the fit measured on generated tasks (`tasks.py`): fitted on training samples without
labels, each test sample predicted alone. Then, a thousand times over, the sets (or the
pairs of a set and some of its views) are divided at random; each constant gets the
value with the best mean of ACC and NMI on the tasks of the one half, and what that
gains over the default is printed for both halves. ± is the deviation over divisions.
The gap is what the choice owes to the tasks it was made on.

Runs are kept in benchmarks/runs/left_out.jsonl.gz by task, seed, setting and revision,
and what is there is not measured again. A constant is judged on the runs that all its
values have.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cache import TABLES, Job, measure
from sagl import SAGL
from sagl.evaluation.metrics import ari, clustering_accuracy, nmi
from sagl.search.journal import Journal
from tasks import task

TABLE = TABLES / "left_out.jsonl.gz"
DEFAULT = "default"
TIMES = 1_000
# Values beside the default, by constant: fields of SearchConfig, parameters of SAGL.
SEARCH = {
    "size_margin": (0.04, 0.1),
    "vote": (0.5, 2.0),
    "attention": (0.25, 0.75),
    "penalty": (3.0, 30.0),
    "view_power": (1.0, 6.0),
    "trust": (0.25, 1.0),
}
PARAMETERS = {
    "normalize": ("standard", "pareto"),
    "cluster_sizes": ("balanced", "any"),
}
CONSTANTS = (*SEARCH, *PARAMETERS)
# Constants that come into play when the balanced search has ended.
LATE = ("size_margin", "vote", "cluster_sizes")


def setting(constant: str, value: object) -> str:
    return f"{constant}={value}"


def settings(constants: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Parameters of SAGL by the name of the setting, the default first."""
    found: dict[str, dict[str, Any]] = {DEFAULT: {}}
    for name in constants:
        for value in SEARCH.get(name, ()):
            found[setting(name, value)] = {"search": {name: value}}
        for value in PARAMETERS.get(name, ()):
            found[setting(name, value)] = {name: value}
    return found


class Begun:
    """The partitions of the last search, for settings that do not change it."""

    def __init__(self) -> None:
        self._place: tuple[int, int] | None = None
        self._partitions: list[Tensor] = []

    def of(self, number: int, seed: int) -> Journal:
        """A journal at its beginning: what it holds is not computed again."""
        if self._place != (number, seed):
            self._place, self._partitions = (number, seed), []
        journal = Journal()
        journal._partitions = self._partitions
        return journal


_KEPT = Begun()


def run(directory: Path, job: Job) -> Job:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    each = task(directory, job["task"])
    name = job["setting"]
    params = settings(CONSTANTS)[name]
    kept = Journal()
    if name == DEFAULT or name.split("=")[0] in LATE:
        kept = _KEPT.of(job["task"], job["seed"])
    start = time.process_time()
    with patch("sagl.pipeline.Journal", lambda: kept):
        model = SAGL(each.n_clusters, random_state=job["seed"], **params)
        model.fit(each.train)
    seconds = time.process_time() - start
    labels, truth = model.predict(each.test), each.test_labels
    return {
        "set": each.set,
        "views": "+".join(each.train.names),
        "acc": round(clustering_accuracy(truth, labels), 4),
        "nmi": round(nmi(truth, labels), 4),
        "ari": round(ari(truth, labels), 4),
        "sizes": model.cluster_sizes_,
        "seconds": round(seconds, 2),
    }


def complete(results: Sequence[Job], names: Sequence[str]) -> list[dict[str, Job]]:
    """Results by setting, of each task and seed on which all settings were measured."""
    places: dict[tuple[int, int], dict[str, Job]] = {}
    for r in results:
        places.setdefault((r["task"], r["seed"]), {})[r["setting"]] = r
    return [
        places[place] for place in sorted(places) if set(names) <= set(places[place])
    ]


def halves(units: Sequence[str], times: int, seed: int = 0) -> NDArray[np.bool_]:
    """Which places are in the first half of the units, (times, places).

    Places of one unit always stay together; of an odd number of units the first half
    has one less or one more, in turn.
    """
    names, which = np.unique(units, return_inverse=True)
    rng = np.random.default_rng(seed)
    chosen = np.zeros((times, len(names)), dtype=bool)
    for i in range(times):
        chosen[i, rng.permutation(len(names))[: (len(names) + i % 2) // 2]] = True
    return chosen[:, which]


def choices(
    gains: NDArray[np.float64], first: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Gains of the best option on the first half, there and on the rest, and which.

    ``gains`` are (places, options); ties go to the earlier option, the default.
    """
    weights = first / first.sum(axis=1, keepdims=True)
    rest = ~first / (~first).sum(axis=1, keepdims=True)
    ours, theirs = weights @ gains, rest @ gains  # (times, options)
    best = np.round(ours, 12).argmax(axis=1)
    times = np.arange(len(first))
    return ours[times, best], theirs[times, best], best


def table(results: Sequence[Job], constants: Sequence[str]) -> str:
    """A row per constant, on what it was measured on, and rows of all constants."""
    options = {name: list(settings([name])) for name in constants}
    every = [DEFAULT, *(o for name in constants for o in options[name][1:])]
    lines = []
    for unit in ("sets", "sets and views"):
        lines += [
            f"| halves of the {unit} | runs | where chosen | left out | gap "
            "| chosen most often |",
            "|---" * 6 + "|",
        ]
        for name in constants:
            lines += _row(name, complete(results, options[name]), options[name], unit)
        places = complete(results, every)
        lines += _row("the one best change", places, every, unit)
        if places:
            chosen = [_chosen(places, options[name], unit) for name in constants]
            both = np.sum([(ours, theirs) for ours, theirs, _ in chosen], axis=0)
            cells = row("all, if gains add up", *both, "")
            lines.append(cells.replace(" | ", f" | {len(places)} | ", 1))
        lines.append("")
    return "\n".join(lines)


def _row(
    name: str, places: Sequence[Mapping[str, Job]], options: Sequence[str], unit: str
) -> list[str]:
    if not places:
        return []
    ours, theirs, best = _chosen(places, options, unit)
    most = np.bincount(best, minlength=len(options))
    chosen = f"{options[most.argmax()]} ({most.max() / TIMES:.0%})"
    cells = row(name, ours, theirs, chosen)
    return [cells.replace(" | ", f" | {len(places)} | ", 1)]


def _chosen(
    places: Sequence[Mapping[str, Job]], options: Sequence[str], unit: str
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    runs = [p[DEFAULT] for p in places]
    units = [r["set"] if unit == "sets" else f"{r['set']} {r['views']}" for r in runs]
    return choices(gained(places, options), halves(units, TIMES))


def gained(
    places: Sequence[Mapping[str, Job]], names: Sequence[str]
) -> NDArray[np.float64]:
    """What each setting gains over the default, in mean of ACC and NMI."""

    def value(result: Job) -> float:
        return float(result["acc"] + result["nmi"]) / 2

    return np.array([[value(p[n]) - value(p[DEFAULT]) for n in names] for p in places])


def row(
    name: str, ours: NDArray[np.float64], theirs: NDArray[np.float64], chosen: str
) -> str:
    cells = [f"{100 * x.mean():+.2f} ± {100 * x.std():.2f}" for x in (ours, theirs)]
    gap = f"{100 * (ours - theirs).mean():.2f}"
    return f"| {name} | {' | '.join(cells)} | {gap} | {chosen} |"


def effects(results: Sequence[Job], names: Sequence[str]) -> str:
    """A row per setting: what it gains in the mean, and on how many runs a point."""
    lines = [
        "| setting | runs | ACC over the default | NMI | a point better | worse |",
        "|---" * 6 + "|",
    ]
    for name in names[1:]:
        places = complete(results, [DEFAULT, name])
        if not places:
            continue
        acc, information = (
            np.array([p[name][m] - p[DEFAULT][m] for p in places])
            for m in ("acc", "nmi")
        )
        lines.append(
            f"| {name} | {len(places)} "
            f"| {acc.mean():+.3f} ± {acc.std() / len(places) ** 0.5:.3f} "
            f"| {information.mean():+.3f} "
            f"| {(acc > 0.01).sum()} | {(acc < -0.01).sum()} |"
        )
    return "\n".join(lines)


def task_options(parser: argparse.ArgumentParser, count: int) -> None:
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--most", type=int, default=10**9, help="training samples")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="begin no fit after so many"
    )


def numbers_of(options: argparse.Namespace) -> list[int]:
    """The tasks that the options name."""
    numbers = range(options.first, options.first + options.count)
    return [n for n in numbers if len(task(options.data, n).train) <= options.most]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    task_options(parser, 200)
    parser.add_argument(
        "--constants", nargs="+", choices=CONSTANTS, default=list(CONSTANTS)
    )
    options = parser.parse_args()
    names = list(settings(options.constants))
    jobs = [
        {"task": n, "seed": seed, "setting": name}
        for seed in range(options.seeds)
        for n in numbers_of(options)
        for name in names
    ]
    of_tasks = partial(run, options.data)
    results = measure(jobs, of_tasks, TABLE, options.jobs, minutes=options.minutes)
    print(f"\n{effects(results, names)}\n\n{table(results, options.constants)}")


if __name__ == "__main__":
    main()
