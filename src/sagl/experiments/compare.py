"""Methods beside each other; SAGL taken apart, on other views, with other weights.

``sagl compare``, ``ablate``, ``combine`` and ``sensitivity`` are studies that differ in
the variants they run and in what they draw and say.
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

from sagl.baselines.registry import METHODS
from sagl.checks import integer, number
from sagl.evaluation.cka import cka_matrix
from sagl.experiments.study import SCORE, Study
from sagl.experiments.sweep import cautions, distinct
from sagl.experiments.table import (
    ONLY_PUBLISHED,
    Row,
    beside,
    best_by_score,
    marked,
    published_combination,
    with_published,
)
from sagl.features.split import Source

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Ablation", "Combination", "Comparison", "Sensitivity"]

ABLATIONS = ("sagl", "sagl-n", "sagl-i", "sagl-b", "sagl-w", "sagl-paper")
GAMMAS = (1.0, 2.0, 5.0, 10.0, 20.0)
BETAS = (0.1, 0.2, 0.5, 1.0, 2.0)
_BATCH_FACTORS = (0.5, 1, 2, 4)  # times the size that SAGL would take
MOST_COMBINATIONS = 64
_CHOSEN = "chosen by the score"


class Comparison(Study):
    """Every method beside the others, and beside the paper's figures."""

    command = "compare"
    needs_labels = True

    def rows(self) -> list[Row]:
        """Those of the methods, and methods of the paper that cannot be run."""
        return with_published(super().rows(), self.source.name, ONLY_PUBLISHED)


