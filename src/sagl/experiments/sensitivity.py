"""How much the result depends on γ, β and the batch size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sagl.checks import integer
from sagl.experiments.compare import Comparison
from sagl.experiments.compare_table import Row
from sagl.experiments.study import SCORE, Study
from sagl.experiments.variants import distinct, resolved, rising, variant
from sagl.features.split import Source

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAMMAS = (1.0, 2.0, 5.0, 10.0, 20.0)
BETAS = (0.1, 0.2, 0.5, 1.0, 2.0)
_BATCH_FACTORS = (0.5, 1, 2, 4)  # times the size that SAGL would take
_SETTINGS = ("gamma", "beta", "batch_size")
_MEASURES = ("acc", "nmi", "ari")


Point = tuple[float, float, int]  # γ, β, batch size


class Sensitivity(Study):
    """A surface over γ × β and a curve over batch sizes, of the network alone.

    The refinement is left out unless ``params`` asks for it: it starts from many other
    partitions as well and hides what the network depends on.

    Parameters
    ----------
    source : Source
    out : Path
    gammas, betas : sequences of float
        The surface, at SAGL's batch size.
    batch_sizes : sequence of int, optional
        The curve, at SAGL's γ and β; by default 1/2, 1, 2 and 4 times SAGL's own.
    params : mapping, optional
        Other parameters of SAGL.
    n_clusters, seeds, device
        As for ``Comparison``.
    """

    command = "sensitivity"

    def __init__(
        self,
        source: Source,
        out: Path,
        *,
        gammas: Sequence[float] = GAMMAS,
        betas: Sequence[float] = BETAS,
        batch_sizes: Sequence[int] | None = None,
        params: Mapping[str, Any] | None = None,
        n_clusters: int | None = None,
        seeds: int = 3,
        device: str = "auto",
    ) -> None:
        self.gammas, self.betas = rising("gamma", gammas), rising("beta", betas)
        given = {"refine": False, **(params or {})}
        comparison = Comparison(
            source,
            [],
            out,
            n_clusters=n_clusters,
            seeds=seeds,
            looks=1,
            device=device,
            needs="score",
        )
        base = resolved(given, comparison.n_clusters, comparison.n_train)
        self.batch_sizes = _batch_sizes(
            batch_sizes, base.batch_size, comparison.n_train
        )
        self._base = (base.gamma, base.beta, base.batch_size)
        points = [(g, b, base.batch_size) for g in self.gammas for b in self.betas]
        points += [(base.gamma, base.beta, size) for size in self.batch_sizes]
        methods = {}
        for point in points:
            method = variant(dict(zip(_SETTINGS, point, strict=True)), given)
            resolved(method.params, comparison.n_clusters, comparison.n_train)
            methods[method.name] = method  # a point of both is run once
        self._points = {
            name: tuple(method.params[setting] for setting in _SETTINGS)
            for name, method in methods.items()
        }
        comparison.add(list(methods.values()))
        super().__init__(comparison)

    def told(self, row: Row) -> dict[str, Any]:
        return dict(zip(_SETTINGS, self._points[row.name], strict=True))

    def surface(self, measure: str) -> NDArray[np.float64]:
        """The mean over seeds, (γ, β); ``score`` is the label-free one, NaN a gap."""
        rows, size = self._by_point(), self._base[2]
        return np.array(
            [
                [_mean(rows[gamma, beta, size], measure) for beta in self.betas]
                for gamma in self.gammas
            ]
        )

    def curve(self, measure: str) -> NDArray[np.float64]:
        """The same over batch sizes."""
        return np.array([_mean(row, measure) for row in self._curve_rows()])

    def _curve_rows(self) -> list[Row]:
        rows = self._by_point()
        return [rows[(*self._base[:2], size)] for size in self.batch_sizes]

    def _by_point(self) -> dict[Point, Row]:
        return {self._points[row.name]: row for row in self.rows()}

    def figures(self) -> dict[str, Axes]:
        from sagl.report.figures import draw_batch_sizes, draw_sensitivity

        drawn: dict[str, Axes] = {}
        labelled = self.comparison.labelled
        surfaces = {"score": SCORE, **({"acc": "ACC"} if labelled else {})}
        for measure, name in surfaces.items():
            values = self.surface(measure)
            if np.isfinite(values).any():
                drawn[f"surface-{measure}"] = draw_sensitivity(
                    self.gammas, self.betas, values, measure=name
                )
        curves = {m: self.curve(m) for m in (_MEASURES if labelled else ("score",))}
        if all(np.isfinite(values).any() for values in curves.values()):
            rows = self._curve_rows()
            drawn["batch-sizes"] = draw_batch_sizes(
                self.batch_sizes,
                {m.upper() if labelled else SCORE: ys for m, ys in curves.items()},
                sd={
                    m.upper() if labelled else SCORE: [
                        row.sd.get(m, row.label_free_sd or 0.0) for row in rows
                    ]
                    for m in curves
                },
                measure="score with labels" if labelled else SCORE,
            )
        return drawn

    def findings(self) -> dict[str, Any]:
        measure = "acc" if self.comparison.labelled else "score"
        return {
            "measure": measure,
            "gamma": self.gammas,
            "beta": self.betas,
            "batch_size": self.batch_sizes,
            "surface": _without_nan(self.surface(measure)),
            "curve": _without_nan(self.curve(measure)),
        }

    def sentences(self) -> list[str]:
        labelled = self.comparison.labelled
        name, measure = ("ACC", "acc") if labelled else (SCORE, "score")
        gamma, beta, size = self._base
        said = []
        for values, over in (
            (self.surface(measure), f"over γ × β at a batch size of {size:,}"),
            (self.curve(measure), f"over batch sizes at γ = {gamma:g}, β = {beta:g}"),
        ):
            known = values[np.isfinite(values)]
            if known.size:
                said.append(f"{name} {over}: {known.min():.3f} to {known.max():.3f}")
        return said


def _mean(row: Row, measure: str) -> float:
    if measure == "score":
        return row.label_free.get("total", np.nan)
    return row.mean.get(measure, np.nan)


def _batch_sizes(
    given: Sequence[int] | None, automatic: int, n_samples: int
) -> list[int]:
    if given is None:
        sizes = {round(factor * automatic) for factor in _BATCH_FACTORS}
        return sorted({min(max(size, 2), n_samples) for size in sizes})
    for size in distinct("batch_size", given):
        if integer("batch_size", size, 2) > n_samples:
            raise ValueError(
                f"batch_size: {size} is more than the {n_samples} samples; give at "
                "most as many"
            )
    return sorted(given)


def _without_nan(values: NDArray[np.float64]) -> Any:
    known = values.astype(object)
    known[~np.isfinite(values)] = None
    return known.tolist()
