"""``sagl sweep``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from sagl.cli.options import option, takes
from sagl.cli.study import (
    Running,
    find_data,
    parse_value,
    parse_values,
    running,
    study_arguments,
)

if TYPE_CHECKING:
    from sagl.experiments.sweep import Range
    from sagl.features.split import Source


@takes(find_data, study_arguments, running, seeds=3, out=Path("sweep"))
def sweep(
    source: Source,
    arguments: dict[str, Any],
    runs: Running,
    clusters: Annotated[int, option("The number of clusters.")],
    grid: Annotated[
        list[str] | None,
        option("Values of a setting. Repeat.", "--grid", metavar="NAME=VALUE,…"),
    ] = None,
    ranges: Annotated[
        list[str] | None,
        option(
            "For optuna: a setting between two numbers, on a logarithmic scale "
            "if LOW is above 0 and :linear does not follow. Repeat.",
            "--range",
            metavar="NAME=LOW..HIGH",
        ),
    ] = None,
    search: Annotated[
        str, option("grid: every combination; optuna: --trials proposals.")
    ] = "grid",
    trials: Annotated[int, option("Settings that optuna proposes.")] = 30,
) -> None:
    """Choose settings of SAGL without labels, by how well the views predict clusters.

    Labels, if there are any, are shown for information and never used. Runs are kept in
    DIR: the same command takes up what was interrupted.
    """
    from sagl.experiments.sweep import Sweep

    study = Sweep(
        source,
        grid=_grid(grid or []),
        ranges=_ranges(ranges or []),
        search=search,  # type: ignore[arg-type]
        trials=trials,
        **{**arguments, "n_clusters": clusters},
    )
    runs.run(study)


def _grid(texts: list[str]) -> dict[str, list[Any]]:
    values_of: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not (equals and name.strip()):
            raise ValueError(f"--grid {text}: expected NAME=VALUE,VALUE,…")
        if name.strip() in values_of:
            raise ValueError(f"--grid {text}: {name.strip()} is given twice")
        values_of[name.strip()] = parse_values(f"--grid {name.strip()}", values)
    return values_of


def _ranges(texts: list[str]) -> dict[str, Range]:
    from sagl.experiments.sweep import Range

    range_of: dict[str, Range] = {}
    for text in texts:
        name, _, ends = text.partition("=")
        ends, colon, scale = ends.partition(":")
        low, _, high = ends.partition("..")
        values = parse_value(low), parse_value(high)
        numbers = all(
            isinstance(v, int | float) and not isinstance(v, bool) for v in values
        )
        if not (name.strip() and numbers and (scale == "linear" or not colon)):
            raise ValueError(
                f"--range {text}: expected NAME=LOW..HIGH or NAME=LOW..HIGH:linear"
            )
        if name.strip() in range_of:
            raise ValueError(f"--range {text}: {name.strip()} is given twice")
        range_of[name.strip()] = Range(*values, log=values[0] > 0 and not colon)
    return range_of
