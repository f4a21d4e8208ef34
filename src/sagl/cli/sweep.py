"""``sagl sweep``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sagl.cli.data_options import (
    DataOption,
    DataViewsOption,
    LabelsOption,
    TestLabelsOption,
    TestViewOption,
    ViewFilesOption,
    find_data,
)
from sagl.cli.experiment import (
    JobsOption,
    MinutesOption,
    OutOption,
    ParamOption,
    SeedsOption,
    parse_params,
    parse_value,
    parse_values,
    run_study,
)
from sagl.cli.options import DeviceOption, JsonOption, QuietOption

if TYPE_CHECKING:
    from sagl.experiments.proposals import Range


def sweep(
    clusters: Annotated[int, typer.Option(help="The number of clusters.")],
    data: DataOption = None,
    views: DataViewsOption = None,
    view: ViewFilesOption = None,
    labels: LabelsOption = None,
    test_view: TestViewOption = None,
    test_labels: TestLabelsOption = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            "--grid", metavar="NAME=VALUE,…", help="Values of a setting. Repeat."
        ),
    ] = None,
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="NAME=LOW..HIGH",
            help="For optuna: a setting between two numbers, on a logarithmic scale "
            "if LOW is above 0 and :linear does not follow. Repeat.",
        ),
    ] = None,
    search: Annotated[
        str, typer.Option(help="grid: every combination; optuna: --trials proposals.")
    ] = "grid",
    trials: Annotated[int, typer.Option(help="Settings that optuna proposes.")] = 30,
    param: ParamOption = None,
    seeds: SeedsOption = 3,
    out: OutOption = Path("sweep"),
    jobs: JobsOption = 1,
    minutes: MinutesOption = None,
    device: DeviceOption = "auto",
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Choose settings of SAGL without labels, by how well the views predict clusters.

    Labels, if there are any, are shown for information and never used. Runs are kept in
    DIR: the same command takes up what was interrupted.
    """
    from sagl.experiments.sweep import Sweep

    study = Sweep(
        find_data(data, views, view, labels, test_view, test_labels),
        out,
        grid=_grid(grid or []),
        ranges=_ranges(ranges or []),
        search=search,  # type: ignore[arg-type]
        trials=trials,
        params=parse_params(param),
        n_clusters=clusters,
        seeds=seeds,
        device=device,
    )
    run_study(study, jobs=jobs, minutes=minutes, quiet=quiet, as_json=as_json)


def _grid(texts: list[str]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not (equals and name.strip()):
            raise ValueError(f"--grid {text}: expected NAME=VALUE,VALUE,…")
        if name.strip() in found:
            raise ValueError(f"--grid {text}: {name.strip()} is given twice")
        found[name.strip()] = parse_values(f"--grid {name.strip()}", values)
    return found


def _ranges(texts: list[str]) -> dict[str, Range]:
    from sagl.experiments.proposals import Range

    found: dict[str, Range] = {}
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
        if name.strip() in found:
            raise ValueError(f"--range {text}: {name.strip()} is given twice")
        found[name.strip()] = Range(*values, log=values[0] > 0 and not colon)
    return found
