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
and what is there is not measured again. Tasks on which not every setting has been
measured are left out.
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

import numpy as np
import torch
from numpy.typing import NDArray

from cache import TABLES, Job, measure
from sagl import SAGL
from sagl.evaluation.metrics import ari, clustering_accuracy, nmi
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


def run(directory: Path, job: Job) -> Job:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    each = task(directory, job["task"])
    params = settings(CONSTANTS)[job["setting"]]
    start = time.process_time()
    model = SAGL(each.n_clusters, random_state=job["seed"], **params).fit(each.train)
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


def table(places: Sequence[Mapping[str, Job]], constants: Sequence[str]) -> str:
    """A row per constant, and one for all of them chosen at once."""
    units = {
        "sets": [p[DEFAULT]["set"] for p in places],
        "sets and views": [
            f"{p[DEFAULT]['set']} {p[DEFAULT]['views']}" for p in places
        ],
    }
    lines = []
    for unit, names in units.items():
        first = halves(names, TIMES)
        lines += [
            f"{len(places)} runs of each setting, halves of {len(set(names))} {unit}; "
            "points of (ACC + NMI) / 2 over the default",
            "",
            "| constant | where chosen | left out | gap | chosen most often |",
            "|---|---|---|---|---|",
        ]
        options = {name: list(settings([name])) for name in constants}
        gains = {name: gained(places, options[name]) for name in constants}
        sums = np.zeros((2, TIMES))
        for name in constants:
            ours, theirs, best = choices(gains[name], first)
            sums += ours, theirs
            most = np.bincount(best, minlength=len(options[name]))
            chosen = f"{options[name][most.argmax()]} ({most.max() / TIMES:.0%})"
            lines.append(row(name, ours, theirs, chosen))
        every = [DEFAULT, *(o for name in constants for o in options[name][1:])]
        ours, theirs, best = choices(gained(places, every), first)
        most = np.bincount(best, minlength=len(every))
        chosen = f"{every[most.argmax()]} ({most.max() / TIMES:.0%})"
        lines.append(row("the one best change", ours, theirs, chosen))
        lines += [row("all, if gains add up", *sums, ""), ""]
    return "\n".join(lines)


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


def effects(places: Sequence[Mapping[str, Job]], names: Sequence[str]) -> str:
    """A row per setting: means over tasks; on how many ACC is a point up or down."""
    lines = [
        "| setting | ACC | NMI | ACC over the default | NMI | better | worse |",
        "|---" * 7 + "|",
    ]
    for name in names:
        acc, information = (
            np.array([[p[n][m] for n in (name, DEFAULT)] for p in places])
            for m in ("acc", "nmi")
        )
        more = acc[:, 0] - acc[:, 1]
        error = more.std() / len(places) ** 0.5
        lines.append(
            f"| {name} | {acc[:, 0].mean():.3f} | {information[:, 0].mean():.3f} "
            f"| {more.mean():+.3f} ± {error:.3f} "
            f"| {(information[:, 0] - information[:, 1]).mean():+.3f} "
            f"| {(more > 0.01).sum()} | {(more < -0.01).sum()} |"
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
    places = complete(results, names)
    if places:
        print(f"\n{effects(places, names)}\n\n{table(places, options.constants)}")


if __name__ == "__main__":
    main()
