"""The choice of settings without labels.

Every setting is scored by how well views and neighbours predict the clusters that it
leads to (``sagl.selection.label_free_score``), on average over seeds. True labels, if
there are any, are shown beside that for information and take no part in the choice.
"""

from __future__ import annotations

import math
import shlex
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from scipy.stats import spearmanr

from sagl.checks import check_choice, integer
from sagl.environment import optional_module
from sagl.estimator import SAGL
from sagl.experiments.fit import Task
from sagl.experiments.study import SCORE, Study
from sagl.experiments.table import Row, best_by_score, marked, shown
from sagl.features.split import Part, Source
from sagl.parameters import option_of, sagl_parameters
from sagl.settings import Settings, without_effect

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Range", "Sweep", "fit_command", "sweep"]

_ROUND = 4  # proposals before their scores are looked at
_DIGITS = 4  # of a proposed number: more would be noise, and hard to read
_BEST = "best by the score"
Search = Literal["grid", "optuna"]


_PAPERS_LOSS = ("gamma", "beta", "pseudo_label", "alignment")


def cautions(names: Iterable[str], tried: Sequence[Settings]) -> list[str]:
    """Which parameters decide nothing in all that is tried, or not what they should."""
    idle = [without_effect(settings) for settings in tried]
    searched = all(settings.refine for settings in tried)
    lines: dict[str, list[str]] = {}
    for name in names:
        if all(name in of_one for of_one in idle):
            lines.setdefault(f"without effect: {idle[0][name]}", []).append(name)
        elif searched and name in _PAPERS_LOSS:
            line = (
                "of the paper's loss. Here a search finds the clusters, and the loss "
                "trains its graph alone; --param recipe=paper lets it find them"
            )
            lines.setdefault(line, []).append(name)
    return [f"{', '.join(found)}: {line}" for line, found in lines.items()]


class Range(NamedTuple):
    """Numbers between two ends, both included; whole ones if the setting is."""

    low: float
    high: float
    log: bool = True


def distinct(name: str, values: Sequence[Any]) -> list[Any]:
    """The values of a setting, refused if there is none or one of them twice."""
    if not values:
        raise ValueError(f"{name}: no value; give at least one")
    for i, value in enumerate(values):
        if value in values[:i]:
            raise ValueError(f"{name}: {shown(value)} is given twice")
    return list(values)


def search_space(
    grid: Mapping[str, Sequence[Any]], ranges: Mapping[str, Range]
) -> dict[str, Any]:
    """Values and ranges of settings as optuna has them."""
    forms = _optuna().distributions
    space = {
        name: forms.CategoricalDistribution(distinct(name, tried))
        for name, tried in grid.items()
    }
    parameters = sagl_parameters()
    for name, (low, high, log) in ranges.items():
        whole = name in parameters and parameters[name].is_whole
        fault = ""
        if not low < high < math.inf:
            fault = "is no range; the first number must be the smaller one"
        elif log and low <= 0:
            fault = "cannot be logarithmic; start above 0"
        elif whole and not (isinstance(low, int) and isinstance(high, int)):
            fault = "is for a whole number: give whole numbers"
        if fault:
            raise ValueError(f"--range {name}: {low:g}..{high:g} {fault}")
        form = forms.IntDistribution if whole else forms.FloatDistribution
        space[name] = form(low, high, log=log)
    return space


def _optuna() -> Any:
    return optional_module("optuna", "sweep")


def _rounded(value: Any) -> Any:
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


