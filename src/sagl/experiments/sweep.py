"""The choice of settings without labels.

Every setting is scored by how well views and neighbours predict the clusters that it
leads to (``sagl.selection.label_free_score``), on average over seeds. True labels, if
there are any, are shown beside that for information and take no part in the choice.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from scipy.stats import spearmanr

from sagl.checks import integer
from sagl.experiments.compare import Comparison
from sagl.experiments.compare_table import Row
from sagl.experiments.fit_command import fit_command, python_call
from sagl.experiments.proposals import ROUND, Range, Sampler, grid_points
from sagl.experiments.study import (
    SCORE,
    Progress,
    Study,
    acc_of,
    best_by_score,
    marked,
    score_of,
)
from sagl.experiments.variants import resolved, variant
from sagl.features.split import Source

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Search = Literal["grid", "optuna"]
_BEST = "best by the score"
_WHOLE = frozenset(
    ("batch_size", "epochs", "steps", "n_restarts", "n_anchors", "patience")
)


class Sweep(Study):
    """Settings of SAGL, tried and scored without labels.

    Parameters
    ----------
    source : Source
    out : Path
    n_clusters : int
        Given, because partitions into other numbers of clusters cannot be compared,
        and counting the labels would be a use of them.
    grid : mapping of a setting to the values to try
    ranges : mapping of a setting to a ``Range``, with ``search="optuna"``
    search : {"grid", "optuna"}, default="grid"
        Every combination, or ``trials`` proposals that learn from earlier ones.
    trials : int, default=30
    params : mapping, optional
        Parameters of SAGL that stay the same.
    seeds, device
        As for ``Comparison``.
    """

    command = "sweep"
    first = ("score", "")  # and whether it is the choice
    hidden = ("NMI", "ARI", "AMI")
    renamed = {"ACC": "ACC (for information: not used)"}  # noqa: RUF012

    def __init__(
        self,
        source: Source,
        out: Path,
        *,
        n_clusters: int,
        grid: Mapping[str, Sequence[Any]] | None = None,
        ranges: Mapping[str, Range] | None = None,
        search: Search = "grid",
        trials: int = 30,
        params: Mapping[str, Any] | None = None,
        seeds: int = 3,
        device: str = "auto",
    ) -> None:
        grid, ranges = dict(grid or {}), dict(ranges or {})
        _check_search(grid, ranges, search, params or {})
        self.params = dict(params or {})
        self._settings: dict[str, dict[str, Any]] = {}
        self._trials = integer("trials", trials, 1)
        self._sampler = None
        comparison = Comparison(
            source,
            [],
            out,
            n_clusters=n_clusters,
            seeds=seeds,
            looks=1,
            device=device,
            needs="score",
        )
        super().__init__(comparison)
        if search == "optuna":
            self._sampler = Sampler(grid, ranges, whole=_WHOLE)
            ends = {name: [r.low, r.high] for name, r in ranges.items()}
            for point in grid_points({**grid, **ends}):
                self._check(point)
        else:
            self._add(grid_points(grid))

    @property
    def total(self) -> int:
        if self._sampler is None:
            return super().total
        return self._trials * self.comparison.seeds

    def run(
        self,
        *,
        jobs: int = 1,
        minutes: float | None = None,
        progress: Progress = lambda task, result: None,
    ) -> None:
        if self._sampler is None:
            super().run(jobs=jobs, minutes=minutes, progress=progress)
            return
        deadline = None if minutes is None else time.monotonic() + 60 * minutes
        for start in range(0, self._trials, ROUND):
            points = self._sampler.ask(min(ROUND, self._trials - start))
            names = self._add(points)
            left = None
            if deadline is not None:
                left = max(0.0, deadline - time.monotonic()) / 60
            tasks = [t for t in self.comparison.tasks if t.method.name in names]
            self.comparison.run(jobs=jobs, minutes=left, progress=progress, tasks=tasks)
            if any(self.comparison.result(task) is None for task in tasks):
                return  # the time was up: the same round is asked for next time
            rows = {row.name: row for row in super().rows()}
            self._sampler.tell([score_of(rows[name]) for name in names])

    def _add(self, points: Sequence[dict[str, Any]]) -> list[str]:
        """The names of the points; those that are new become methods."""
        names = []
        for point in points:
            self._check(point)
            method = variant(point, self.params)
            names.append(method.name)
            if method.name not in self._settings:
                self._settings[method.name] = point
                self.comparison.add([method])
        return names

    def _check(self, point: Mapping[str, Any]) -> None:
        done = self.comparison
        resolved({**self.params, **point}, done.n_clusters, done.n_train)

    @property
    def best(self) -> dict[str, Any] | None:
        """The settings with the best label-free score, or None before any run."""
        row = best_by_score(super().rows(), self.comparison.seeds)
        return None if row is None else dict(self._settings[row.name])

    def rows(self) -> list[Row]:
        return marked(super().rows(), self.comparison.seeds, _BEST)

    def told(self, row: Row) -> dict[str, Any]:
        return self._settings[row.name]

    def figures(self) -> dict[str, Axes]:
        from sagl.report.figures import draw_sweep

        rows = [row for row in self.rows() if row.label_free]
        if not rows:
            return {}
        points = [self._settings[row.name] for row in rows]
        scores = [row.label_free["total"] for row in rows]
        return {"sweep": draw_sweep(points, scores, measure=SCORE)[0]}

    def findings(self) -> dict[str, Any]:
        rows = self.rows()
        best = best_by_score(rows, self.comparison.seeds)
        found: dict[str, Any] = {"best": self.best, "best_score": score_of(best)}
        if best is not None:
            params = {**self.params, **self._settings[best.name]}
            source, n_clusters = self.comparison.source, self.comparison.n_clusters
            found["command"] = fit_command(source.train, n_clusters, params)
            found["python"] = python_call(n_clusters, params)
        if self.comparison.labelled:
            found["for_information_not_used"] = {
                "best_acc_by_score": acc_of(best),
                "highest_acc": max(
                    (row.mean["acc"] for row in rows if row.mean), default=None
                ),
                "rank_correlation": rank_correlation(rows),
            }
        return found

    def sentences(self) -> list[str]:
        found = self.findings()
        if found["best"] is None:
            return ["no setting has a score yet"]
        values = ", ".join(f"{name} = {value}" for name, value in found["best"].items())
        said = [f"best setting: {values} ({SCORE} {found['best_score']:.3f})"]
        known = found.get("for_information_not_used")
        if known and known["best_acc_by_score"] is not None:
            text = (
                "for information, not used: its ACC is "
                f"{known['best_acc_by_score']:.3f}, the highest of all "
                f"{known['highest_acc']:.3f}"
            )
            if known["rank_correlation"] is not None:
                text += (
                    "; rank correlation between score and ACC "
                    f"{known['rank_correlation']:.2f}"
                )
            said.append(text)
        said.append(f"to use it: {found['command'] or found['python']}")
        return said


def sweep(
    source: Source,
    out: str | Path,
    *,
    n_clusters: int,
    jobs: int = 1,
    minutes: float | None = None,
    **options: Any,
) -> Sweep:
    """Try settings on the source, keep everything in ``out``, and choose the best.

    ``options`` are those of ``Sweep``; ``.best`` of what is returned is the choice.
    The same call takes up what was interrupted.
    """
    made = Sweep(source, Path(out), n_clusters=n_clusters, **options)
    made.run(jobs=jobs, minutes=minutes)
    made.write()
    return made


def rank_correlation(rows: Sequence[Row]) -> float | None:
    """Spearman's, between the label-free score and ACC; None for too few settings."""
    both = [
        (row.label_free["total"], row.mean["acc"])
        for row in rows
        if row.label_free and "acc" in row.mean
    ]
    if len(both) < 3 or any(len(set(column)) < 2 for column in zip(*both, strict=True)):
        return None
    return float(spearmanr(*zip(*both, strict=True)).statistic)


def _check_search(
    grid: Mapping[str, Any],
    ranges: Mapping[str, Range],
    search: str,
    params: Mapping[str, Any],
) -> None:
    if search not in ("grid", "optuna"):
        raise ValueError(f"search must be grid or optuna; got {search!r}")
    if not grid and not ranges:
        raise ValueError("nothing to try; give --grid NAME=VALUE,VALUE")
    if ranges and search == "grid":
        name = next(iter(ranges))
        raise ValueError(
            f"--range {name}: a range is for --search optuna; for a grid give its "
            f"values, --grid {name}=…"
        )
    for name in (*grid, *ranges):
        twice = name in params or (name in grid and name in ranges)
        if twice:
            raise ValueError(f"{name}: given twice; to be tried or to be set, not both")
