"""The choice of settings without labels.

Every setting is scored by how well views and neighbours predict the clusters that it
leads to (``sagl.selection.label_free_score``), on average over seeds. True labels, if
there are any, are shown beside that for information and take no part in the choice.
"""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from scipy.stats import spearmanr

from sagl.checks import integer
from sagl.experiments.fit import (
    distinct,
    fit_command,
    python_call,
    resolved,
    variant,
)
from sagl.experiments.one_run import Task
from sagl.experiments.study import (
    SCORE,
    Progress,
    Study,
    acc_of,
    best_by_score,
    marked,
    score_of,
)
from sagl.experiments.table import Row
from sagl.features.split import Source
from sagl.parameters import sagl_parameters

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Range", "Sampler", "Sweep", "grid_points", "sweep"]

Search = Literal["grid", "optuna"]
_ROUND = 4  # proposals before their scores are looked at
_DIGITS = 4  # of a proposed number: more would be noise, and hard to read
_BEST = "best by the score"


@dataclass(frozen=True)
class Range:
    """Numbers between two ends, both included; whole ones if both ends are."""

    low: float
    high: float
    log: bool = True

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and self.low < self.high < math.inf):
            raise ValueError(
                f"{self.low:g}..{self.high:g} is no range; the first number must be "
                "the smaller one"
            )
        if self.log and self.low <= 0:
            raise ValueError(
                f"{self.low:g}..{self.high:g} cannot be logarithmic; start above 0"
            )

    @property
    def whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)


def grid_points(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every combination of the values.

    >>> grid_points({"gamma": [5, 10], "gate": ["none"]})
    [{'gamma': 5, 'gate': 'none'}, {'gamma': 10, 'gate': 'none'}]
    """
    values = [distinct(name, tried) for name, tried in grid.items()]
    return [dict(zip(grid, point, strict=True)) for point in product(*values)]


class Sampler:
    """Proposals of optuna's TPE sampler, which learns from the scores it is given.

    It is seeded and asked in rounds, and given the scores in the order in which it was
    asked: the same scores lead to the same proposals, however many runs went on at once
    and however often the search was interrupted. So a search is taken up by asking
    again, and the runs that are kept answer for what was done.

    Parameters
    ----------
    grid : mapping of a setting to its values
    ranges : mapping of a setting to its Range
    seed : int
    """

    def __init__(
        self,
        grid: Mapping[str, Sequence[Any]],
        ranges: Mapping[str, Range],
        seed: int = 0,
    ) -> None:
        try:
            optuna = importlib.import_module("optuna")
        except ImportError as error:
            raise ValueError(
                f'searching with optuna needs it: pip install "sagl[sweep]" ({error})'
            ) from None
        forms = optuna.distributions
        self._space: dict[str, Any] = {
            name: forms.CategoricalDistribution(distinct(name, tried))
            for name, tried in grid.items()
        }
        parameters = sagl_parameters()
        for name, ends in ranges.items():
            whole = name in parameters and parameters[name].is_whole
            if whole and not ends.whole:
                raise ValueError(
                    f"{name} is a whole number: give its range in whole numbers, not "
                    f"{ends.low:g}..{ends.high:g}"
                )
            form = forms.IntDistribution if whole else forms.FloatDistribution
            self._space[name] = form(ends.low, ends.high, log=ends.log)
        before = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._study = optuna.create_study(
            direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed)
        )
        optuna.logging.set_verbosity(before)
        self._failed = optuna.trial.TrialState.FAIL
        self._asked: list[Any] = []

    def ask(self, count: int) -> list[dict[str, Any]]:
        """So many settings, before the score of any of them is known."""
        self._asked = [self._study.ask(self._space) for _ in range(count)]
        return [
            {name: _rounded(value) for name, value in trial.params.items()}
            for trial in self._asked
        ]

    def tell(self, scores: Sequence[float | None]) -> None:
        """The scores of what was asked last, higher is better; None for a failure."""
        for trial, score in zip(self._asked, scores, strict=True):
            if score is None:
                self._study.tell(trial, state=self._failed)
            else:
                self._study.tell(trial, score)


def _rounded(value: Any) -> Any:
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


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
    seeds : int, default=3
    options
        Of ``Study``.
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
        **options: Any,
    ) -> None:
        grid, ranges = dict(grid or {}), dict(ranges or {})
        _check_search(grid, ranges, search, params or {})
        self.params = dict(params or {})
        self._settings: dict[str, dict[str, Any]] = {}
        self._trials = integer("trials", trials, 1)
        self._sampler = None
        super().__init__(
            source, [], out, n_clusters=n_clusters, seeds=seeds, looks=1, **options
        )
        if search == "optuna":
            self._sampler = Sampler(grid, ranges)
            ends = {name: [r.low, r.high] for name, r in ranges.items()}
            for point in grid_points({**grid, **ends}):
                self._check(point)
        else:
            self._add(grid_points(grid))

    @property
    def total(self) -> int:
        if self._sampler is None:
            return super().total
        return self._trials * self.seeds

    def run(
        self,
        *,
        jobs: int = 1,
        minutes: float | None = None,
        progress: Progress = lambda task, result: None,
        tasks: Sequence[Task] | None = None,
    ) -> None:
        if self._sampler is None or tasks is not None:
            super().run(jobs=jobs, minutes=minutes, progress=progress, tasks=tasks)
            return
        deadline = None if minutes is None else time.monotonic() + 60 * minutes
        for start in range(0, self._trials, _ROUND):
            points = self._sampler.ask(min(_ROUND, self._trials - start))
            names = self._add(points)
            left = None
            if deadline is not None:
                left = max(0.0, deadline - time.monotonic()) / 60
            asked = [task for task in self.tasks if task.method.name in names]
            super().run(jobs=jobs, minutes=left, progress=progress, tasks=asked)
            if any(self.result(task) is None for task in asked):
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
                self.add([method])
        return names

    def _check(self, point: Mapping[str, Any]) -> None:
        resolved({**self.params, **point}, self.n_clusters, self.n_train)

    @property
    def best(self) -> dict[str, Any] | None:
        """The settings with the best label-free score, or None before any run."""
        row = best_by_score(super().rows(), self.seeds)
        return None if row is None else dict(self._settings[row.name])

    def rows(self) -> list[Row]:
        return marked(super().rows(), self.seeds, _BEST)

    def settings_of(self, row: Row) -> dict[str, Any]:
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
        best = best_by_score(rows, self.seeds)
        findings: dict[str, Any] = {"best": self.best, "best_score": score_of(best)}
        if best is not None:
            params = {**self.params, **self._settings[best.name]}
            train, n_clusters = self.source.train, self.n_clusters
            findings["command"] = fit_command(train, n_clusters, params)
            findings["python"] = python_call(n_clusters, params)
        if self.labelled:
            findings["for_information_not_used"] = {
                "best_acc_by_score": acc_of(best),
                "highest_acc": max(
                    (row.mean["acc"] for row in rows if row.mean), default=None
                ),
                "rank_correlation": rank_correlation(rows),
            }
        return findings

    def sentences(self) -> list[str]:
        findings = self.findings()
        if findings["best"] is None:
            return ["no setting has a score yet"]
        values = ", ".join(
            f"{name} = {value}" for name, value in findings["best"].items()
        )
        said = [f"best setting: {values} ({SCORE} {findings['best_score']:.3f})"]
        known = findings.get("for_information_not_used")
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
        said.append(f"to use it: {findings['command']}")
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