class Sweep(Study):
    """Settings of SAGL, tried and scored without labels.

    Every combination of ``grid``'s values, or ``trials`` proposals of optuna's TPE
    sampler, which takes ``ranges``, too, and learns from the scores. It is seeded and
    asked in rounds: the same scores lead to the same proposals, however many runs went
    on at once and however often the search was interrupted. So a search is taken up by
    asking again, and the runs that are kept answer for what was done.

    ``n_clusters`` is given, because partitions into other numbers of clusters cannot be
    compared, and counting the labels would be a use of them. There are three seeds by
    default.
    """

    command = "sweep"
    columns = ("score", "", "ACC", "clusters", "seconds", "peak MiB")
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
        **options: Any,
    ) -> None:
        grid, ranges = dict(grid or {}), dict(ranges or {})
        self._trials = integer("trials", trials, 1)
        _check_search(grid, ranges, search, params or {})
        self._space = search_space(grid, ranges) if search == "optuna" else None
        options = {"seeds": 3, "looks": 1, "params": params, **options}
        super().__init__(source, [], out, n_clusters=n_clusters, **options)
        values = {name: distinct(name, tried) for name, tried in grid.items()}
        values |= {name: [low, high] for name, (low, high, _) in ranges.items()}
        points = [
            dict(zip(values, point, strict=True)) for point in product(*values.values())
        ]
        tried = [self.resolved({**self.params, **point}) for point in points]
        self._cautions = cautions(values, tried)
        for line in self._cautions:
            warnings.warn(line, stacklevel=2)
        for point in points if self._space is None else ():
            self.add_sagl(point)

    @property
    def total(self) -> int:
        if self._space is None:
            return super().total
        return self._trials * self.seeds

    def rounds(self) -> Iterator[Sequence[Task]]:
        if self._space is None:
            yield self.tasks
            return
        optuna = _optuna()
        before = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        proposals = optuna.create_study(
            direction="maximize", sampler=optuna.samplers.TPESampler(seed=0)
        )
        optuna.logging.set_verbosity(before)
        for start in range(0, self._trials, _ROUND):
            count = min(_ROUND, self._trials - start)
            trials = [proposals.ask(self._space) for _ in range(count)]
            names = [
                self.add_sagl({n: _rounded(value) for n, value in trial.params.items()})
                for trial in trials
            ]
            asked = [task for task in self.tasks if task.method.name in names]
            yield asked
            if any(self.result(task) is None for task in asked):
                return  # the time was up: the same round is asked for next time
            rows = {row.name: row for row in super().rows()}
            for trial, name in zip(trials, names, strict=True):
                score = rows[name].score
                failed = optuna.trial.TrialState.FAIL if score is None else None
                proposals.tell(trial, score, state=failed)

    @property
    def best(self) -> dict[str, Any] | None:
        """The settings with the best label-free score, or None before any run."""
        row = best_by_score(super().rows(), self.seeds)
        return None if row is None else self.settings_of(row)

    def rows(self) -> list[Row]:
        return marked(super().rows(), self.seeds, _BEST)

    def figures(self) -> dict[str, Axes]:
        from sagl.report.figures import draw_sweep

        rows = [row for row in self.rows() if row.runs]
        if not rows:
            return {}
        points = [self.settings_of(row) for row in rows]
        scores = [row.mean["score"] for row in rows]
        return {"sweep": draw_sweep(points, scores, measure=SCORE)[0]}

    def findings(self) -> dict[str, Any]:
        rows = self.rows()
        row = best_by_score(rows, self.seeds)
        findings: dict[str, Any] = {"best": self.best, "best_score": row and row.score}
        if row is not None:
            params = {**self.params, **self.settings_of(row)}
            model = SAGL(self.n_clusters, **params)
            command = fit_command(self.source.train, self.n_clusters, params)
            findings |= {"command": command, "python": " ".join(repr(model).split())}
        if self.labelled:
            findings["for_information_not_used"] = {
                "best_acc_by_score": row and row.acc,
                "highest_acc": max(
                    (r.acc for r in rows if r.acc is not None), default=None
                ),
                "rank_correlation": rank_correlation(rows),
            }
        return findings

    def sentences(self) -> list[str]:
        findings = self.findings()
        if findings["best"] is None:
            return ["no setting has a score yet", *self._cautions]
        best = ", ".join(f"{name} = {v}" for name, v in findings["best"].items())
        sentences = [f"best setting: {best} ({SCORE} {findings['best_score']:.3f})"]
        if known := findings.get("for_information_not_used"):
            text = (
                "for information, not used: its ACC is {best_acc_by_score:.3f}, the "
                "highest of all {highest_acc:.3f}"
            )
            if known["rank_correlation"] is not None:
                text += "; rank correlation between score and ACC "
                text += "{rank_correlation:.2f}"
            sentences.append(text.format(**known))
        return [*sentences, *self._cautions, f"to use it: {findings['command']}"]


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
    study = Sweep(source, Path(out), n_clusters=n_clusters, **options)
    study.run(jobs=jobs, minutes=minutes)
    study.write()
    return study


def fit_command(part: Part, n_clusters: int, params: Mapping[str, Any]) -> str:
    """``sagl fit`` with these views and parameters of SAGL.

    Those that would have no effect are left out: it refuses them.

    >>> part = Part(("clip=clip.npy", "dino=dino.npy"))
    >>> fit_command(part, 10, {"gamma": 20.0, "refine": False})
    'sagl fit --view clip=clip.npy --view dino=dino.npy --clusters 10 --gamma 20.0 \
--no-refine --out RUN'
    """
    words = ["sagl", "fit"]
    if part.store is not None:
        words += [part.store, "--views", ",".join(part.views)]
    else:
        words += [word for view in part.views for word in ("--view", view)]
    words += ["--clusters", str(n_clusters)]
    idle = without_effect(SAGL(n_clusters, **params).resolved(n_clusters))
    for name, value in params.items():
        option = option_of(name)
        if name in idle or value is None:  # None is what `sagl fit` takes anyway
            continue
        if isinstance(value, bool):
            words.append(option if value else option.replace("--", "--no-", 1))
        else:
            words += [option, str(value)]
    return shlex.join([*words, "--out", "RUN"])


def rank_correlation(rows: Sequence[Row]) -> float | None:
    """Spearman's, between the label-free score and ACC; None for too few settings."""
    both = [(row.score, row.acc) for row in rows if row.acc is not None]
    if len(both) < 3 or any(len(set(column)) < 2 for column in zip(*both, strict=True)):
        return None
    return float(spearmanr(*zip(*both, strict=True)).statistic)


def _check_search(
    grid: Mapping[str, Any],
    ranges: Mapping[str, Range],
    search: str,
    params: Mapping[str, Any],
) -> None:
    check_choice("search", search, Search)
    if not grid and not ranges:
        raise ValueError("nothing to try; give --grid NAME=VALUE,VALUE")
    if ranges and search == "grid":
        name = next(iter(ranges))
        raise ValueError(
            f"--range {name}: a range is for --search optuna; for a grid give its "
            f"values, --grid {name}=…"
        )
    for name in (*grid, *ranges):
        if name in params or (name in grid and name in ranges):
            raise ValueError(f"{name}: given twice; to be tried or to be set, not both")
