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
    needs = "labels"

    def rows(self) -> list[Row]:
        """Those of the methods, and methods of the paper that cannot be run."""
        return with_published(super().rows(), self.source.name, ONLY_PUBLISHED)


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
            self.resolved(method.params)

    def rows(self) -> list[Row]:
        return with_published(super().rows(), self.source.name)

    def figures(self) -> dict[str, Axes]:
        from sagl.report.figures import draw_accuracy

        rows = [row for row in self.rows() if row.runs]
        if not rows:
            return {}
        if self.labelled:
            return {"accuracy": draw_accuracy(rows, data=self.source.name)}
        return {"scores": _draw_scores(rows, "variant")}


def _draw_scores(rows: Sequence[Row], candidate: str, **options: Any) -> Axes:
    """The label-free score of each row."""
    from sagl.report.figures import draw_candidates

    axes = draw_candidates(
        [row.title for row in rows],
        [row.label_free["total"] for row in rows],
        sd=[row.label_free_sd or 0.0 for row in rows],
        measure=SCORE,
        what=candidate,
        **options,
    )
    return axes[0]


class Combination(Study):
    """SAGL on subsets of the views, judged by how well *all* views predict clusters.

    A combination has ``at_least`` to ``at_most`` views, by default one to all; more
    than 64 combinations are refused. ``options`` are those of ``Study``, with three
    seeds by default.
    """

    command = "combine"
    columns = ("score", "", *(c for c in Study.columns if c not in ("score", "")))

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
        subsets = combinations_of(self.names, at_least, at_most)
        self.subsets = {" + ".join(subset): subset for subset in subsets}
        super().__init__(source, [], out, **{"seeds": 3, "looks": 1, **options})
        self.resolved(self.params)
        sagl = replace(METHODS["sagl"], params=self.params)
        for title, subset in self.subsets.items():
            # All views are what a run without this choice fits: the same file.
            names = subset if len(subset) < len(self.names) else None
            self.add([replace(sagl, name=title, title=title)], names)
        views, _ = source.train.read()
        self.cka = cka_matrix(views, batch_size="auto")

    def rows(self) -> list[Row]:
        rows = []
        for row in super().rows():
            figure = published_combination(self.source.name, self.subsets[row.name])
            rows.append(replace(row, published_acc=figure and figure.acc))
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
            drawn["combinations"] = _draw_scores(
                rows, "combination of views", chosen=marks.index(True), **truth
            )
        return drawn

    def findings(self) -> dict[str, Any]:
        rows = {row.name: row for row in self.rows()}
        chosen = best_by_score(list(rows.values()), self.seeds)
        scored = [row for row in rows.values() if row.mean]
        best = max(scored, key=lambda row: row.mean["acc"], default=None)
        everything = rows.get(" + ".join(self.names))
        return {
            "cka": {"views": list(self.names), "matrix": self.cka.tolist()},
            "chosen": chosen and list(self.subsets[chosen.name]),
            "chosen_score": chosen and chosen.score,
            "chosen_acc": chosen and chosen.acc,
            "best_acc": best and best.acc,
            "best_by_labels": best and list(self.subsets[best.name]),
            "all_views_acc": everything and everything.acc,
        }

    def sentences(self) -> list[str]:
        findings = self.findings()
        if findings["chosen"] is None:
            return ["no combination has a label-free score yet"]
        chosen = " + ".join(findings["chosen"])
        sentence = f"the label-free score, on all views, chooses {chosen}"
        if findings["chosen_acc"] is None:
            return [sentence]
        sentence += f": ACC {findings['chosen_acc']:.3f}"
        if findings["all_views_acc"] is not None:
            sentence += f", {findings['all_views_acc']:.3f} with all views"
        best = " + ".join(findings["best_by_labels"])
        sentence += f", {findings['best_acc']:.3f} at best ({best}, by the labels)"
        return [sentence]


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
    alone. ``options`` are those of ``Study``, with three seeds by default.
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
        points = [(g, b, size) for g in self.gammas for b in self.betas]
        points += [(gamma, beta, size) for size in self.batch_sizes]
        names = [
            self.add_sagl({"gamma": g, "beta": b, "batch_size": n})
            for g, b, n in points
        ]
        cut = len(self.gammas) * len(self.betas)
        self._surface, self._curve = names[:cut], names[cut:]

    def _sizes(self, given: Sequence[int] | None, own: int) -> list[int]:
        if given is None:
            sizes = {round(factor * own) for factor in _BATCH_FACTORS}
            return sorted({min(max(size, 2), self.n_train) for size in sizes})
        for size in distinct("batch_size", given):
            if integer("batch_size", size, 2) > self.n_train:
                raise ValueError(
                    f"batch_size: {size} is more than the {self.n_train} samples; give "
                    "at most as many"
                )
        return sorted(given)

    def surface(self, measure: str) -> NDArray[np.float64]:
        """The mean over seeds, (γ, β); ``score`` is the label-free one, NaN a gap."""
        means = self._means(self._surface, measure)
        return means.reshape(len(self.gammas), len(self.betas))

    def curve(self, measure: str) -> NDArray[np.float64]:
        """The same over batch sizes."""
        return self._means(self._curve, measure)

    def _means(self, names: Sequence[str], measure: str) -> NDArray[np.float64]:
        means = {row.name: {"score": row.score, **row.mean} for row in self.rows()}
        return np.array([means[n].get(measure) for n in names], dtype=np.float64)

    def figures(self) -> dict[str, Axes]:
        from sagl.report.figures import draw_batch_sizes, draw_sensitivity

        drawn: dict[str, Axes] = {}
        for measure, name in (("score", SCORE), ("acc", "ACC")):
            values = self.surface(measure)
            if np.isfinite(values).any():
                drawn[f"surface-{measure}"] = draw_sensitivity(
                    self.gammas, self.betas, values, measure=name
                )
        names = {"acc": "ACC", "nmi": "NMI", "ari": "ARI"}
        names = names if self.labelled else {"score": SCORE}
        curves = {name: self.curve(measure) for measure, name in names.items()}
        if all(np.isfinite(values).any() for values in curves.values()):
            sds = {
                row.name: {"score": row.label_free_sd, **row.sd} for row in self.rows()
            }
            drawn["batch-sizes"] = draw_batch_sizes(
                self.batch_sizes,
                curves,
                sd={
                    name: [sds[n].get(measure) or 0.0 for n in self._curve]
                    for measure, name in names.items()
                },
                measure="score with labels" if self.labelled else SCORE,
            )
        return drawn

    def findings(self) -> dict[str, Any]:
        measure = "acc" if self.labelled else "score"
        values = {"surface": self.surface(measure), "curve": self.curve(measure)}
        return {
            "measure": measure,
            "gamma": self.gammas,
            "beta": self.betas,
            "batch_size": self.batch_sizes,
            **{name: _without_nan(known) for name, known in values.items()},
        }

    def sentences(self) -> list[str]:
        name, measure = ("ACC", "acc") if self.labelled else (SCORE, "score")
        own = self._own
        sentences = []
        for values, over in (
            (self.surface(measure), f"γ × β at a batch size of {own.batch_size:,}"),
            (
                self.curve(measure),
                f"batch sizes at γ = {own.gamma:g}, β = {own.beta:g}",
            ),
        ):
            known = values[np.isfinite(values)]
            if known.size:
                low, high = known.min(), known.max()
                sentences.append(f"{name} over {over}: {low:.3f} to {high:.3f}")
        return sentences + cautions(["gamma", "beta"], own.refine)


def _without_nan(values: NDArray[np.float64]) -> Any:
    gaps: Any = None
    return np.where(np.isfinite(values), values, gaps).tolist()
