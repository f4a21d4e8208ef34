"""``sagl combine``."""

from __future__ import annotations

from pathlib import Path

from sagl.cli.options import option, takes
from sagl.cli.study import StudyOptions, study_options


@takes(study_options, seeds=3, out=Path("combinations"))
def combine(
    options: StudyOptions,
    at_least: int = option(1, "Views in a combination."),
    max_views: int | None = option(None, "The most views in a combination."),
) -> None:
    """Run SAGL on every combination of the views and say which one to take.

    The choice is made without labels: by how well all views, whether fitted or not,
    predict the clusters. Runs are kept in DIR: the same command takes up what was
    interrupted.

    Example: sagl combine --data pets --clusters 37 --max-views 2
    """
    from sagl.experiments.compare import Combination

    options.run(Combination, at_least=at_least, at_most=max_views)
