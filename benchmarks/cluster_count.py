"""How many clusters are there? The estimate that needs no labels beside the truth.

    python benchmarks/cluster_count.py --data ../shared/data --picture counts.png

Training samples alone are looked at; the number of classes is only compared with.
"""

from __future__ import annotations

import time
from pathlib import Path

from cache import Job
from data import Split
from per_set import measure_sets, parser_of
from sagl.report.page import draw_count
from sagl.report.saving import save
from sagl.search.count import ClusterCount
from sagl.selection import estimate_n_clusters


def run(split: Split, job: Job) -> Job:
    start = time.process_time()
    found = estimate_n_clusters(split.train, random_state=job["seed"])
    seconds = time.process_time() - start
    return {**found.as_dict(), "truth": split.n_clusters, "seconds": seconds}


def main() -> None:
    parser = parser_of(__doc__, "cluster_count.jsonl.gz", "seeds", 1)
    parser.add_argument("--picture", type=Path, help="the curves, one file per set")
    options = parser.parse_args()
    results = measure_sets(options, run)
    print("| set | seed | classes | estimate | interval | sure | off by | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for r in results:
        off = abs(r["best"] - r["truth"]) / r["truth"]
        print(
            f"| {r['set']} | {r['seed']} | {r['truth']} | {r['best']} "
            f"| {r['low']} to {r['high']} | {'yes' if r['sure'] else 'no'} "
            f"| {off:.0%} | {r['seconds']:.0f} |"
        )
        if options.picture is not None and r["seed"] == 0:
            curve = {name: r[name] for name in ClusterCount._fields}
            place = options.picture.with_stem(f"{options.picture.stem}-{r['set']}")
            save(draw_count(ClusterCount.from_dict(curve)), place)


if __name__ == "__main__":
    main()
