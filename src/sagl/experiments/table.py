"""The table of a study: a row per method from its runs, the paper's figures beside it.

Published figures were made with other backbones (DINOv3 and SigLIP 2, both large) and
the paper's batch protocol: figures to compare the order of methods with, not ones to
expect. The linear probe's is the better of the two backbones. ``published.csv`` holds
the paper's Tables 1 (methods), 2 (linear probe) and 4 (ablations),
``published_views.csv`` its Table 3 (SAGL on other combinations of backbones).
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from sagl.baselines.registry import METHODS, Method
from sagl.experiments.fit import Result, Task

__all__ = [
    *("Row", "cells", "markdown_table", "published_combination", "published_figures"),
    "rows_of",
]

MEASURES = ("acc", "nmi", "ari", "ami")  # by true labels; "score" is the label-free one
PUBLISHED = MEASURES[:3]  # that the paper has figures of
NOT_RUN = "published, not run"
# Rows that cannot be run: SRLF has neither a public description nor code, and
# MIM-Refiner is a backbone (k-means is what evaluates it on its features).
ONLY_PUBLISHED = {
    "srlf": Method("srlf", "", "SRLF"),
    "mim-refiner": Method("mim-refiner", "", "MIM-Refiner"),
}
_HEAD_START = 0.10  # "k-means plus ten points"
NEVER = "—"


@dataclass(frozen=True)
class Row:
    """One method: its scores over the seeds, its costs, or why there are none."""

    name: str
    title: str
    supervised: bool
    runs: int
    mean: dict[str, float] = field(default_factory=dict)  # by measure
    sd: dict[str, float] = field(default_factory=dict)
    worst_acc: float | None = None
    clusters: float | None = None
    seconds: float | None = None  # median
    peak_mib: float | None = None  # largest
    to_kmeans_plus_10: float | None = None  # median seconds; None: not reached
    to_turtle: float | None = None
    published_acc: float | None = None
    note: str = ""
    # Mean linear, graph, agreement and total of the label-free score, in nats.
    label_free: dict[str, float] = field(default_factory=dict)
    label_free_sd: float | None = None  # of the total
    published_nmi: float | None = None
    published_ari: float | None = None

    @property
    def marked_title(self) -> str:
        """The title, which says so if labels were used."""
        return f"{self.title} (with labels)" if self.supervised else self.title

    @property
    def acc(self) -> float | None:
        """The mean, if there are labels."""
        return self.mean.get("acc")

    @property
    def score(self) -> float | None:
        """The mean label-free score; higher is better."""
        return self.mean.get("score")

    def record(self) -> dict[str, Any]:
        """Names and plain values."""
        flat = asdict(self)
        mean, sd, label_free = (flat.pop(name) for name in ("mean", "sd", "label_free"))
        for m in MEASURES:
            flat[f"{m}_mean"], flat[f"{m}_sd"] = mean.get(m), sd.get(m)
        for term in ("total", "linear", "graph", "agreement"):
            flat[f"label_free_{term}"] = label_free.get(term)
        return flat


def rows_of(
    methods: Sequence[Method],
    results: Iterable[tuple[Task, Result | None]],
    skipped: Mapping[str, str],
) -> list[Row]:
    """A row per method, in their order; supervised ones last.

    ``results`` are None for tasks not run yet; ``skipped`` says why a method has no
    tasks. A row without all its runs has a note that says why.
    """
    done: dict[str, list[Result]] = {method.name: [] for method in methods}
    notes = dict(skipped)
    for task, result in results:
        name = task.method.name
        if result is None:
            notes.setdefault(name, f"seed {task.seed}: not run yet")
        elif "error" in result:
            notes[name] = f"seed {task.seed}: {result['error']}"
        else:
            done[name].append(result)
    marks = {
        "to_kmeans_plus_10": _mean_acc(done.get("kmeans"), _HEAD_START),
        "to_turtle": _mean_acc(done.get("turtle"), 0.0),
    }
    rows = [
        Row(
            method.name,
            method.title or method.name,
            method.supervised,
            len(done[method.name]),
            note=notes.get(method.name, ""),
            **_measured(done[method.name], marks),
        )
        for method in methods
    ]
    return sorted(rows, key=lambda row: row.supervised)


def best_by_score(rows: Sequence[Row], seeds: int) -> Row | None:
    """The row that the label-free score chooses, among those with all their seeds.

    If none is complete yet, among those with most.
    """
    most = max((row.runs for row in rows), default=0)
    full = [row for row in rows if row.runs and row.runs >= min(seeds, most)]
    return max(full, key=lambda row: row.mean["score"], default=None)


def marked(rows: Sequence[Row], seeds: int, mark: str) -> list[Row]:
    """Best label-free score first, those without one last; the choice is marked."""
    best = best_by_score(rows, seeds)
    rows = [
        replace(row, note=f"{mark} {row.note}".strip()) if row is best else row
        for row in rows
    ]
    return sorted(rows, key=lambda row: -row.mean.get("score", -1.0))


def _measured(
    results: list[Result], marks: Mapping[str, float | None]
) -> dict[str, Any]:
    """Scores and costs of a method's runs, by the names of a row."""
    if not results:
        return {}
    scores = [
        {**result["scores"], "score": result["label_free"]["total"]}
        for result in results
    ]
    measures = [m for m in (*MEASURES, "score") if all(m in s for s in scores)]
    label_free = [result["label_free"] for result in results]
    return {
        "mean": {m: _mean(scores, m) for m in measures},
        "sd": {m: _deviation(scores, m) for m in measures},
        "worst_acc": min((s["acc"] for s in scores if "acc" in s), default=None),
        "clusters": _mean(scores, "n_clusters"),
        "seconds": float(np.median([r["seconds"] for r in results])),
        "peak_mib": max(r["peak_mib"] for r in results),
        "label_free": {
            term: _mean(label_free, term)
            for term in label_free[0]
            if all(term in each for each in label_free)
        },
        "label_free_sd": _deviation(scores, "score"),
        **{key: _time_to(results, mark) for key, mark in marks.items()},
    }


