"""What ablations, sensitivity, combinations of views and sweeps have in common.

Each is a comparison of variants on the same samples: a row per variant with what it was
told in front, scores with labels where there are any, the label-free score in any case,
and figures. Everything is written beside the runs.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, ClassVar

from sagl.experiments.compare import Comparison, Result
from sagl.experiments.compare_table import (
    COLUMNS,
    Row,
    as_json,
    cells,
    csv_table,
    markdown_table,
    record,
    rows_of,
)
from sagl.experiments.one_run import Task
from sagl.experiments.variants import shown
from sagl.storage import write_json, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Progress = Callable[[Task, Result], None]
SCORE = "label-free score (nats)"
_NEVER = "—"


class Study:
    """Variants in one comparison; subclasses say which, and what follows from them."""

    command: ClassVar[str]
    first: ClassVar[tuple[str, ...]] = ("ACC", "NMI", "ARI", "score")  # columns
    hidden: ClassVar[tuple[str, ...]] = ()
    renamed: ClassVar[dict[str, str]] = {}

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison

    @property
    def total(self) -> int:
        """How many runs there will have been."""
        return len(self.comparison.tasks)

    def run(
        self,
        *,
        jobs: int = 1,
        minutes: float | None = None,
        progress: Progress = lambda task, result: None,
    ) -> None:
        """Do every run that is not there yet."""
        self.comparison.run(jobs=jobs, minutes=minutes, progress=progress)

    def rows(self) -> list[Row]:
        """One per variant, in the order in which they are shown."""
        return rows_of(self.comparison, only_published=False)

    def told(self, row: Row) -> dict[str, Any]:
        """What sets the variant apart, by the name of a column."""
        return {"method": row.title}

    def figures(self) -> dict[str, Axes]:
        """Figures by the name of their file, as far as there is something to draw."""
        return {}

    def findings(self) -> dict[str, Any]:
        """What follows from the runs, for machines."""
        return {}

    def sentences(self) -> list[str]:
        """The same for people."""
        return []

    def heading(self) -> str:
        """What was fitted, and by which protocol it was scored."""
        done = self.comparison
        fitted = (
            f"{done.source.name}: {done.n_clusters} clusters, {done.n_train:,} samples "
            "fitted; "
        )
        if not done.labelled:
            return fitted + "no labels: scored without them, on the fitted samples"
        how = "inductive: test samples, each predicted alone"
        if done.source.test is None:
            how = "the fitted samples"
        return fitted + f"scored with labels on {done.n_scored:,} ({how})"

    def table(
        self, bold: tuple[str, str] = ("**", "**")
    ) -> tuple[list[str], list[list[str]], int]:
        """Columns, lines, and how many columns say what the variant was told.

        Columns in which nothing stands are left out.
        """
        rows = self.rows()
        told = [self.told(row) for row in rows]
        columns = [*told[0], *COLUMNS[1:]]
        lines = [
            [*(shown(value) for value in t.values()), *line[1:]]
            for t, line in zip(told, cells(rows, bold), strict=True)
        ]
        head = len(told[0])
        kept = [
            i
            for i, name in enumerate(columns[head:], start=head)
            if name not in self.hidden and any(line[i].strip(_NEVER) for line in lines)
        ]
        kept.sort(key=lambda i: self._place(columns[i]))
        order = [*range(head), *kept]
        return (
            [self.renamed.get(columns[i], columns[i]) for i in order],
            [[line[i] for i in order] for line in lines],
            head,
        )

    def _place(self, column: str) -> int:
        found = column in self.first
        return self.first.index(column) if found else len(self.first)

    def as_json(self) -> dict[str, Any]:
        """Everything: the protocol, the rows, every run, what follows."""
        rows = self.rows()
        return {
            "command": self.command,
            **as_json(self.comparison, rows),
            "rows": [{"told": self.told(row), **asdict(row)} for row in rows],
            "found": self.findings(),
        }

    def write(self) -> list[str]:
        """Write tables and figures; the names of the files."""
        out = self.comparison.out
        columns, lines, _ = self.table()
        text = [self.heading(), markdown_table(columns, lines), *self.sentences()]
        write_text(out / "table.md", "\n\n".join(part.strip() for part in text) + "\n")
        records = [{**self.told(row), **record(row)} for row in self.rows()]
        write_text(out / "table.csv", csv_table(records))
        write_json(out / "table.json", self.as_json())
        return ["table.md", "table.csv", "table.json", *self._draw()]

    def _draw(self) -> list[str]:
        if importlib.util.find_spec("matplotlib") is None:
            return []
        from sagl.report.saving import save

        names = []
        for name, drawn in self.figures().items():
            for form in ("png", "svg"):
                save(drawn, self.comparison.out / f"{name}.{form}")
                names.append(f"{name}.{form}")
        return names


def acc_of(row: Row | None) -> float | None:
    return None if row is None else row.mean.get("acc")


def score_of(row: Row | None) -> float | None:
    """The label-free score, higher is better."""
    return None if row is None else row.label_free.get("total")


def by_score(rows: list[Row]) -> list[Row]:
    """Best label-free score first; those without one last, as they were."""
    return sorted(rows, key=lambda row: -row.label_free.get("total", -1.0))


def marked(rows: list[Row], seeds: int, mark: str) -> list[Row]:
    """Best label-free score first, and the choice by it marked in its note."""
    best = best_by_score(rows, seeds)
    return by_score(
        [
            replace(row, note=f"{mark} {row.note}".strip()) if row is best else row
            for row in rows
        ]
    )


def best_by_score(rows: list[Row], seeds: int) -> Row | None:
    """The row that the label-free score chooses, among those with all their seeds.

    If none is complete yet, among those with most.
    """
    scored = [row for row in rows if row.label_free]
    most = max((row.runs for row in scored), default=0)
    full = [row for row in scored if row.runs >= min(seeds, most)]
    return max(full, key=lambda row: row.label_free["total"], default=None)
