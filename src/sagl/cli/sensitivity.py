"""``sagl sensitivity``."""

from __future__ import annotations

from pathlib import Path

from sagl.cli.options import option, takes
from sagl.cli.study import StudyOptions, parse_values, study_options


@takes(study_options, seeds=3, out=Path("sensitivity"))
def sensitivity(
    options: StudyOptions,
    gamma: str = option("1,2,5,10,20", "Weights of diversity.", metavar="VALUE,…"),
    beta: str = option("0.1,0.2,0.5,1,2", "Weights of alignment.", metavar="VALUE,…"),
    batch_size: str | None = option(
        None,
        "By default 1/2, 1, 2 and 4 times the size that SAGL takes.",
        metavar="VALUE,…",
    ),
) -> None:
    """How much the paper's network depends on γ × β and on the batch size.

    Without a search (refine=false), which would find the clusters instead: by the
    default recipe these settings train its graph alone. --param sets other things, e.g.
    recipe=paper. Runs are kept in DIR: the same command takes up what was interrupted.

    Example: sagl sensitivity --data pets --gamma 1,5,20 --beta 0.1,1
    """
    from sagl.experiments.compare import Sensitivity

    options.run(
        Sensitivity,
        gammas=parse_values("--gamma", gamma),
        betas=parse_values("--beta", beta),
        batch_sizes=parse_values("--batch-size", batch_size) if batch_size else None,
    )