class Ablation(Study):
    """SAGL, its network alone, and the network without one of its parts.

    ``params`` are for every variant that does not set them itself. Runs of ``sagl
    compare`` in the same directory count.
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
            self.resolved(method.params)

    def rows(self) -> list[Row]:
        return with_published(super().rows(), self.source.name)

    def figures(self) -> dict[str, Axes]:
        from sagl.report.figures import draw_accuracy

        rows = [row for row in self.rows() if row.runs]
        if rows and self.labelled:
            return {"accuracy": draw_accuracy(rows, data=self.source.name)}
        return {"scores": _draw_scores(rows, "variant")} if rows else {}


def _draw_scores(rows: Sequence[Row], candidate: str, **options: Any) -> Axes:
    """The label-free score of each row."""
    from sagl.report.figures import draw_candidates

    titles, scores = [row.title for row in rows], [row.mean["score"] for row in rows]
    options |= {"sd": [row.sd["score"] for row in rows], "measure": SCORE}
    return draw_candidates(titles, scores, what=candidate, **options)[0]


class Combination(Study):
    """SAGL on subsets of the views, judged by how well *all* views predict clusters.

    A combination has ``at_least`` to ``at_most`` views, by default one to all; more
    than 64 combinations are refused. There are three seeds by default.
    """

    command = "combine"
    columns = ("score", *(c for c in Study.columns if c != "score"))

    def __init__(
        self,
        source: Source,
        out: Path,
        *,
        at_least: int = 1,
        at_most: int | None = None,
        **options: Any,
    ) -> None:
        self.names = source.train.names
        self.subsets = combinations_of(self.names, at_least, at_most)
        super().__init__(source, [], out, **{"seeds": 3, "looks": 1, **options})
        self.resolved(self.params)
        self.cka = cka_matrix(source.train.read()[0], batch_size="auto")
        for subset in self.subsets:
            name = " + ".join(subset)
            sagl = replace(METHODS["sagl"], name=name, title=name, params=self.params)
            # All views are what a run without this choice fits: the same file.
            views = subset if len(subset) < len(self.names) else None
            self.add(sagl, {"views": name, "CKA": self._mean_cka(subset)}, views)

    def _mean_cka(self, subset: Sequence[str]) -> float | None:
        """Of the pairs of views; one view has none."""
        pairs = combinations(map(self.names.index, subset), 2)
        values = [self.cka[pair] for pair in pairs]
        return round(float(np.mean(values)), 3) if values else None

    def rows(self) -> list[Row]:
        rows = [
            beside(row, published_combination(self.source.name, subset))
            for row, subset in zip(super().rows(), self.subsets, strict=True)
        ]
        return marked(rows, self.seeds, _CHOSEN)

    def figures(self) -> dict[str, Axes]:
        from sagl.report.figures import draw_cka

        drawn = {}
        if len(self.names) > 1:
            drawn["cka"] = draw_cka(self.cka, self.names)
        rows = [row for row in self.rows() if row.runs]
        if rows:
            marks = [row.note.startswith(_CHOSEN) for row in rows]
            options: dict[str, Any] = {"chosen": marks.index(True)}
            if self.labelled:
                options["truth"] = [row.mean["acc"] for row in rows]
                options["truth_sd"] = [row.sd["acc"] for row in rows]
            what = "combination of views"
            drawn["combinations"] = _draw_scores(rows, what, **options)
        return drawn

    def findings(self) -> dict[str, Any]:
        rows = self.rows()
        chosen = best_by_score(rows, self.seeds)
        scored = [row for row in rows if "acc" in row.mean]
        best = max(scored, key=lambda row: row.mean["acc"], default=None)
        names = " + ".join(self.names)
        return {
            "cka": {"views": list(self.names), "matrix": self.cka.tolist()},
            "chosen": chosen and chosen.name.split(" + "),
            "chosen_score": chosen and chosen.score,
            "chosen_acc": chosen and chosen.acc,
            "best_acc": best and best.acc,
            "best_by_labels": best and best.name.split(" + "),
            "all_views_acc": next((r.acc for r in rows if r.name == names), None),
        }

    def sentences(self) -> list[str]:
        known = self.findings()
        if known["chosen"] is None:
            return ["no combination has a label-free score yet"]
        chosen = " + ".join(known["chosen"])
        sentence = f"the label-free score, on all views, chooses {chosen}"
        if known["chosen_acc"] is None:
            return [sentence]
        sentence += f": ACC {known['chosen_acc']:.3f}"
        if known["all_views_acc"] is not None:
            sentence += f", {known['all_views_acc']:.3f} with all views"
        best = " + ".join(known["best_by_labels"])
        return [f"{sentence}, {known['best_acc']:.3f} at best ({best}, by the labels)"]


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


class Sensitivity(Study):
    """A surface over γ × β and a curve over batch sizes, of the paper's network.

    The surface is at SAGL's own batch size, the curve at its γ and β, by default over
    1/2, 1, 2 and 4 times its batch size. There is no search unless ``params`` asks for
    it: where a search finds the clusters, γ, β and the batch size train its graph
    alone. There are three seeds by default.
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
        **options: Any,
    ) -> None:
        self.gammas = sorted(number("gamma", v, 0) for v in distinct("gamma", gammas))
        self.betas = sorted(number("beta", v, 0) for v in distinct("beta", betas))
        params = {"refine": False, **(params or {})}
        options = {"seeds": 3, "looks": 1, "params": params, **options}
        super().__init__(source, [], out, **options)
        self._own = self.resolved(params)
        gamma, beta, size = self._own.gamma, self._own.beta, self._own.batch_size
        self.batch_sizes = self._sizes(batch_sizes, size)
        self._names = {
            "surface": [
                [self._add(g, b, size) for b in self.betas] for g in self.gammas
            ],
            "curve": [self._add(gamma, beta, n) for n in self.batch_sizes],
        }

    def _add(self, gamma: float, beta: float, size: int | str) -> str:
        return self.add_sagl({"gamma": gamma, "beta": beta, "batch_size": size})

    def _sizes(self, given: Sequence[int] | None, own: int) -> list[int]:
        if given is None:
            sizes = {round(factor * own) for factor in _BATCH_FACTORS}
            return sorted({min(max(size, 2), self.n_train) for size in sizes})
        sizes = {integer("batch_size", n, 2) for n in distinct("batch_size", given)}
        if max(sizes) > self.n_train:
            raise ValueError(
                f"batch_size: {max(sizes)} is more than the {self.n_train} samples; "
                "give at most as many"
            )
        return sorted(sizes)

    def values(self, what: str, measure: str, of: str = "mean") -> NDArray[np.float64]:
        """Mean or sd over seeds of the ``surface``, (γ, β), or ``curve``; NaN a gap."""
        known = {row.name: getattr(row, of).get(measure, np.nan) for row in self.rows()}
        names = np.array(self._names[what])
        return np.array([known[n] for n in names.ravel()]).reshape(names.shape)

    def figures(self) -> dict[str, Axes]:
        from sagl.report.figures import draw_batch_sizes, draw_sensitivity

        drawn: dict[str, Axes] = {}
        for measure, name in (("score", SCORE), ("acc", "ACC")):
            values = self.values("surface", measure)
            if np.isfinite(values).any():
                drawn[f"surface-{measure}"] = draw_sensitivity(
                    self.gammas, self.betas, values, measure=name
                )
        names, measure = {SCORE: "score"}, SCORE
        if self.labelled:
            names = {"ACC": "acc", "NMI": "nmi", "ARI": "ari"}
            measure = "score with labels"
        means, sd = (
            {name: self.values("curve", m, of) for name, m in names.items()}
            for of in ("mean", "sd")
        )
        if all(np.isfinite(values).any() for values in means.values()):
            sd = {name: np.nan_to_num(values) for name, values in sd.items()}
            drawn["batch-sizes"] = draw_batch_sizes(
                self.batch_sizes, means, sd=sd, measure=measure
            )
        return drawn

    def findings(self) -> dict[str, Any]:
        measure = "acc" if self.labelled else "score"
        return {
            "measure": measure,
            "gamma": self.gammas,
            "beta": self.betas,
            "batch_size": self.batch_sizes,
            "surface": _without_nan(self.values("surface", measure)),
            "curve": _without_nan(self.values("curve", measure)),
        }

    def sentences(self) -> list[str]:
        name, measure = ("ACC", "acc") if self.labelled else (SCORE, "score")
        own = self._own
        tried = {
            f"γ × β at a batch size of {own.batch_size:,}": "surface",
            f"batch sizes at γ = {own.gamma:g}, β = {own.beta:g}": "curve",
        }
        return [
            f"{name} over {over}: {np.nanmin(values):.3f} to {np.nanmax(values):.3f}"
            for over, values in ((o, self.values(w, measure)) for o, w in tried.items())
            if np.isfinite(values).any()
        ] + cautions(["gamma", "beta"], [own])


def _without_nan(values: NDArray[np.float64]) -> Any:
    gaps: Any = None
    return np.where(np.isfinite(values), values, gaps).tolist()
