"""The table of a study: a row per method from its runs, and how it is written."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sagl.baselines.registry import Method
from sagl.experiments.one_run import Result, Task
from sagl.experiments.paper import Published

__all__ = [
    "COLUMNS",
    "Row",
    "cells",
    "csv_table",
    "markdown_table",
    "record",
    "rows_of",
    "shown",
]

NOT_RUN = "published, not run"
MEASURES = ("acc", "nmi", "ari", "ami")
_KMEANS, _TURTLE = "kmeans", "turtle"
_SCORE = "score"
_HEAD_START = 0.10  # "k-means plus ten points"


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


def rows_of(
    methods: Sequence[Method],
    results: Iterable[tuple[Task, Result | None]],
    skipped: Mapping[str, str],
    published: Mapping[str, Published],
) -> list[Row]:
    """A row per method, in their order; supervised ones last.

    ``results`` are None for tasks not run yet; ``skipped`` says why a method has no
    tasks; ``published`` has the paper's figures by method.
    """
    done: dict[str, list[Result]] = {}
    errors = dict(skipped)
    for task, result in results:
        if result is None:
            errors.setdefault(task.method.name, f"seed {task.seed}: not run yet")
        elif "error" in result:
            errors[task.method.name] = f"seed {task.seed}: {result['error']}"
        else:
            done.setdefault(task.method.name, []).append(result)
    marks = {
        "to_kmeans_plus_10": _mark(done.get(_KMEANS), _HEAD_START),
        "to_turtle": _mark(done.get(_TURTLE), 0.0),
    }
    rows = []
    for method in methods:
        figure = published.get(method.name)
        common: dict[str, Any] = {
            "name": method.name,
            "title": method.title or method.name,
            "supervised": method.supervised,
            "published_acc": None if figure is None else figure.acc,
            "note": errors.get(method.name, ""),
        }
        runs = done.get(method.name, [])
        measured = _measured(runs, marks) if runs else {"runs": 0}
        rows.append(Row(**common, **measured))
    return sorted(rows, key=lambda row: row.supervised)


def _measured(
    results: list[Result], marks: Mapping[str, float | None]
) -> dict[str, Any]:
    """Scores and costs of a method's runs, by the names of a row."""
    values = {
        m: np.array([result["scores"][m] for result in results])
        for m in MEASURES
        if m in results[0]["scores"]  # there are none without labels
    }
    label_free = [r["label_free"] for r in results if "label_free" in r]
    return {
        "runs": len(results),
        "mean": {m: float(v.mean()) for m, v in values.items()},
        "sd": {m: _deviation(v) for m, v in values.items()},
        "worst_acc": float(values["acc"].min()) if "acc" in values else None,
        "clusters": float(np.mean([r["scores"]["n_clusters"] for r in results])),
        "seconds": float(np.median([r["seconds"] for r in results])),
        "peak_mib": max(r["peak_mib"] for r in results),
        "label_free": {
            term: float(np.mean([terms[term] for terms in label_free]))
            for term in (label_free[0] if label_free else ())
        },
        "label_free_sd": (
            _deviation(np.array([terms["total"] for terms in label_free]))
            if label_free
            else None
        ),
        **{key: _time_to(results, mark) for key, mark in marks.items()},
    }


def _deviation(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def _mark(results: list[Result] | None, more: float) -> float | None:
    if not results or "acc" not in results[0]["scores"]:
        return None
    return float(np.mean([result["scores"]["acc"] for result in results])) + more


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


COLUMNS = (
    *("method", "ACC", "NMI", "ARI", "AMI", "clusters", "seconds", "peak MiB"),
    *("to k-means+10", "to TURTLE", "published", "score", ""),
)


def cells(rows: Sequence[Row], bold: tuple[str, str] = ("**", "**")) -> list[list[str]]:
    """The rows as text, the best unsupervised mean of each measure in bold.

    The column *score* is the label-free one, in nats.
    """
    best: dict[str, float] = {}
    for row in rows:
        for m, value in ({} if row.supervised else _means(row)).items():
            best[m] = max(value, best.get(m, value))

    def score(row: Row, m: str) -> str:
        value, deviation = _means(row).get(m), row.sd.get(m, row.label_free_sd)
        if value is None:
            return ""
        text = f"{value:.3f}"
        if row.runs > 1:
            text += f" ± {deviation:.3f}"
        leads = not row.supervised and value == best[m]
        return f"{bold[0]}{text}{bold[1]}" if leads else text

    return [
        [
            row.marked_title,
            *(score(row, m) for m in MEASURES),
            "" if row.clusters is None else f"{row.clusters:.4g}",
            _seconds(row.seconds),
            "" if row.peak_mib is None else f"{row.peak_mib:,.0f}",
            _seconds(row.to_kmeans_plus_10, reached=bool(row.mean)),
            _seconds(row.to_turtle, reached=bool(row.mean)),
            "" if row.published_acc is None else f"{row.published_acc:.3f}",
            score(row, _SCORE),
            row.note,
        ]
        for row in rows
    ]


def _means(row: Row) -> dict[str, float]:
    """Everything that is averaged over seeds and compared between rows."""
    if not row.label_free:
        return dict(row.mean)
    return {**row.mean, _SCORE: row.label_free["total"]}


def _seconds(value: float | None, *, reached: bool = False) -> str:
    if value is None:
        return "—" if reached else ""
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def markdown_table(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    everything = [columns, ["---"] * len(columns), *lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in everything)


def csv_table(records: Sequence[Mapping[str, Any]]) -> str:
    """Lines of the same names, which make the first line."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue()


def record(row: Row) -> dict[str, Any]:
    """A row as names and plain values."""
    head = ("name", "title", "supervised", "runs")
    flat: dict[str, Any] = {name: getattr(row, name) for name in head}
    for m in MEASURES:
        flat[f"{m}_mean"], flat[f"{m}_sd"] = row.mean.get(m), row.sd.get(m)
    others = (
        *("worst_acc", "clusters", "seconds", "peak_mib", "to_kmeans_plus_10"),
        *("to_turtle", "published_acc", "note"),
    )
    flat |= {name: getattr(row, name) for name in others}
    for term in ("total", "linear", "graph", "agreement"):
        flat[f"label_free_{term}"] = row.label_free.get(term)
    return {**flat, "label_free_sd": row.label_free_sd}


def shown(value: Any) -> str:
    """A value as it is written in a table."""
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)
