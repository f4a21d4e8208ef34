"""``sagl combine``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from sagl.cli.options import option, takes
from sagl.cli.study import Running, find_data, running, study_arguments

if TYPE_CHECKING:
    from sagl.features.split import Source


@takes(find_data, study_arguments, running, seeds=3, out=Path("combinations"))
def combine(
    source: Source,
    arguments: dict[str, Any],
    runs: Running,
    at_least: Annotated[int, option("Views in a combination.")] = 1,
    max_views: Annotated[int | None, option("The most views in a combination.")] = None,
) -> None:
    """Run SAGL on every combination of the views and say which one to take.

    The choice is made without labels: by how well all views, whether fitted or not,
    predict the clusters. Runs are kept in DIR: the same command takes up what was
    interrupted.
    """
    from sagl.experiments.variants import Combination

    runs.run(Combination(source, at_least=at_least, at_most=max_views, **arguments))
