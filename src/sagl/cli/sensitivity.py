"""``sagl sensitivity``."""

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
    parse_values,
    run_study,
)
from sagl.cli.options import DeviceOption, JsonOption, QuietOption


def sensitivity(
    data: DataOption = None,
    views: DataViewsOption = None,
    view: ViewFilesOption = None,
    labels: LabelsOption = None,
    test_view: TestViewOption = None,
    test_labels: TestLabelsOption = None,
    gamma: Annotated[
        str, typer.Option(metavar="VALUE,…", help="Weights of diversity.")
    ] = "1,2,5,10,20",
    beta: Annotated[
        str, typer.Option(metavar="VALUE,…", help="Weights of alignment.")
    ] = "0.1,0.2,0.5,1,2",
    batch_size: Annotated[
        str | None,
        typer.Option(
            metavar="VALUE,…",
            help="By default 1/2, 1, 2 and 4 times the size that SAGL takes.",
        ),
    ] = None,
    param: ParamOption = None,
    clusters: ClustersOption = None,
    seeds: SeedsOption = 3,
    out: OutOption = Path("sensitivity"),
    jobs: JobsOption = 1,
    minutes: MinutesOption = None,
    device: DeviceOption = "auto",
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """How much the result depends on γ × β and on the batch size.

    Of the network alone, because the refinement hides it; --param sets other things.
    Runs are kept in DIR: the same command takes up what was interrupted.
    """
    from sagl.experiments.sensitivity import Sensitivity

    study = Sensitivity(
        find_data(data, views, view, labels, test_view, test_labels),
        out,
        gammas=parse_values("--gamma", gamma),
        betas=parse_values("--beta", beta),
        batch_sizes=(
            None if batch_size is None else parse_values("--batch-size", batch_size)
        ),
        params=parse_params(param),
        n_clusters=clusters,
        seeds=seeds,
        device=device,
    )
    run_study(study, jobs=jobs, minutes=minutes, quiet=quiet, as_json=as_json)
