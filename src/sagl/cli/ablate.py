"""``sagl ablate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sagl.cli.options import takes
from sagl.cli.study import Running, find_data, running, study_arguments

if TYPE_CHECKING:
    from sagl.features.split import Source


@takes(find_data, study_arguments, running, out=Path("ablation"))
def ablate(source: Source, arguments: dict[str, Any], runs: Running) -> None:
    """Take SAGL apart: without refinement, graph, sparsity or gate, beside the whole.

    Labels only score, and there need not be any. Runs are kept in DIR: the same command
    takes up what was interrupted.
    """
    from sagl.experiments.variants import Ablation

    runs.run(Ablation(source, **arguments))
