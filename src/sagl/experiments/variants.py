"""Variants of SAGL: without its parts, with other settings, on other views.

``sagl ablate``, ``sensitivity`` and ``combine`` are studies that differ in the variants
they run and in what they draw and say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sagl.baselines.registry import METHODS, Method
from sagl.checks import integer
from sagl.evaluation.cka import cka_matrix
from sagl.experiments.fit import distinct, resolved, variant
from sagl.experiments.paper import published_combination
from sagl.experiments.study import (
    SCORE,
    Study,
    acc_of,
    best_by_score,
    marked,
    score_of,
)
from sagl.experiments.table import Row
from sagl.features.split import Source

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Ablation", "Combination", "Sensitivity"]

ABLATIONS = ("sagl", "sagl-n", "sagl-i", "sagl-b", "sagl-w", "sagl-paper")
GAMMAS = (1.0, 2.0, 5.0, 10.0, 20.0)
BETAS = (0.1, 0.2, 0.5, 1.0, 2.0)
_BATCH_FACTORS = (0.5, 1, 2, 4)  # times the size that SAGL would take
_SETTINGS = ("gamma", "beta", "batch_size")
MOST_COMBINATIONS = 64
_CHOSEN = "chosen by the score"


def rising(name: str, values: Sequence[float]) -> list[float]:
    """Numbers of a setting in order."""
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{name}: {value!r} is not a number")
    return sorted(float(value) for value in distinct(name, values))


class Ablation(Study):
    """SAGL, its network alone, and the network without one of its parts.

    ``params`` are parameters of SAGL for every variant that does not set them itself;
    ``options`` are those of ``Study``. Runs of ``sagl compare`` in the same directory
    count.
    """

    command = "ablate"

    def __init__(
        self,
        source: Source,
        out: Path,
        *,
        params: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        methods = [
            replace(METHODS[name], params={**(params or {}), **METHODS[name].params})
            for name in ABLATIONS
        ]
        super().__init__(source, methods, out, **options)
        for method in methods:
            resolved(method.params, self.n_clusters, self.n_train)

    def figures(self) -> dict[str, Axes]:
        from sagl.report.figures import draw_accuracy

        rows = [row for row in self.rows() if row.runs]
        if not rows:
            return {}
        if self.labelled:
            return {"accuracy": draw_accuracy(rows, data=self.source.name)}
        return {"scores": draw_scores(rows, "variant")}


def draw_scores(rows: Sequence[Row], what: str, **options: Any) -> Axes:
    """The label-free score of each row."""
    from sagl.report.figures import draw_candidates

    axes = draw_candidates(
        [row.title for row in rows],
        [row.label_free["total"] for row in rows],
        sd=[row.label_free_sd or 0.0 for row in rows],
        measure=SCORE,
        what=what,
        **options,
    )
    return axes[0]


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
    seeds : int, default=3
    options
        Of ``Study``.
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
        seeds: int = 3,
        **options: Any,
    ) -> None:
        self.gammas, self.betas = rising("gamma", gammas), rising("beta", betas)
        params = {"refine": False, **(params or {})}
        super().__init__(source, [], out, seeds=seeds, looks=1, **options)
        own = resolved(params, self.n_clusters, self.n_train)
        gamma, beta, size = self._own = own.gamma, own.beta, own.batch_size
        self.batch_sizes = _batch_sizes(batch_sizes, size, self.n_train)
        self._surface = [(g, b, size) for g in self.gammas for b in self.betas]
        self._curve = [(gamma, beta, size) for size in self.batch_sizes]
        self._points = {}
        for point in dict.fromkeys(self._surface + self._curve):  # each is run once
            method = variant(dict(zip(_SETTINGS, point, strict=True)), params)
            resolved(method.params, self.n_clusters, self.n_train)
            self._points[method.name] = point
            self.add([method])

    def settings_of(self, row: Row) -> dict[str, Any]:
        return dict(zip(_SETTINGS, self._points[row.name], strict=True))

    def surface(self, measure: str) -> NDArray[np.float64]:
        """The mean over seeds, (γ, β); ``score`` is the label-free one, NaN a gap."""
        values = [_mean(row, measure) for row in self._at(self._surface)]
        return np.reshape(values, (len(self.gammas), len(self.betas)))

    def curve(self, measure: str) -> NDArray[np.float64]:
        """The same over batch sizes."""
        return np.array([_mean(row, measure) for row in self._at(self._curve)])

    def _at(self, points: Sequence[tuple[float, float, int]]) -> list[Row]:
        rows = {self._points[row.name]: row for row in self.rows()}
        return [rows[point] for point in points]

    def figures(self) -> dict[str, Axes]:
        from sagl.report.figures import draw_batch_sizes, draw_sensitivity

        drawn: dict[str, Axes] = {}
        surfaces = {"score": SCORE, **({"acc": "ACC"} if self.labelled else {})}
        for measure, name in surfaces.items():
            values = self.surface(measure)
            if np.isfinite(values).any():
                drawn[f"surface-{measure}"] = draw_sensitivity(
                    self.gammas, self.betas, values, measure=name
                )
        names = {"acc": "ACC", "nmi": "NMI", "ari": "ARI"}
        names = names if self.labelled else {"score": SCORE}
        curves = {name: self.curve(measure) for measure, name in names.items()}
        if all(np.isfinite(values).any() for values in curves.values()):
            rows = self._at(self._curve)
            drawn["batch-sizes"] = draw_batch_sizes(
                self.batch_sizes,
                curves,
                sd={
                    name: [row.sd.get(m, row.label_free_sd or 0.0) for row in rows]
                    for m, name in names.items()
                },
                measure="score with labels" if self.labelled else SCORE,
            )
        return drawn

    def findings(self) -> dict[str, Any]:
        measure = "acc" if self.labelled else "score"
        return {
            "measure": measure,
            "gamma": self.gammas,
            "beta": self.betas,
            "batch_size": self.batch_sizes,
            "surface": _without_nan(self.surface(measure)),
            "curve": _without_nan(self.curve(measure)),
        }

    def sentences(self) -> list[str]:
        name, measure = ("ACC", "acc") if self.labelled else (SCORE, "score")
        gamma, beta, size = self._own
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


class Combination(Study):
    """SAGL on subsets of the views, judged by how well *all* views predict clusters.

    Parameters
    ----------
    source : Source
    out : Path
    at_least, at_most : int, optional
        How many views a combination has; by default one to all. More than 64
        combinations are refused.
    params : mapping, optional
        Parameters of SAGL.
    seeds : int, default=3
    options
        Of ``Study``.
    """

    command = "combine"
    first = ("score", "")  # and whether it is the choice

    def __init__(
        self,
        source: Source,
        out: Path,
        *,
        at_least: int = 1,
        at_most: int | None = None,
        params: Mapping[str, Any] | None = None,
        seeds: int = 3,
        **options: Any,
    ) -> None:
        self.names = source.train.names
        subsets = combinations_of(self.names, at_least, at_most)
        path, params = METHODS["sagl"].path, dict(params or {})
        self.subsets = {" + ".join(subset): subset for subset in subsets}
        methods = [Method(title, path, title, params) for title in self.subsets]
        # All views are what a run without this choice fits: the same file.
        some = {t: s for t, s in self.subsets.items() if len(s) < len(self.names)}
        super().__init__(
            source, methods, out, seeds=seeds, looks=1, views=some, **options
        )
        resolved(params, self.n_clusters, self.n_train)
        views, _ = source.train.read()
        self.cka = cka_matrix(views, batch_size="auto")

    def rows(self) -> list[Row]:
        rows = []
        for row in super().rows():
            figure = published_combination(self.source.name, self.subsets[row.name])
            if figure is not None:
                row = replace(row, published_acc=figure.acc)
            rows.append(row)
        return marked(rows, self.seeds, _CHOSEN)

    def settings_of(self, row: Row) -> dict[str, Any]:
        """The views, and the mean CKA of their pairs; one view has none."""
        places = [self.names.index(name) for name in self.subsets[row.name]]
        values = [self.cka[i, j] for i, j in combinations(places, 2)]
        cka = round(float(np.mean(values)), 3) if values else None
        return {"views": row.title, "CKA": cka}

    def figures(self) -> dict[str, Axes]:
        from sagl.report.figures import draw_cka

        drawn = {}
        if len(self.names) > 1:
            drawn["cka"] = draw_cka(self.cka, self.names)
        rows = [row for row in self.rows() if row.label_free]
        if rows:
            truth = {}
            if self.labelled:
                truth["truth"] = [row.mean["acc"] for row in rows]
                truth["truth_sd"] = [row.sd["acc"] for row in rows]
            marks = [row.note.startswith(_CHOSEN) for row in rows]
            drawn["combinations"] = draw_scores(
                rows, "combination of views", chosen=marks.index(True), **truth
            )
        return drawn

    def findings(self) -> dict[str, Any]:
        rows = self.rows()
        chosen = best_by_score(rows, self.seeds)
        scored = [row for row in rows if "acc" in row.mean]
        best = max(scored, key=lambda row: row.mean["acc"], default=None)
        whole = " + ".join(self.names)
        everything = next((row for row in rows if row.name == whole), None)
        return {
            "cka": {"views": list(self.names), "matrix": self.cka.tolist()},
            "chosen": None if chosen is None else list(self.subsets[chosen.name]),
            "chosen_score": score_of(chosen),
            "chosen_acc": acc_of(chosen),
            "best_acc": acc_of(best),
            "best_by_labels": None if best is None else list(self.subsets[best.name]),
            "all_views_acc": acc_of(everything),
        }

    def sentences(self) -> list[str]:
        findings = self.findings()
        if findings["chosen"] is None:
            return ["no combination has a label-free score yet"]
        chosen = " + ".join(findings["chosen"])
        said = f"the label-free score, on all views, chooses {chosen}"
        if findings["chosen_acc"] is None:
            return [said]
        said += f": ACC {findings['chosen_acc']:.3f}"
        if findings["all_views_acc"] is not None:
            said += f", {findings['all_views_acc']:.3f} with all views"
        best = " + ".join(findings["best_by_labels"])
        said += f", {findings['best_acc']:.3f} at best ({best}, by the labels)"
        return [said]


def combinations_of(
    names: tuple[str, ...], at_least: int = 1, at_most: int | None = None
) -> list[tuple[str, ...]]:
    """Subsets of the names, small ones first; refused if there are too many.

    >>> combinations_of(("a", "b", "c"), at_least=2)
    [('a', 'b'), ('a', 'c'), ('b', 'c'), ('a', 'b', 'c')]
    """
    L = len(names)
    at_most = L if at_most is None else at_most
    if not 1 <= at_least <= at_most <= L:
        raise ValueError(
            f"combinations of {at_least} to {at_most} of {L} views: there must be at "
            f"least 1 and at most {L}, and no more at least than at most"
        )
    sizes = range(at_least, at_most + 1)
    count = sum(comb(L, size) for size in sizes)
    if count > MOST_COMBINATIONS:
        raise ValueError(
            f"{L} views make {count} combinations of {at_least} to {at_most}, more "
            f"than {MOST_COMBINATIONS}; give fewer --views, or --max-views and "
            "--at-least"
        )
    return [subset for size in sizes for subset in combinations(names, size)]
