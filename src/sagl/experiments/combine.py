"""Which views belong together: SAGL on every combination of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sagl.baselines.registry import METHODS, Method
from sagl.evaluation.cka import cka_matrix
from sagl.experiments.compare import Comparison
from sagl.experiments.compare_table import Row
from sagl.experiments.published import published_combination
from sagl.experiments.study import (
    SCORE,
    Study,
    acc_of,
    best_by_score,
    marked,
    score_of,
)
from sagl.experiments.variants import resolved
from sagl.features.split import Source

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LIMIT = 64
_CHOSEN = "chosen by the score"


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
    n_clusters, seeds, device
        As for ``Comparison``.
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
        n_clusters: int | None = None,
        seeds: int = 3,
        device: str = "auto",
    ) -> None:
        names = source.train.names
        subsets = combinations_of(names, at_least, at_most)
        path = METHODS["sagl"].path
        self.subsets = {" + ".join(subset): subset for subset in subsets}
        comparison = Comparison(
            source,
            [Method(title, path, title, dict(params or {})) for title in self.subsets],
            out,
            n_clusters=n_clusters,
            seeds=seeds,
            looks=1,
            device=device,
            needs="score",
            views={
                title: subset
                for title, subset in self.subsets.items()
                if len(subset) < len(names)
            },
        )
        resolved(params or {}, comparison.n_clusters, comparison.n_train)
        self.names = names
        views, _ = source.train.read()
        self.cka = cka_matrix(views, batch_size="auto")
        super().__init__(comparison)

    def rows(self) -> list[Row]:
        rows = [self._with_published(row) for row in super().rows()]
        return marked(rows, self.comparison.seeds, _CHOSEN)

    def _with_published(self, row: Row) -> Row:
        found = published_combination(
            self.comparison.source.name, self.subsets[row.name]
        )
        return row if found is None else replace(row, published_acc=found.acc)

    def told(self, row: Row) -> dict[str, Any]:
        return {"views": row.title, "CKA": self._mean_cka(self.subsets[row.name])}

    def _mean_cka(self, subset: tuple[str, ...]) -> float | None:
        """The mean over pairs; one view has none."""
        places = [self.names.index(name) for name in subset]
        values = [self.cka[i, j] for i, j in combinations(places, 2)]
        return round(float(np.mean(values)), 3) if values else None

    def figures(self) -> dict[str, Axes]:
        from sagl.report.figures import draw_candidates, draw_cka

        drawn = {}
        if len(self.names) > 1:
            drawn["cka"] = draw_cka(self.cka, self.names)
        rows = [row for row in self.rows() if row.label_free]
        if rows:
            labelled = self.comparison.labelled
            drawn["combinations"] = draw_candidates(
                [row.title for row in rows],
                [row.label_free["total"] for row in rows],
                sd=[row.label_free_sd or 0.0 for row in rows],
                truth=[row.mean["acc"] for row in rows] if labelled else None,
                truth_sd=[row.sd["acc"] for row in rows] if labelled else None,
                chosen=next(
                    i for i, r in enumerate(rows) if r.note.startswith(_CHOSEN)
                ),
                measure=SCORE,
                what="combination of views",
            )[0]
        return drawn

    def findings(self) -> dict[str, Any]:
        rows = self.rows()
        chosen = best_by_score(rows, self.comparison.seeds)
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
        found = self.findings()
        if found["chosen"] is None:
            return ["no combination has a label-free score yet"]
        said = (
            f"the label-free score, on all views, chooses {' + '.join(found['chosen'])}"
        )
        if found["chosen_acc"] is None:
            return [said]
        said += f": ACC {found['chosen_acc']:.3f}"
        if found["all_views_acc"] is not None:
            said += f", {found['all_views_acc']:.3f} with all views"
        best = " + ".join(found["best_by_labels"])
        said += f", {found['best_acc']:.3f} at best ({best}, by the labels)"
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
    if count > LIMIT:
        raise ValueError(
            f"{L} views make {count} combinations of {at_least} to {at_most}, more "
            f"than {LIMIT}; give fewer --views, or --max-views and --at-least"
        )
    return [subset for size in sizes for subset in combinations(names, size)]
