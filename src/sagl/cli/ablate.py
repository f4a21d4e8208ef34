"""``sagl ablate``."""

from __future__ import annotations

from pathlib import Path

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


def ablate(
    data: DataOption = None,
    views: DataViewsOption = None,
    view: ViewFilesOption = None,
    labels: LabelsOption = None,
    test_view: TestViewOption = None,
    test_labels: TestLabelsOption = None,
    param: ParamOption = None,
    clusters: ClustersOption = None,
    seeds: SeedsOption = 5,
    out: OutOption = Path("ablation"),
    jobs: JobsOption = 1,
    minutes: MinutesOption = None,
    device: DeviceOption = "auto",
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Take SAGL apart: without refinement, graph, sparsity or gate, beside the whole.

    Labels only score, and there need not be any. Runs are kept in DIR: the same command
    takes up what was interrupted.
    """
    from sagl.experiments.ablate import Ablation

    study = Ablation(
        find_data(data, views, view, labels, test_view, test_labels),
        out,
        params=parse_params(param),
        n_clusters=clusters,
        seeds=seeds,
        device=device,
    )
    run_study(study, jobs=jobs, minutes=minutes, quiet=quiet, as_json=as_json)
