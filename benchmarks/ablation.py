"""What each part of the default is worth: the fit with one part taken away at a time.

    python benchmarks/ablation.py --data ../shared/data
    python benchmarks/ablation.py --sets handwritten --variants full nearest --seeds 1

Inductive protocol: fitted on the training split without labels, each test sample
predicted alone; labels only score. Graphs are those that `attention_graph` delivers of
the test samples among themselves: the share of a row's weight that lies inside its true
class and the neighbours of a row, off the diagonal, mean over rows and views. Seconds
are processor time of the fit.

A part that has a parameter is taken away by it, the others by putting something else in
the place of a name in the library while a variant is fitted and predicts
(``VARIANTS``). Differences are to ``full``, set by set and seed by seed.

With --tasks the same on generated tasks (`tasks.py`); ± is the standard error over
them, better and worse are those on which ACC differs by more than three points.

Runs are kept in benchmarks/runs/ablation.jsonl.gz by set, seed, variant and revision of
the algorithm, and what is there is not measured again; --minutes 0 prints it. Small
sets come first.
"""

from __future__ import annotations

import argparse
import copy
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cache import TABLES, Job, measure
from data import DEFAULT_VIEWS, by_size, load
from models import default_model, same_starts
from sagl import SAGL, pipeline
from sagl.evaluation.graphs import neighbour_counts, row_weight_inside
from sagl.evaluation.metrics import clustering_accuracy, nmi
from sagl.nn.network import Linear, Network, ViewNetwork
from sagl.nn.sparse import CSR
from sagl.search.ridge import Spectrum
from sagl.training.trainer import Trainer
from tasks import task

TABLE = TABLES / "ablation.jsonl.gz"
FULL = "full"
KEY = ("variant", "set", "seed")
NEAREST = 5  # neighbours, in the variant of this name
CLEARLY = 0.03  # of ACC: better or worse on a task
# Title and digits of each measure.
MEASURES = {
    "acc": ("Test ACC", 3),
    "nmi": ("Test NMI", 3),
    "inside": ("Weight inside the true class", 3),
    "neighbours": ("Neighbours per row", 1),
    "seconds": ("Processor seconds of the fit", 1),
}
NOTHING: Mapping[str, Any] = MappingProxyType({})


def not_trained(trainer: Trainer) -> None:
    """In the place of ``Trainer.run``: the network stays where it started."""


LEADING = Spectrum.leading


def all_columns(spectrum: Spectrum, count: int) -> Tensor:
    """In the place of all principal directions: z is the standardised features."""
    d = spectrum.x.shape[1]
    return LEADING(spectrum, count) if count < d else torch.eye(d, count)


def nearest_anchors(scores: Tensor, _alpha: float) -> Tensor:
    """In the place of entmax in prediction: the best scores of a row weigh alike."""
    A = torch.zeros_like(scores)
    return A.scatter_(1, scores.topk(NEAREST, dim=1).indices, 1 / NEAREST)


def nearest_graph(
    view: ViewNetwork, linear: Linear, rows: slice | Tensor | None = None
) -> Tensor:
    """In the place of ``ViewNetwork.attention_graph``: likewise, among samples."""
    n = len(linear.keys)
    own = torch.arange(n)[slice(None) if rows is None else rows]
    scores = linear.queries[own] @ linear.keys.T
    scores[torch.arange(len(own)), own] = -torch.inf
    cols = scores.topk(NEAREST, dim=1).indices.sort(dim=1).values.flatten()
    starts = torch.arange(0, len(cols) + 1, NEAREST)
    weights = torch.full((len(cols),), 1 / NEAREST)
    return CSR(starts, cols, weights, (len(own), n)).tensor()


def trained_on_all(
    network: Network, features: Sequence[Tensor], *rest: Any
) -> CSR | None:
    """In the place of ``cross_fitted``: samples attend by weights trained on them."""
    trained = copy.deepcopy(network)
    pipeline.train(trained, features, *rest)
    return pipeline.attention_among(trained, features)


def aimed_at_best(trainer: Trainer, index: Tensor) -> Tensor:
    """In the place of ``Trainer._target``: each step aims at the best candidate."""
    assert trainer.partitions is not None
    return trainer.partitions[0].index_select(0, index)


