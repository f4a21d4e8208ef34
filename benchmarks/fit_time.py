"""A default fit of SAGL beside one of TURTLE: time and quality, in one process.

    python benchmarks/fit_time.py --data ../shared/data

Both at their defaults (TURTLE: 6,000 steps), one thread, in turn in this process.
Seconds are processor time of the fit, which other work on the machine disturbs least.
TURTLE is fitted once, between the fits of SAGL: a quarter of an hour on pets_clip. Each
test sample is predicted alone; labels only score.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch

from data import DEFAULT_VIEWS, Split, load
from sagl import SAGL
from sagl.baselines import TURTLE
from sagl.evaluation import clustering_scores

MEASURES = ("acc", "nmi", "ari")


def run(model: SAGL | TURTLE, split: Split, seed: int) -> float:
    """Print a row of the table; how long the fit took."""
    start = time.process_time()
    model.fit(split.train)
    seconds = time.process_time() - start
    scores = clustering_scores(split.test_labels, model.predict(split.test))
    measures = " / ".join(f"{scores[name]:.3f}" for name in MEASURES)
    print(
        f"| {type(model).__name__} | {seed} | {seconds:.1f} | {measures} |", flush=True
    )
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--set", choices=DEFAULT_VIEWS, default="pets_clip")
    parser.add_argument("--seeds", type=int, default=3, help="of SAGL")
    options = parser.parse_args()
    torch.set_num_threads(1)
    split = load(options.data, options.set)
    C = split.n_clusters
    for model in (SAGL(C, steps=2, refine=False), TURTLE(C, steps=2)):
        model.fit(split.train)  # torch loads parts of itself when they are first used
    print(f"{options.set}, one thread")
    print("| method | seed | seconds | ACC / NMI / ARI |\n|---|---|---|---|")
    ours = []
    for seed in range(options.seeds):
        ours.append(run(SAGL(C, random_state=seed), split, seed))
        if seed == 0:
            theirs = run(TURTLE(C, random_state=seed), split, seed)
    print(
        f"TURTLE takes {theirs / np.median(ours):.1f} times as long as SAGL "
        f"({theirs / max(ours):.1f} times as its slowest seed)"
    )


if __name__ == "__main__":
    main()
