"""What is lost where samples miss a view: ACC and NMI of test samples.

    python benchmarks/missing_views.py --data ../shared/data --sets cub10 bbcsport

A tenth, three tenths or half of the rows are taken from one view (another for each
seed), or that share of the rows of every view at random, never all of one sample; from
training and test samples alike, which views at which rows by seed. Three ways to deal
with it, each scored on all test samples:

* the views that are there: SAGL as it is, given rows of NaN;
* only complete samples: fitted on those that miss nothing; test samples that miss a
  view are predicted by those that they have, the best that this way can;
* mean imputation: training and test samples get the mean of the training samples that
  have the view.

Of sets with more than 2,000 training samples so many are drawn, by seed. Runs are kept
in benchmarks/runs/missing_views.jsonl.gz by set, seed, gap, way and revision, and what
is there is not measured again. ``--minutes 0`` prints what is kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cache import TABLES, Job
from data import Split, by_size
from per_set import measure_sets, parser_of
from sagl import SAGL, Views
from sagl.evaluation.metrics import clustering_accuracy, nmi

ROWS = 2_000  # training samples, at most
TABLE = TABLES / "missing_views.jsonl.gz"
ONE, ALL = "one view", "all views"
SHARES = (0.1, 0.3, 0.5)
THERE, COMPLETE, MEANS = "there", "complete", "means"
WAYS = {
    THERE: "the views that are there",
    COMPLETE: "only complete samples",
    MEANS: "mean imputation",
}


def gaps(
    n: int, n_views: int, which: str, share: float, seed: int
) -> NDArray[np.bool_]:
    """Which of n samples miss which view, (n, L); none misses all."""
    rng = np.random.default_rng(seed)
    missing = np.zeros((n, n_views), dtype=bool)
    if which == ONE:
        rows = rng.permutation(n)[: round(share * n)]
        missing[rows, seed % n_views] = True
        return missing
    missing = rng.random((n, n_views)) < share
    lost = np.flatnonzero(missing.all(axis=1))
    missing[lost, rng.integers(n_views, size=len(lost))] = False
    return missing


def without(views: Views, missing: NDArray[np.bool_]) -> Views:
    """These views with rows of NaN where they are missing."""
    arrays = {}
    for (name, array), gone in zip(views.items(), missing.T, strict=True):
        arrays[name] = np.array(array, dtype=np.float32)
        arrays[name][gone] = np.nan
    return Views(arrays)


def with_means(views: Views, train: Views) -> Views:
    """Means of the training samples in place of what is missing."""
    arrays = {}
    for name, array in views.items():
        mean = np.nanmean(train[name].astype(np.float64), axis=0)
        arrays[name] = np.where(np.isnan(array), mean.astype(np.float32), array)
    return Views(arrays)


def run(split: Split, job: Job) -> Job:
    seed, train, test, C = job["seed"], split.train, split.test, split.n_clusters
    if job["which"] is not None:
        of = len(train.names), job["which"], job["share"]
        train = without(train, gaps(len(train), *of, seed))
        test = without(test, gaps(len(test), *of, seed + 1_000 * len(train.names)))
    fitted = train
    if job["way"] == COMPLETE and train.present is not None:
        fitted = train[np.flatnonzero(train.present.all(axis=1))]
    elif job["way"] == MEANS:
        fitted, test = with_means(train, train), with_means(test, train)
    if len(fitted) < 2 * C:
        return {"fitted": len(fitted)}  # too few to find clusters in
    model = SAGL(C, random_state=seed).fit(fitted)
    found, truth = model.predict(test), split.test_labels
    return {
        "fitted": len(fitted),
        "acc": round(clustering_accuracy(truth, found), 4),
        "nmi": round(nmi(truth, found), 4),
    }


def variants() -> list[Job]:
    """What is measured of a set: without gaps, and every gap dealt with every way."""
    whole = {"which": None, "share": 0.0, "way": THERE}
    return [whole] + [
        {"which": which, "share": share, "way": way}
        for which in (ALL, ONE)
        for share in reversed(SHARES)
        for way in WAYS
    ]


def table(results: Sequence[Job], sets: Sequence[str]) -> str:
    """A row per set, gap and share; ACC and NMI of each way, mean over seeds."""
    lines = [
        f"| set | gone from | share | seeds | {' | '.join(WAYS.values())} |",
        "|---" * (4 + len(WAYS)) + "|",
    ]
    for name in sets:
        of_set = [r for r in results if r["set"] == name]
        whole = [r for r in of_set if r["which"] is None]
        if whole:
            lines.append(f"| {name} | | 0% | {len(whole)} | {_cell(whole)} | | |")
        for which in (ONE, ALL):
            for share in SHARES:
                rows = [
                    r for r in of_set if r["which"] == which and r["share"] == share
                ]
                ways = {
                    way: {r["seed"]: r for r in rows if r["way"] == way} for way in WAYS
                }
                seeds = set.intersection(*(set(of) for of in ways.values()))
                if seeds:
                    cells = [
                        _cell([of[s] for s in sorted(seeds)]) for of in ways.values()
                    ]
                    lines.append(
                        f"| {name} | {which} | {share:.0%} | {len(seeds)} | "
                        f"{' | '.join(cells)} |"
                    )
    return "\n".join(lines)


def against(results: Sequence[Job]) -> str:
    """How much the views that are there gain over the other ways, mean over sets."""
    lines = ["| gone from | share | sets | ACC over only complete | over means |"]
    lines.append("|---" * 5 + "|")
    for which in (ONE, ALL):
        for share in SHARES:
            rows = [r for r in results if r["which"] == which and r["share"] == share]
            acc = {
                (r["set"], r["seed"], r["way"]): r["acc"] for r in rows if "acc" in r
            }
            cells, counted = [], set()
            for way in (COMPLETE, MEANS):
                gains: dict[str, list[float]] = {}
                for (name, seed, of), ours in acc.items():
                    if of == THERE and (name, seed, way) in acc:
                        gain = ours - acc[name, seed, way]
                        gains.setdefault(name, []).append(gain)
                counted |= set(gains)
                means = [np.mean(each) for each in gains.values()]
                cells.append(f"{np.mean(means):+.3f} ({len(means)})" if means else "—")
            if counted:
                lines.append(
                    f"| {which} | {share:.0%} | {len(counted)} | {' | '.join(cells)} |"
                )
    return "\n".join(lines)


def _cell(results: Sequence[Job]) -> str:
    if any("acc" not in r for r in results):
        return "too few"
    acc, known = (np.array([r[m] for r in results]) for m in ("acc", "nmi"))
    return f"{acc.mean():.3f} ± {acc.std():.3f} / {known.mean():.3f}"


def main() -> None:
    options = parser_of(__doc__, str(TABLE), "seeds", 5).parse_args()
    results = measure_sets(options, run, variants(), ROWS)
    sets = by_size(options.data, options.sets)
    print(f"\n{table(results, sets)}\n\n{against(results)}")


if __name__ == "__main__":
    main()
