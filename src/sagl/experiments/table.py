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
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from sagl.baselines.registry import METHODS, Method
from sagl.experiments.fit import Result, Task

__all__ = [
    *("COLUMNS", "Published", "Row", "cells", "markdown_table", "rows_of"),
    *("published_combination", "published_figures"),
]

MEASURES = ("acc", "nmi", "ari", "ami")
PUBLISHED = MEASURES[:3]  # that the paper has figures of
NOT_RUN = "published, not run"
# Rows that cannot be run: SRLF has neither a public description nor code, and
# MIM-Refiner is a backbone (k-means is what evaluates it on its features).
ONLY_PUBLISHED = {"srlf": "SRLF", "mim-refiner": "MIM-Refiner"}
# How a family may be called in a view's name; of CLIP the paper used ViT-L/14 only.
_FAMILIES = {
    "dinov3": "DINOv3",
    "siglip2": "SigLIP 2",
    "convnextv2": "ConvNeXt V2",
    "clipl14": "CLIP ViT-L/14",
    "clipvitl14": "CLIP ViT-L/14",
}
_SUPERVISED = {name for name, method in METHODS.items() if method.supervised}
_KMEANS, _TURTLE = "kmeans", "turtle"
_HEAD_START = 0.10  # "k-means plus ten points"
NEVER = "—"
COLUMNS = (
    *("method", "ACC", "NMI", "ARI", "AMI", "clusters", "seconds", "peak MiB"),
    *("to k-means+10", "to TURTLE", "published", "score", ""),
)


@dataclass(frozen=True)
class Row:
    """One method: its scores over the seeds, its costs, or why there are none."""

    name: str
    title: str
    supervised: bool
    runs: int
    mean: dict[str, float] = field(default_factory=dict)
    sd: dict[str, float] = field(default_factory=dict)
    worst_acc: float | None = None
    clusters: float | None = None
    seconds: float | None = None  # median
    peak_mib: float | None = None  # largest
    to_kmeans_plus_10: float | None = None  # median seconds; None: not reached
    to_turtle: float | None = None
    published_acc: float | None = None
    note: str = ""
    # Mean linear, graph, agreement and total of the label-free score, in nats; nothing
    # where a run of an earlier version did not measure it.
    label_free: dict[str, float] = field(default_factory=dict)
    label_free_sd: float | None = None  # of the total

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
        return self.label_free.get("total")

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
        "to_kmeans_plus_10": _mean_acc(done.get(_KMEANS), _HEAD_START),
        "to_turtle": _mean_acc(done.get(_TURTLE), 0.0),
    }
    rows = []
    for method in methods:
        runs, note = done[method.name], notes.get(method.name, "")
        row = Row(method.name, method.title or method.name, method.supervised, 0)
        measured = _measured(runs, marks) if runs else {}
        rows.append(replace(row, note=note, **measured))
    return sorted(rows, key=lambda row: row.supervised)


def best_by_score(rows: Sequence[Row], seeds: int) -> Row | None:
    """The row that the label-free score chooses, among those with all their seeds.

    If none is complete yet, among those with most.
    """
    scored = [row for row in rows if row.label_free]
    most = max((row.runs for row in scored), default=0)
    full = [row for row in scored if row.runs >= min(seeds, most)]
    return max(full, key=lambda row: row.label_free["total"], default=None)


def marked(rows: Sequence[Row], seeds: int, mark: str) -> list[Row]:
    """Best label-free score first, those without one last; the choice is marked."""
    best = best_by_score(rows, seeds)
    rows = [
        replace(row, note=f"{mark} {row.note}".strip()) if row is best else row
        for row in rows
    ]
    return sorted(rows, key=lambda row: -row.label_free.get("total", -1.0))


def _measured(
    results: list[Result], marks: Mapping[str, float | None]
) -> dict[str, Any]:
    """Scores and costs of a method's runs, by the names of a row."""
    scores = [result["scores"] for result in results]
    measures = [m for m in MEASURES if m in scores[0]]  # there are none without labels
    label_free = [r["label_free"] for r in results if "label_free" in r]
    return {
        "runs": len(results),
        "mean": {m: _mean(scores, m) for m in measures},
        "sd": {m: _deviation(scores, m) for m in measures},
        "worst_acc": min(s["acc"] for s in scores) if measures else None,
        "clusters": _mean(scores, "n_clusters"),
        "seconds": float(np.median([r["seconds"] for r in results])),
        "peak_mib": max(r["peak_mib"] for r in results),
        "label_free": {
            term: _mean(label_free, term) for term in (label_free or [{}])[0]
        },
        "label_free_sd": _deviation(label_free, "total") if label_free else None,
        **{key: _time_to(results, mark) for key, mark in marks.items()},
    }