class Variant(NamedTuple):
    """Parameters of SAGL, and what stands in the place of names in the library.

    What differs from the default only after the search has its first partitions takes
    those of the default fit as they are; its seconds are then not those of a fit.
    """

    params: Mapping[str, Any] = NOTHING
    patches: Mapping[str, Any] = NOTHING
    same_starts: bool = False


# U = V = c · I and W the principal directions, to the end.
UNTRAINED = {
    "sagl.pipeline._NOISE": 0.0,
    "sagl.training.trainer.Trainer.run": not_trained,
}
VARIANTS = {
    FULL: Variant(),
    "identity": Variant({"graph": "identity"}, same_starts=True),
    # Scores of z = h by U = V = c · I are cosines of the standardised views, weighted
    # like the network's. Every view is narrower than this width.
    "nearest": Variant(
        {"width": 2**20},
        {
            **UNTRAINED,
            "sagl.search.space.Spectrum.leading": all_columns,
            "sagl.nn.network.ViewNetwork.attention_graph": nearest_graph,
            "sagl.nn.inference.entmax_rows": nearest_anchors,
        },
        same_starts=True,
    ),
    "untrained": Variant(patches=UNTRAINED, same_starts=True),
    "one step": Variant({"steps": 1}, same_starts=True),
    "gate sharpen": Variant({"gate": "sharpen"}, same_starts=True),
    "gate shrink": Variant({"gate": "shrink"}, same_starts=True),
    "width C": Variant({"width": "C"}, same_starts=True),
    "dense": Variant({"graph": "dense"}),
    "score without attention": Variant(
        {"search": {"attention": 0.0}}, same_starts=True
    ),
    "score by attention alone": Variant({"search": {"attention": 1.0}}),
    "not cross-fitted": Variant(patches={"sagl.pipeline.cross_fitted": trained_on_all}),
    "best candidate only": Variant(
        patches={"sagl.training.trainer.Trainer._target": aimed_at_best}
    ),
    "alignment": Variant({"beta": 0.5}),
    "diversity": Variant({"gamma": 1.0}),
    "no search": Variant({"refine": False}),
    "balanced": Variant({"cluster_sizes": "balanced"}),
    "one scale, standard": Variant({"normalize": "standard"}),
    "one scale, pareto": Variant({"normalize": "pareto"}),
    "heads alone": Variant({"search": {"vote": 0.0}}),
    "vote 2": Variant({"search": {"vote": 2.0}}),
    "100 proposals": Variant({"search": {"proposals": 100}}),
    "trust 1": Variant({"search": {"trust": 1.0}}),
    "hot 0.5": Variant({"search": {"hot": 0.5}}),
    "size margin 0.03": Variant({"search": {"size_margin": 0.03}}),
    "size margin 0.1": Variant({"search": {"size_margin": 0.1}}),
}


def run(job: Job, data: Path) -> Job:
    """Fit one variant; its measures on the test split."""
    torch.set_num_threads(1)
    split = load(data, job["set"]) if "set" in job else task(data, job["task"])
    params, patches, shares = VARIANTS[job["variant"]]
    shares = shares and "set" in job
    with ExitStack() as patched:
        if shares:
            journal = same_starts(job["set"], split, job["seed"])
            patched.enter_context(patch("sagl.pipeline.Journal", lambda: journal))
        for name, substitute in patches.items():
            patched.enter_context(patch(name, substitute))
        if job["variant"] == FULL and "set" in job:
            model, seconds = default_model(job["set"], split, job["seed"])
        else:
            model = SAGL(split.n_clusters, random_state=job["seed"], **params)
            start = time.process_time()
            model.fit(split.train)
            seconds = time.process_time() - start
        predicted = model.predict(split.test)
        graphs = model.attention_graph(split.test)
    truth = split.test_labels
    inside = [row_weight_inside(A, truth, diagonal=False) for A in graphs]
    neighbours = float(np.mean([neighbour_counts(A).mean() for A in graphs]))
    return {
        "acc": clustering_accuracy(truth, predicted),
        "nmi": nmi(truth, predicted),
        "inside": float(np.mean(inside)) if neighbours else None,
        "neighbours": neighbours,
        "seconds": None if shares else seconds,
    }


