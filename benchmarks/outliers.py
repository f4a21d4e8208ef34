"""Are outliers and copies found? A class left out of the fit; planted noisy copies.

    python benchmarks/outliers.py --data ../shared/data --sets cub10 bbcsport wiki

Per seed one class, another for each, is left out of the fit; test samples are scored
one by one, and the AUROC says how well a score tells that class from the others. Then a
score is chosen on half of the sets and reported on the other half, for all halves. The
second table plants noisy copies of one in twenty of all training samples: the share of
them that is found (recall), and that of the pairs found that was planted (precision).
Sets have copies of their own, which count as mistakes.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from torch import Tensor

from cache import Job
from data import Split
from per_set import measure_sets, parser_of
from sagl import SAGL, Views
from sagl.clusters.outliers import disagreement, filled, outlier_scores
from sagl.nn.inference import Predictor

NOISE = (0.0, 0.1, 0.2, 0.3, 0.5)  # of a column's deviation
PLANTED = 20  # one in so many samples is copied
USED = "5 nearest anchors"


def run(split: Split, job: Job) -> Job:
    seed = job["seed"]
    truth = split.train_labels
    classes = np.random.default_rng(0).permutation(np.unique(truth))
    left_out = classes[seed % len(classes)]
    model = SAGL(split.n_clusters - 1, random_state=seed)
    model.fit(split.train[np.flatnonzero(truth != left_out)])
    outside = split.test_labels == left_out
    predictor = model._model.predictor
    blocks = []
    for block in split.test.blocks(predictor.block_rows):
        kept = slice(len(block[0]))
        scores = scores_of(predictor, filled(predictor, block))
        blocks.append({what: score[kept] for what, score in scores.items()})
    result = {
        what: float(roc_auc_score(outside, torch.cat([b[what] for b in blocks])))
        for what in blocks[0]
    }
    return result | planted(model, split.train, seed)


@torch.no_grad()
def scores_of(predictor: Predictor, features: list[Tensor]) -> dict[str, Tensor]:
    """What may tell that a sample is unlike all others, larger for those."""
    answer = predictor.answer(features)
    near = predictor.nearness(features)
    anchors = among_anchors(predictor)
    radius = 1 - anchors.topk(10, dim=1).values.mean(dim=1)  # how thin it is there
    ten = near.topk(10, dim=1)
    p = torch.stack(answer.p).mean(dim=0)
    return {
        "1 nearest anchor": 1 - near.amax(dim=1),
        USED: outlier_scores(near),
        "20 nearest anchors": 1 - near.topk(20, dim=1).values.mean(dim=1),
        "10 nearest, per their own": (1 - ten.values.mean(dim=1))
        / radius[ten.indices].mean(dim=1),
        "in-degree": -(1 - near < radius).sum(dim=1).double(),
        "low confidence": 1 - answer.q.amax(dim=1),
        "entropy": -torch.special.xlogy(answer.q, answer.q).sum(dim=1),
        "little evidence": -torch.logsumexp(p, dim=1),
        "views disagree": disagreement(answer),
    }


def among_anchors(predictor: Predictor) -> Tensor:
    """Nearness of anchors to each other, (a, a), none to itself."""
    total = sum(
        share * (unit @ unit.T)
        for share, unit in zip(
            predictor.shares,
            [z / z.norm(dim=1, keepdim=True) for z in predictor.anchors],
            strict=True,
        )
    )
    assert isinstance(total, Tensor)
    return total.fill_diagonal_(-1)


def planted(model: SAGL, views: Views, seed: int) -> Job:
    """Recall and precision of planted copies, for each amount of noise."""
    n = len(views)
    rng = np.random.default_rng(seed)
    sources = rng.choice(n, max(1, n // PLANTED), replace=False)
    result = {}
    for noise in NOISE:
        copied = Views(
            {k: _with_copies(h, sources, noise, rng) for k, h in views.items()}
        )
        groups = model.duplicates(copied)
        found = {pair for group in groups for pair in combinations(group, 2)}
        true = {(int(row), n + i) for i, row in enumerate(sources)}
        hits = len(found & true)
        result[f"recall {noise}"] = hits / len(true)
        result[f"precision {noise}"] = hits / len(found) if found else None
    return result


def _with_copies(
    h: NDArray[np.float32],
    sources: NDArray[np.int64],
    noise: float,
    rng: np.random.Generator,
) -> NDArray[np.float32]:
    copies = h[sources] + noise * h.std(axis=0) * rng.normal(size=h[sources].shape)
    return np.concatenate([h, copies]).astype(np.float32)


def main() -> None:
    parser = parser_of(__doc__, "outliers.jsonl.gz", "seeds", 5)
    options = parser.parse_args()
    results = measure_sets(options, run)
    sets = options.sets
    scores = [k for k in results[0] if k[0] not in "rp" and k not in ("set", "seed")]
    mean = {
        what: {s: np.mean([r[what] for r in results if r["set"] == s]) for s in sets}
        for what in scores
    }
    _table(
        ["score", *sets, "mean"],
        [
            [
                what,
                *(f"{mean[what][s]:.3f}" for s in sets),
                f"{_over(mean[what], sets):.3f}",
            ]
            for what in sorted(scores, key=lambda w: -_over(mean[w], sets))
        ],
    )
    print()
    _chosen_on_halves(mean, sets)
    print()
    _table(
        ["noise", *(f"{s}: recall, precision" for s in sets)],
        [[str(noise), *(_copies(results, s, noise) for s in sets)] for noise in NOISE],
    )


def _chosen_on_halves(mean: dict[str, dict[str, float]], sets: list[str]) -> None:
    """Choose on some sets, report on the others: every way to halve them."""
    chosen, elsewhere, used = Counter[str](), [], []
    for some in combinations(sets, max(1, len(sets) // 2)):
        others = [s for s in sets if s not in some]
        best = max(mean, key=lambda what: _over(mean[what], some))
        chosen[best] += 1
        if others:
            elsewhere.append(_over(mean[best], others))
            used.append(_over(mean[USED], others))
    print("chosen on half of the sets:", dict(chosen.most_common()))
    if elsewhere:
        print(
            f"AUROC on the other half: {np.mean(elsewhere):.3f} of what was chosen, "
            f"{np.mean(used):.3f} of {USED}"
        )


def _over(mean: dict[str, float], sets: tuple[str, ...] | list[str]) -> float:
    return float(np.mean([mean[s] for s in sets]))


def _copies(results: list[Job], name: str, noise: float) -> str:
    cells = []
    for what in ("recall", "precision"):
        values = [r[f"{what} {noise}"] for r in results if r["set"] == name]
        known = [value for value in values if value is not None]
        cells.append(f"{np.mean(known):.2f}" if known else "—")
    return ", ".join(cells)


def _table(header: list[str], rows: list[list[str]]) -> None:
    print("|", " | ".join(header), "|")
    print("|---" * len(header) + "|")
    for row in rows:
        print("|", " | ".join(row), "|")


if __name__ == "__main__":
    main()
