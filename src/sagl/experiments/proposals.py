"""Settings to try: every point of a grid, or what a sampler of optuna proposes.

The sampler is seeded and asked in rounds of fixed size, and it is told the results in
the order in which it asked: the same results lead to the same proposals, however many
runs went on at once and however often the search was interrupted. So a search is taken
up by asking again, and the runs that are kept answer for what was done.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from sagl.experiments.variants import distinct

ROUND = 4
_DIGITS = 4  # of a proposed number: more would be noise, and hard to read


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
    values = [distinct(name, found) for name, found in grid.items()]
    return [dict(zip(grid, point, strict=True)) for point in product(*values)]


class Sampler:
    """Proposals of optuna's TPE sampler, which learns from what it is told.

    Parameters
    ----------
    grid : mapping of a setting to its choices
    ranges : mapping of a setting to its Range
    whole : names of the settings that are whole numbers
    seed : int
    """

    def __init__(
        self,
        grid: Mapping[str, Sequence[Any]],
        ranges: Mapping[str, Range],
        *,
        whole: frozenset[str],
        seed: int = 0,
    ) -> None:
        try:
            optuna = importlib.import_module("optuna")
        except ImportError as error:
            raise ValueError(
                f'searching with optuna needs it: pip install "sagl[sweep]" ({error})'
            ) from None
        kinds = optuna.distributions
        self._space: dict[str, Any] = {
            name: kinds.CategoricalDistribution(distinct(name, choices))
            for name, choices in grid.items()
        }
        for name, found in ranges.items():
            if name in whole and not found.whole:
                raise ValueError(
                    f"{name} is a whole number: give its range in whole numbers, not "
                    f"{found.low:g}..{found.high:g}"
                )
            kind = kinds.IntDistribution if name in whole else kinds.FloatDistribution
            self._space[name] = kind(found.low, found.high, log=found.log)
        before = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._study = optuna.create_study(
            direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed)
        )
        optuna.logging.set_verbosity(before)
        self._failed = optuna.trial.TrialState.FAIL
        self._asked: list[Any] = []

    def ask(self, count: int) -> list[dict[str, Any]]:
        """So many settings, before any of them is told about."""
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
