"""``sagl sweep``."""

from __future__ import annotations

from pathlib import Path

from sagl.cli.options import option, refuse_idle, takes
from sagl.cli.study import (
    StudyOptions,
    parse_pairs,
    parse_value,
    parse_values,
    study_options,
)


@takes(study_options, seeds=3, out=Path("sweep"))
def sweep(
    options: StudyOptions,
    clusters: int = option(..., "The number of clusters."),
    grid: list[str] | None = option(
        None,
        "Values of a parameter of sagl fit, e.g. width=32,64. Repeat.",
        "--grid",
        metavar="NAME=VALUE,…",
    ),
    ranges: list[str] | None = option(
        None,
        "For optuna: a setting between two numbers, on a logarithmic scale "
        "if LOW is above 0 and :linear does not follow. Repeat.",
        "--range",
        metavar="NAME=LOW..HIGH",
    ),
    search: str = option(
        "grid", "grid: every combination; optuna: --trials proposals."
    ),
    trials: int = option(30, "Settings that optuna proposes."),
) -> None:
    """Choose settings of SAGL without labels, by how well the views predict clusters.

    By the default recipe a search finds the clusters and trains a graph: width,
    normalize, steps, learning_rate, cluster_sizes and n_restarts say how. gamma, beta,
    pseudo_label and alignment are of the paper's loss: try them with --param
    recipe=paper. Labels, if there are any, are shown for information and never used.
    Runs are kept in DIR: the same command takes up what was interrupted.

    Example: sagl sweep --data pets --clusters 37 --grid width=32,64
    """
    from sagl.experiments.sweep import Sweep

    if search == "grid":
        refuse_idle("a grid is tried as a whole; it is of --search optuna", "trials")
    form = "NAME=VALUE,VALUE,…"
    options.run(
        Sweep,
        n_clusters=clusters,
        grid={
            name: parse_values(f"--grid {name}", values)
            for name, values in parse_pairs("--grid", grid, form).items()
        },
        ranges=parse_ranges(ranges),
        search=search,
        trials=trials,
    )


def parse_ranges(texts: list[str] | None) -> dict[str, tuple[float, float, bool]]:
    """Lows, highs, and whether between them is logarithmic."""
    form = "NAME=LOW..HIGH or NAME=LOW..HIGH:linear"
    range_of = {}
    for name, text in parse_pairs("--range", texts, form).items():
        ends, colon, scale = text.partition(":")
        low, _, high = ends.partition("..")
        values = parse_value(low), parse_value(high)
        numbers = all(type(value) in (int, float) for value in values)
        if not (numbers and (scale == "linear" or not colon)):
            raise ValueError(f"--range {name}={text}: expected {form}")
        range_of[name] = (*values, values[0] > 0 and not colon)
    return range_of