def _mean(values: Iterable[Mapping[str, float]], name: str) -> float:
    return float(np.mean([value[name] for value in values]))


def _deviation(values: Sequence[Mapping[str, float]], name: str) -> float:
    many = len(values) > 1
    return float(np.std([value[name] for value in values], ddof=1)) if many else 0.0


def _mean_acc(results: list[Result] | None, more: float) -> float | None:
    if not results or any("acc" not in result["scores"] for result in results):
        return None
    return _mean((result["scores"] for result in results), "acc") + more


def _time_to(results: list[Result], mark: float | None) -> float | None:
    """Median seconds until ACC reaches the mark; None where most seeds never do."""
    if mark is None:
        return None
    times = [
        next((at for at, acc in result["curve"] if acc >= mark - 1e-9), math.inf)
        for result in results
    ]
    middle = float(np.median(times))
    return middle if math.isfinite(middle) else None


def cells(rows: Sequence[Row]) -> list[dict[str, str]]:
    """What may stand in a table of each row, by the name of a column.

    The best unsupervised mean of each measure is in bold; *score* is the label-free
    one, in nats.
    """
    best: dict[str, float] = {}
    for row in rows:
        for m, value in row.mean.items():
            if not row.supervised:
                best[m] = max(value, best.get(m, value))

    def mean(row: Row, m: str) -> str:
        if m not in row.mean:
            return ""
        text = f"{row.mean[m]:.3f}" + (f" ± {row.sd[m]:.3f}" if row.runs > 1 else "")
        bold = row.mean[m] == best.get(m) and not row.supervised
        return f"**{text}**" if bold else text

    return [
        {
            "method": row.marked_title,
            **{m.upper(): mean(row, m) for m in MEASURES},
            "score": mean(row, "score"),
            "worst ACC": shown(row.worst_acc, ".3f"),
            "clusters": shown(row.clusters, ".4g"),
            "seconds": _seconds(row.seconds),
            "peak MiB": shown(row.peak_mib, ",.0f"),
            "to k-means+10": _seconds(row.to_kmeans_plus_10, reached="acc" in row.mean),
            "to TURTLE": _seconds(row.to_turtle, reached="acc" in row.mean),
            "published": shown(row.published_acc, ".3f"),
            "published NMI": shown(row.published_nmi, ".3f"),
            "published ARI": shown(row.published_ari, ".3f"),
            "": row.note,
        }
        for row in rows
    ]


def _seconds(value: float | None, *, reached: bool = False) -> str:
    if value is None:
        return NEVER if reached else ""
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def shown(value: Any, form: str = "g") -> str:
    """A value as it is written in a table."""
    if value is None:
        return ""
    return f"{value:{form}}" if isinstance(value, float) else str(value)


def markdown_table(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    everything = [columns, ["---"] * len(columns), *lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in everything)


@cache
def lines_of(file: str) -> list[dict[str, str]]:
    """A table of the paper that comes with this package."""
    text = files("sagl.experiments").joinpath(file).read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


def plain(name: str) -> str:
    """A name by which others that are written differently are found."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


Figures = dict[str, float]  # ACC, NMI and ARI, as fractions


def published_figures(name: str) -> dict[str, Figures]:
    """Figures by method for the data set that ``name`` begins with, else none.

    >>> published_figures("pets_clip")["turtle"]["acc"]
    0.9605
    >>> published_figures("my_photos")
    {}
    """
    return {line["method"]: figures for line, figures in _of("published.csv", name)}


def published_combination(name: str, views: Sequence[str]) -> Figures:
    """SAGL's figures on these views of a data set, if the paper has them.

    Views are recognised by the model family in their names, one view per family.

    >>> published_combination("pets", ["dinov3-l", "convnextv2-l"])["acc"]
    0.9463
    >>> published_combination("pets", ["dinov3-l", "resnet50"])
    {}
    """
    for line, figures in _of("published_views.csv", name):
        families = sorted(line["views"].split("+"))  # regular expressions
        known = [[f for f in families if re.match(f, plain(view))] for view in views]
        if sorted(known) == [[family] for family in families]:
            return figures
    return {}


def _of(file: str, name: str) -> list[tuple[dict[str, str], Figures]]:
    """Lines of the data set that ``name`` begins with, and their figures."""
    return [
        (line, {m: round(float(line[m]) / 100, 6) for m in PUBLISHED if line[m]})
        for line in lines_of(file)
        if plain(name).startswith(plain(line["dataset"]))
    ]


def beside(row: Row, figures: Figures) -> Row:
    """The row, with the paper's figures beside its own."""
    acc, nmi, ari = map(figures.get, PUBLISHED)
    return replace(row, published_acc=acc, published_nmi=nmi, published_ari=ari)


def with_published(
    rows: Sequence[Row], name: str, also: Container[str] = ()
) -> list[Row]:
    """The rows, with the paper's figures on the data set that ``name`` begins with.

    Methods of the paper that were not run have a row if they are in ``also``.
    """
    figures, run = published_figures(name), {row.name for row in rows}
    more = [
        Row(method.name, method.title, method.supervised, 0, note=NOT_RUN)
        for method in {**METHODS, **ONLY_PUBLISHED}.values()
        if method.name in figures and method.name in also and method.name not in run
    ]
    rows = [beside(row, figures.get(row.name, {})) for row in [*rows, *more]]
    return sorted(rows, key=lambda row: (row.supervised, row.note == NOT_RUN))