def _mean(values: Iterable[Mapping[str, float]], name: str) -> float:
    return float(np.mean([value[name] for value in values]))


def _deviation(values: Sequence[Mapping[str, float]], name: str) -> float:
    many = len(values) > 1
    return float(np.std([value[name] for value in values], ddof=1)) if many else 0.0


def _mean_acc(results: list[Result] | None, more: float) -> float | None:
    if not results or "acc" not in results[0]["scores"]:
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


def cells(rows: Sequence[Row]) -> list[list[str]]:
    """The rows as text, the best unsupervised mean of each measure in bold.

    The column *score* is the label-free one, in nats.
    """

    def mean(row: Row, m: str) -> float | None:
        return row.score if m == "score" else row.mean.get(m)

    def text(row: Row, m: str) -> str:
        value = mean(row, m)
        if value is None:
            return ""
        formatted, deviation = f"{value:.3f}", row.sd.get(m, row.label_free_sd)
        if row.runs > 1:
            formatted += f" ± {deviation:.3f}"
        others = [mean(other, m) for other in rows if not other.supervised]
        best = max((v for v in others if v is not None), default=None)
        return f"**{formatted}**" if value == best and not row.supervised else formatted

    return [
        [
            row.marked_title,
            *(text(row, m) for m in MEASURES),
            shown(row.clusters, ".4g"),
            _seconds(row.seconds),
            shown(row.peak_mib, ",.0f"),
            _seconds(row.to_kmeans_plus_10, reached=bool(row.mean)),
            _seconds(row.to_turtle, reached=bool(row.mean)),
            shown(row.published_acc, ".3f"),
            text(row, "score"),
            row.note,
        ]
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


class Published(NamedTuple):
    """ACC, NMI and ARI of one method on one data set, as fractions."""

    title: str
    acc: float
    nmi: float | None
    ari: float | None


def published_figures(name: str) -> dict[str, Published]:
    """Figures by method for the data set that ``name`` begins with, else none.

    >>> published_figures("pets_clip")["turtle"].acc
    0.9605
    >>> published_figures("my_photos")
    {}
    """
    lines = _of_dataset("published.csv", name)
    return {line["method"]: _published(line) for line in lines}


def published_combination(name: str, views: Sequence[str]) -> Published | None:
    """SAGL's figures on these views of a data set, if the paper has them.

    Views are recognised by the model family in their names, one view per family.

    >>> published_combination("pets", ["dinov3-l", "convnextv2-l"]).acc
    0.9463
    >>> published_combination("pets", ["dinov3-l", "resnet50"]) is None
    True
    """
    families = [
        next((f for word, f in _FAMILIES.items() if plain(view).startswith(word)), "")
        for view in views
    ]
    for line in _of_dataset("published_views.csv", name):
        if sorted(families) == sorted(line["views"].split("+")):
            return _published(line)
    return None


def _of_dataset(file: str, name: str) -> list[dict[str, str]]:
    lines = lines_of(file)
    return [line for line in lines if plain(name).startswith(plain(line["dataset"]))]


def _published(line: Mapping[str, str]) -> Published:
    name = line.get("method", "sagl-paper")
    title = ONLY_PUBLISHED.get(name) or METHODS[name].title
    acc, nmi, ari = (
        round(float(line[m]) / 100, 6) if line[m] else None for m in PUBLISHED
    )
    return Published(title, acc or 0.0, nmi, ari)


def with_published(
    rows: Sequence[Row], name: str, also: Container[str] = ()
) -> list[Row]:
    """The rows, with the paper's ACC on the data set that ``name`` begins with.

    Methods of the paper that were not run have a row if they are in ``also``.
    """
    figures = published_figures(name)
    names = {row.name for row in rows}
    more = [
        Row(method, figure.title, method in _SUPERVISED, 0, note=NOT_RUN)
        for method, figure in figures.items()
        if method in also and method not in names
    ]
    rows = [
        replace(row, published_acc=getattr(figures.get(row.name), "acc", None))
        for row in [*rows, *more]
    ]
    return sorted(rows, key=lambda row: (row.supervised, row.note == NOT_RUN))
