"""The delivered graph beside other graphs of the same samples, on every set and view.

    python benchmarks/graphs.py --data ../shared/data
    python benchmarks/graphs.py --sets handwritten --methods knn5,sagl --seeds 1

Nodes are the test samples, among themselves; labels only score. Methods are fitted on
the training samples of the views that all tables have of a set and, where a set has
more views, SAGL once more on the others. The graphs that are not fitted have nothing to
learn and are made of one view's test samples, centred and brought to length one: k
nearest neighbours by cosine, also after columns were standardised (``knn5-standard``)
and with as many neighbours per row as SAGL's graph has in the mean (``knn-sagl``,
measured with ``sagl``); self-tuning affinity (Zelnik-Manor and Perona, 2004) of all
pairs and of the ten strongest of each row (``self-tuning10``); sparse subspace
clustering, each sample from all others, by orthogonal matching pursuit (10 and 3
coefficients) and by lasso (a penalty of a 20th, as Elhamifar and Vidal (2013) take, and
of half of the least that leaves nothing). The second setting of each was taken with a
look at the labels of five views, in favour of these methods: it keeps far more weight
inside the classes. The lasso is solved by LARS: where samples are almost parallel
(handwritten's ``mor``) its optimum is nearly flat, and what coordinate descent stops at
depends on the order of the samples. There single precision does not tell neighbours
apart either: all is in double. Nothing is sampled.

Measures are those of sagl.evaluation.graphs, the same known labels for all. Results are
kept in --cache, and what is there is not measured again; those of methods that are
fitted belong to a revision of the algorithm (sagl/_version.py).
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoLars, orthogonal_mp

from cache import TABLES, Job, measure
from data import DEFAULT_VIEWS, Split, all_views, load
from models import default_model
from sagl import SAGL, CollapseWarning
from sagl._version import REVISION
from sagl.baselines import MSRL
from sagl.baselines.base import resident, standardized
from sagl.evaluation import clustering_scores
from sagl.evaluation.graphs import graph_measures

HERE = Path(__file__).parent
OURS, SAME_DEGREE, MEAN = "sagl", "knn-sagl", "mean"
COLUMNS = {
    "inside_off_diagonal": "weight inside class",
    "neighbours": "neighbours per row",
    "asymmetry": "asymmetry",
    "propagation": "label propagation",
    "spectral": "spectral clustering",
}
Features = NDArray[np.float64]


def nearest(X: Features, k: int) -> csr_array:
    """k nearest neighbours by cosine of centred rows, all of one weight."""
    Z = directions(X)
    cosines = Z @ Z.T
    np.fill_diagonal(cosines, -np.inf)
    columns = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
    indptr = np.arange(0, columns.size + 1, k)
    weights = np.full(columns.size, 1 / k)
    return csr_array((weights, columns.ravel(), indptr), shape=cosines.shape)


def self_tuning(X: Features, keep: int | None = None) -> csr_array:
    """exp(−d²/σσ') of all pairs, or of the strongest so many of each row.

    σ is the distance of the seventh neighbour.
    """
    Z = directions(X)
    distances = cdist(Z, Z)
    scale = np.sort(distances, axis=1)[:, 7].clip(min=1e-12)  # the first is itself
    affinity = np.exp(-(distances**2) / np.outer(scale, scale))
    np.fill_diagonal(affinity, 0)
    if keep is not None:
        weakest = np.argsort(-affinity, axis=1)[:, keep:]
        np.put_along_axis(affinity, weakest, 0, axis=1)
    return csr_array(affinity)


def ssc_omp(X: Features, count: int) -> csr_array:
    """So many coefficients, or as many as there are columns, by matching pursuit."""
    few = min(count, X.shape[1])
    return self_expressed(X, partial(orthogonal_mp, n_nonzero_coefs=few))


def ssc_lasso(X: Features, part: int) -> csr_array:
    """Coefficients with a penalty of 1/part of the least that leaves none."""

    def coefficients(others: Features, row: Features) -> Features:
        penalty = np.abs(others.T @ row).max() / part
        model = LassoLars(penalty / len(row), fit_intercept=False, max_iter=2000)
        return model.fit(others, row).coef_

    return self_expressed(X, coefficients)


def self_expressed(
    X: Features, solve: Callable[[Features, Features], Features]
) -> csr_array:
    """Each row as a few others: absolute coefficients, rows of sum one."""
    Z = directions(X)
    rows = []
    for i in range(len(Z)):
        with warnings.catch_warnings():  # of samples that are there twice
            warnings.simplefilter("ignore", (ConvergenceWarning, RuntimeWarning))
            weights = np.abs(solve(np.delete(Z, i, axis=0).T, Z[i]))
        rows.append(csr_array(np.insert(weights / (weights.sum() or 1), i, 0)[None]))
    parts = [
        np.concatenate([getattr(row, p) for row in rows]) for p in ("data", "indices")
    ]
    indptr = np.concatenate([[0], np.cumsum([row.nnz for row in rows])])
    return csr_array((*parts, indptr), shape=(len(Z), len(Z)))


def directions(X: Features) -> Features:
    X = X - X.mean(axis=0)
    return X / np.linalg.norm(X, axis=1, keepdims=True).clip(min=1e-12)


def standardised_columns(X: Features) -> Features:
    return (X - X.mean(axis=0)) / X.std(axis=0).clip(min=1e-12)


PEERS: dict[str, Callable[[Features], csr_array]] = {
    "knn5": partial(nearest, k=5),
    "knn10": partial(nearest, k=10),
    "knn5-standard": lambda X: nearest(standardised_columns(X), 5),
    "self-tuning": self_tuning,
    "self-tuning10": partial(self_tuning, keep=10),
    "ssc-omp3": partial(ssc_omp, count=3),
    "ssc-omp10": partial(ssc_omp, count=10),
    "ssc-lasso2": partial(ssc_lasso, part=2),
    "ssc-lasso20": partial(ssc_lasso, part=20),
}


class Fit(NamedTuple):
    """What a method says of the test samples."""

    graphs: list[csr_array]  # one per view
    labels: NDArray[np.int64]


def sagl_fit(split: Split, seed: int, **params: Any) -> Fit:
    with warnings.catch_warnings():  # of the paper's recipes: the table shows it
        warnings.simplefilter("ignore", CollapseWarning)
        model = SAGL(split.n_clusters, random_state=seed, **params).fit(split.train)
    return Fit(model.attention_graph(split.test), model.predict(split.test))


def msrl_fit(split: Split, seed: int) -> Fit:
    """MSRL's attention, softmax of relu(a·z_i + c·z_j): no zeros at all."""
    model = MSRL(split.n_clusters, random_state=seed).fit(split.train)
    graphs, state = [], model.state_
    features = standardized(resident(split.test, torch.device("cpu")), state)
    for i, h in enumerate(features):
        z = h @ state[f"W.{i}"].to(h).T + state[f"b.{i}"].to(h)
        to = [z @ state[f"{name}.{i}"].to(h) for name in "ac"]
        A = torch.relu(to[0][:, None] + to[1]).softmax(dim=1)
        graphs.append(csr_array(A.double().numpy()))
    return Fit(graphs, model.predict(split.test))


def default_fit(split: Split, seed: int, name: str) -> Fit:
    """Of the views that all tables have: fitted once for all of them."""
    model, _ = default_model(name, split, seed)
    return Fit(model.attention_graph(split.test), model.predict(split.test))


FITS: dict[str, Callable[..., Fit]] = {
    OURS: sagl_fit,
    "msrl": msrl_fit,
    **{
        f"sagl-{recipe}{suffix}": partial(sagl_fit, recipe=recipe, **params)
        for recipe in ("paper", "released")
        for suffix, params in (("", {}), ("-standard", {"normalize": "standard"}))
    },
}


def run(job: Job, data: Path) -> Job:
    """Measures by method and view; SAGL's come with those of as many neighbours."""
    torch.set_num_threads(1)
    split = load(data, job["set"], job["views"])
    test = {name: np.asarray(X, np.float64) for name, X in split.test.items()}
    method = job["method"]
    scores = {}
    if method in PEERS:
        graphs = {method: {name: PEERS[method](X) for name, X in test.items()}}
    else:
        fit = FITS[method]
        if method == OURS and tuple(job["views"]) == DEFAULT_VIEWS[job["set"]]:
            fit = partial(default_fit, name=job["set"])
        fitted = fit(split, job["seed"])
        graphs = {method: dict(zip(test, fitted.graphs, strict=True))}
        scores["scores"] = clustering_scores(split.test_labels, fitted.labels)
    if method == OURS:
        graphs[SAME_DEGREE] = {
            name: nearest(test[name], max(1, round(graph_measures(A).neighbours)))
            for name, A in graphs[method].items()
        }
    measures = {
        name: {
            view: graph_measures(A, split.test_labels).as_dict()
            for view, A in of_views.items()
        }
        for name, of_views in graphs.items()
    }
    return {**measures, **scores}


def jobs_of(options: argparse.Namespace, views: Mapping[str, list[str]]) -> list[Job]:
    """One per view of what needs no fit, one per seed of what does."""
    jobs: list[Job] = []
    for name in options.sets:
        for method in options.methods:
            if method in PEERS:
                jobs += [
                    {"set": name, "method": method, "views": [view]}
                    for view in views[name]
                ]
            else:
                common = {"set": name, "method": method, "revision": REVISION}
                jobs += [
                    {**common, "views": together, "seed": seed}
                    for together in fitted_together(name, method, views[name])
                    for seed in range(options.seeds)
                ]
    return jobs


def fitted_together(name: str, method: str, views: Sequence[str]) -> list[list[str]]:
    """The views of a set that all tables have and, for ours, the others if any."""
    usual = list(DEFAULT_VIEWS[name])
    others = [view for view in views if view not in usual]
    return [usual, others] if others and method == OURS else [usual]


def tabulate(results: Sequence[Job]) -> dict[tuple[str, str, str], dict[str, list]]:
    """Values over the seeds by set, view and method, and by measure."""
    table: dict[tuple[str, str, str], dict[str, list]] = {}
    for result in results:
        for method in (*PEERS, *FITS, SAME_DEGREE):
            for view, measures in result.get(method, {}).items():
                cell = table.setdefault((result["set"], view, method), {})
                for column in COLUMNS:
                    cell.setdefault(column, []).append(measures[column])
    # The mean over the views that all tables have, seed by seed.
    for name, method in dict.fromkeys((key[0], key[2]) for key in table):
        cells = [table.get((name, view, method)) for view in DEFAULT_VIEWS[name]]
        if None not in cells:
            table[name, MEAN, method] = {
                column: np.mean([cell[column] for cell in cells], axis=0).tolist()
                for column in COLUMNS
            }
    return table


def markdown(table: Mapping[tuple[str, str, str], dict[str, list]]) -> str:
    """A row per set, view and method; the mean over views after the views."""
    lines = ["| set | view | method | " + " | ".join(COLUMNS.values()) + " |"]
    lines.append("|---" * (3 + len(COLUMNS)) + "|")
    order = list(dict.fromkeys(key[:2] for key in table))
    order.sort(key=lambda place: (place[0], place[1] == MEAN))
    for place in order:
        for key, cell in table.items():
            if key[:2] == place:
                shown = [spread(values, name) for name, values in cell.items()]
                lines.append("| " + " | ".join([*key, *shown]) + " |")
    return "\n".join(lines)


def at_a_glance(table: Mapping[tuple[str, str, str], dict[str, list]]) -> str:
    """A row per view that all tables have: weight inside by method (neighbours)."""
    methods = [m for m in (OURS, SAME_DEGREE, *PEERS) if any(k[2] == m for k in table)]
    lines = ["| set | view | " + " | ".join(methods) + " |"]
    lines.append("|---" * (2 + len(methods)) + "|")
    ahead = dict.fromkeys(methods[1:], 0)
    places = [(n, v) for n, views in DEFAULT_VIEWS.items() for v in (*views, MEAN)]
    for name, view in places:
        cells = {m: table[name, view, m] for m in methods if (name, view, m) in table}
        if OURS not in cells:
            continue
        means = {m: np.mean(cell["inside_off_diagonal"]) for m, cell in cells.items()}
        shown = ["–"] * len(methods)
        for i, method in enumerate(methods):
            if method in cells:
                text = spread(cells[method]["inside_off_diagonal"], "inside")
                neighbours = np.mean(cells[method]["neighbours"])
                best = means[method] == max(means.values())
                text = f"**{text}**" if best else text
                shown[i] = f"{text} ({neighbours:.1f})"
        lines.append(f"| {name} | {view} | {' | '.join(shown)} |")
        if view != MEAN:
            for method in ahead:
                ahead[method] += means[OURS] > means.get(method, 0)
    n_views = sum(view != MEAN for _, view in places)
    won = ", ".join(f"{method} on {count}" for method, count in ahead.items())
    return "\n".join([*lines, "", f"Of {n_views} views, {OURS} is ahead of {won}."])


def accuracies(results: Sequence[Job]) -> str:
    """A row per method that was fitted, a column per set: test ACC by these views."""
    values: dict[tuple[str, str], list[float]] = {}
    for result in results:
        usual = tuple(result["views"]) == DEFAULT_VIEWS[result["set"]]
        if "scores" in result and usual:
            place = result["method"], result["set"]
            values.setdefault(place, []).append(result["scores"]["acc"])
    methods, sets = (list(dict.fromkeys(names)) for names in zip(*values, strict=True))
    lines = ["| test ACC | " + " | ".join(sets) + " |", "|---" * (len(sets) + 1) + "|"]
    for method in methods:
        cells = [values.get((method, name)) for name in sets]
        shown = ["–" if cell is None else spread(cell, "acc") for cell in cells]
        lines.append(f"| {method} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def spread(values: Sequence[float], column: str) -> str:
    digits = 1 if column == "neighbours" else 3
    text = f"{np.mean(values):,.{digits}f}"
    return text if len(values) == 1 else f"{text} ± {np.std(values):.{digits}f}"


def draw(table: Mapping[tuple[str, str, str], dict[str, list]], path: Path) -> None:
    """A panel per set: weight inside the class over neighbours, mean of the views."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    means = {(key[0], key[2]): cell for key, cell in table.items() if key[1] == MEAN}
    sets = sorted({name for name, _ in means})
    methods = [m for m in (*FITS, SAME_DEGREE, *PEERS) if any(k[1] == m for k in means)]
    width = min(3, len(sets))
    figure, axes = plt.subplots(
        math.ceil(len(sets) / width),
        width,
        figsize=(max(6.4, 3.2 * width), 0.9 + 2.5 * math.ceil(len(sets) / width)),
        squeeze=False,
        layout="constrained",
    )
    colours = plt.get_cmap("tab20").colors
    handles = {}
    for ax, name in zip(axes.flat, sets, strict=False):
        for i, method in enumerate(methods):
            cell = means.get((name, method))
            if cell is None:
                continue
            inside = cell["inside_off_diagonal"]
            handles[method] = ax.errorbar(
                np.mean(cell["neighbours"]),
                np.mean(inside),
                yerr=np.std(inside) or None,
                marker="*" if method == OURS else "os^Dv"[i % 5],
                markersize=13 if method == OURS else 6,
                color=colours[i % 20],
                linestyle="",
                zorder=3 if method == OURS else 2,
            )
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_title(name, fontsize=10)
        ax.grid(alpha=0.3)
        ax.tick_params(labelsize=8)
    for ax in axes.flat[len(sets) :]:
        ax.set_visible(False)
    figure.supxlabel("neighbours per row, mean over views", fontsize=9)
    figure.supylabel("weight inside the true class", fontsize=9)
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside upper center",
        ncols=3 if width < 3 else 5,
        fontsize=8,
        frameon=False,
    )
    figure.savefig(path, dpi=130)


def main() -> None:
    known = (*PEERS, *FITS)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", nargs="+", help="by default all")
    parser.add_argument(
        "--methods",
        type=lambda text: text.split(","),
        default=list(known),
        help=f"NAME,NAME,… of {', '.join(known)}",
    )
    parser.add_argument("--seeds", type=int, default=5, help="of what is fitted")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="begin nothing after so many"
    )
    parser.add_argument("--cache", type=Path, default=TABLES / "graphs.jsonl.gz")
    parser.add_argument(
        "--picture", type=Path, default=HERE / "figures" / "graphs.png", metavar="FILE"
    )
    options = parser.parse_args()
    views = all_views(options.data)
    options.sets = options.sets or list(views)
    for what, names, there in (
        ("set", options.sets, views),
        ("method", options.methods, known),
    ):
        for name in names:
            if name not in there:
                raise SystemExit(f"there is no {what} {name!r}: {', '.join(there)}")
    jobs = jobs_of(options, views)
    work = partial(run, data=options.data)
    results = measure(jobs, work, options.cache, options.jobs, None, options.minutes)
    table = tabulate(results)
    print(f"\n{at_a_glance(table)}\n\n{markdown(table)}\n\n{accuracies(results)}")
    draw(table, options.picture)


if __name__ == "__main__":
    main()
