"""``sagl sensitivity``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from sagl.cli.options import option, takes
from sagl.cli.study import StudyOptions, parse_values, study_options


@takes(study_options, seeds=3, out=Path("sensitivity"))
def sensitivity(
    options: StudyOptions,
    gamma: Annotated[
        str, option("Weights of diversity.", metavar="VALUE,…")
    ] = "1,2,5,10,20",
    beta: Annotated[
        str, option("Weights of alignment.", metavar="VALUE,…")
    ] = "0.1,0.2,0.5,1,2",
    batch_size: Annotated[
        str | None,
        option(
            "By default 1/2, 1, 2 and 4 times the size that SAGL takes.",
            metavar="VALUE,…",
        ),
    ] = None,
) -> None:
    """How much the paper's network depends on γ × β and on the batch size.

    Without a search (refine=false), which would find the clusters instead: by the
    default recipe these settings train its graph alone. --param sets other things, e.g.
    recipe=paper. Runs are kept in DIR: the same command takes up what was interrupted.
    """
    from sagl.experiments.compare import Sensitivity

    options.run(
        Sensitivity,
        gammas=parse_values("--gamma", gamma),
        betas=parse_values("--beta", beta),
        batch_sizes=parse_values("--batch-size", batch_size) if batch_size else None,
    )
