"""``sagl sensitivity``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from sagl.cli.options import option, takes
from sagl.cli.study import Running, find_data, parse_values, running, study_arguments

if TYPE_CHECKING:
    from sagl.features.split import Source


@takes(find_data, study_arguments, running, seeds=3, out=Path("sensitivity"))
def sensitivity(
    source: Source,
    arguments: dict[str, Any],
    runs: Running,
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
    """How much the result depends on γ × β and on the batch size.

    Of the network alone, because the refinement hides it; --param sets other things.
    Runs are kept in DIR: the same command takes up what was interrupted.
    """
    from sagl.experiments.variants import Sensitivity

    sizes = None if batch_size is None else parse_values("--batch-size", batch_size)
    study = Sensitivity(
        source,
        gammas=parse_values("--gamma", gamma),
        betas=parse_values("--beta", beta),
        batch_sizes=sizes,
        **arguments,
    )
    runs.run(study)
