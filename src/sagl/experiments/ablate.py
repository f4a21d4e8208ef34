"""The paper's ablations beside SAGL itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sagl.baselines.registry import METHODS
from sagl.experiments.compare import Comparison
from sagl.experiments.study import SCORE, Study
from sagl.experiments.variants import resolved
from sagl.features.split import Source

if TYPE_CHECKING:
    from matplotlib.axes import Axes

VARIANTS = ("sagl", "sagl-n", "sagl-i", "sagl-b", "sagl-w", "sagl-paper")


class Ablation(Study):
    """SAGL, its network alone, and the network without one of its parts.

    Parameters
    ----------
    source : Source
    out : Path
    params : mapping, optional
        Parameters of SAGL for every variant that does not set them itself.
    n_clusters, seeds, device
        As for ``Comparison``. Runs of ``sagl compare`` in the same directory count.
    """

    command = "ablate"

    def __init__(
        self,
        source: Source,
        out: Path,
        *,
        params: Mapping[str, Any] | None = None,
        n_clusters: int | None = None,
        seeds: int = 5,
        device: str = "auto",
    ) -> None:
        methods = [
            replace(METHODS[name], params={**(params or {}), **METHODS[name].params})
            for name in VARIANTS
        ]
        comparison = Comparison(
            source,
            methods,
            out,
            n_clusters=n_clusters,
            seeds=seeds,
            device=device,
            needs="score",
        )
        for method in methods:
            resolved(method.params, comparison.n_clusters, comparison.n_train)
        super().__init__(comparison)

    def figures(self) -> dict[str, Axes]:
        from sagl.report.figures import draw_accuracy, draw_candidates

        rows = [row for row in self.rows() if row.runs]
        if not rows:
            return {}
        if self.comparison.labelled:
            name = self.comparison.source.name
            return {"accuracy": draw_accuracy(rows, data=name)}
        return {
            "scores": draw_candidates(
                [row.title for row in rows],
                [row.label_free["total"] for row in rows],
                sd=[row.label_free_sd or 0.0 for row in rows],
                measure=SCORE,
                what="variant",
            )[0]
        }
