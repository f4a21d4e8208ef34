"""``sagl ablate``."""

from __future__ import annotations

from pathlib import Path

from sagl.cli.options import takes
from sagl.cli.study import StudyOptions, study_options


@takes(study_options, out=Path("ablation"))
def ablate(options: StudyOptions) -> None:
    """Take SAGL apart: without its search, graph, sparsity or gate, beside the whole.

    Labels only score, and there need not be any. Runs are kept in DIR: the same command
    takes up what was interrupted.

    Example: sagl ablate --data pets --param steps=500 --out ablation
    """
    from sagl.experiments.compare import Ablation

    options.run(Ablation)
