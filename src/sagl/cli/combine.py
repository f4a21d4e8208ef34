"""``sagl combine``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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
    ClustersOption,
    JobsOption,
    MinutesOption,
    OutOption,
    ParamOption,
    SeedsOption,
    parse_params,
    run_study,
)
from sagl.cli.options import DeviceOption, JsonOption, QuietOption


def combine(
    data: DataOption = None,
    views: DataViewsOption = None,
    view: ViewFilesOption = None,
    labels: LabelsOption = None,
    test_view: TestViewOption = None,
    test_labels: TestLabelsOption = None,
    at_least: Annotated[int, typer.Option(help="Views in a combination.")] = 1,
    max_views: Annotated[
        int | None, typer.Option(help="The most views in a combination.")
    ] = None,
    param: ParamOption = None,
    clusters: ClustersOption = None,
    seeds: SeedsOption = 3,
    out: OutOption = Path("combinations"),
    jobs: JobsOption = 1,
    minutes: MinutesOption = None,
    device: DeviceOption = "auto",
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run SAGL on every combination of the views and say which one to take.

    The choice is made without labels: by how well all views, whether fitted or not,
    predict the clusters. Runs are kept in DIR: the same command takes up what was
    interrupted.
    """
    from sagl.experiments.combine import Combination

    study = Combination(
        find_data(data, views, view, labels, test_view, test_labels),
        out,
        at_least=at_least,
        at_most=max_views,
        params=parse_params(param),
        n_clusters=clusters,
        seeds=seeds,
        device=device,
    )
    run_study(study, jobs=jobs, minutes=minutes, quiet=quiet, as_json=as_json)