def markdown(results: Sequence[Job], column: str) -> str:
    """A row per variant: each set, the mean over all sets, and what differs from full.

    The mean is given where there is a run of each set; the difference is that of the
    runs that both have.
    """
    names = {key: list(dict.fromkeys(r[key] for r in results)) for key in KEY}
    values = np.full([len(names[key]) for key in KEY], np.nan)
    for result in results:
        place = tuple(names[key].index(result[key]) for key in KEY)
        values[place] = np.nan if result[column] is None else result[column]
    runs = dict(zip(names["variant"], values, strict=True))
    title, digits = MEASURES[column]
    lines = [f"| {title} | {' | '.join(names['set'])} | mean | difference |"]
    lines.append("|---" * (len(names["set"]) + 3) + "|")
    for variant, row in runs.items():
        cells = [cell(of_set[None], digits) for of_set in row]
        cells.append("–" if "–" in cells else cell(row, digits))
        other = variant != FULL and FULL in runs
        cells.append(cell(row - runs[FULL], digits, sign="+z") if other else "")
        lines.append(f"| {variant} | {' | '.join(cells)} |")
    return "\n".join(lines)


def on_tasks(results: Sequence[Job]) -> str:
    """A row per variant: means over tasks, what differs from full, on how many."""
    values: dict[str, dict[tuple[int, int], Job]] = {}
    for r in results:
        values.setdefault(r["variant"], {})[r["task"], r["seed"]] = r
    lines = [
        "| | ACC | NMI | inside | difference in ACC | better | worse | in NMI |",
        "|---" * 8 + "|",
    ]
    for variant, runs in values.items():
        both = sorted(runs.keys() & values[FULL].keys())
        mean = {
            name: np.mean([runs[key][name] or np.nan for key in both])
            for name in ("acc", "nmi", "inside")
        }
        acc, information = (
            np.array([runs[key][name] - values[FULL][key][name] for key in both])
            for name in ("acc", "nmi")
        )
        lines.append(
            f"| {variant} | {mean['acc']:.3f} | {mean['nmi']:.3f} "
            f"| {mean['inside']:.3f} "
            f"| {acc.mean():+.3f} ± {acc.std() / len(both) ** 0.5:.3f} "
            f"| {(acc > CLEARLY).sum()} | {(acc < -CLEARLY).sum()} "
            f"| {information.mean():+.3f} |"
        )
    return "\n".join(lines)


def cell(values: NDArray[np.float64], digits: int, sign: str = "") -> str:
    """Mean over sets (rows) ± deviation over the seeds (columns) that all sets have."""
    values = values[~np.isnan(values).all(axis=1)]
    if not len(values):
        return "–"
    by_seed = values.mean(axis=0)
    by_seed = by_seed[~np.isnan(by_seed)]
    text = f"{np.nanmean(values, axis=1).mean():{sign}.{digits}f}"
    return text if len(by_seed) < 2 else f"{text} ± {by_seed.std():.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument(
        "--sets", nargs="+", choices=DEFAULT_VIEWS, default=list(DEFAULT_VIEWS)
    )
    parser.add_argument(
        "--variants",
        nargs="+",
        choices=VARIANTS,
        default=list(VARIANTS),
        metavar="NAME",
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tasks", type=int, help="that many tasks instead of sets")
    parser.add_argument("--most", type=int, default=1_200, help="samples of a task")
    parser.add_argument("--jobs", type=int, default=1, help="processes, a thread each")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="begin no fit after so many"
    )
    options = parser.parse_args()
    places: list[Job] = [{"set": name} for name in by_size(options.data, options.sets)]
    if options.tasks is not None:
        numbers = range(options.tasks)
        small = (n for n in numbers if len(task(options.data, n).train) <= options.most)
        places = [{"task": n} for n in small]
    jobs = [
        {**place, "seed": seed, "variant": variant}
        for seed in range(options.seeds)
        for place in places
        for variant in options.variants
    ]
    fit = partial(run, data=options.data)
    results = measure(jobs, fit, TABLE, options.jobs, minutes=options.minutes)
    if options.tasks is not None:
        print(f"\n{on_tasks(results)}")
        return
    for column in MEASURES if results else ():
        print(f"\n{markdown(results, column)}")


if __name__ == "__main__":
    main()
