"""How long a fit takes with several processes, as a share of the time of one.

    python benchmarks/processes.py --counts 1 2 --seeds 3

Each fit is a job of torchrun with one thread per process, on made-up views; counts take
turns, so that other work on the machine disturbs all alike. Seconds are those of the
fit on the clock, without starting Python. Labels play no part.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import torch

from sagl import SAGL
from sagl.training.distributed import joined

RECIPES = {
    "default": {},
    "network": {"recipe": "network", "steps": 200},
}


def made_up(n: int, n_clusters: int, seed: int) -> dict[str, np.ndarray]:
    """Two views in which the same clusters overlap."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_clusters, size=n)
    views = {}
    for name, width in (("first", 384), ("second", 512)):
        centres = rng.normal(size=(n_clusters, width))
        noise = 3 * rng.normal(size=(n, width))
        views[name] = (centres[labels] + noise).astype(np.float32)
    return views


def fit(options: argparse.Namespace) -> None:
    """What each process does; the first one notes the seconds."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # short trainings may leave clusters empty
    views = made_up(options.samples, options.clusters, options.seed)
    params = dict(RECIPES[options.recipe])
    if "recipe" in params:
        params["batch_size"] = options.batch
    with joined() as ranks:
        ranks.barrier()
        start = time.perf_counter()
        SAGL(options.clusters, random_state=options.seed, **params).fit(views)
        seconds = time.perf_counter() - start
        if ranks.first:
            options.result.write_text(str(seconds))


def seconds_of(
    count: int, recipe: str, seed: int, options: argparse.Namespace
) -> float:
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "seconds"
        numbers = {
            **{"samples": options.samples, "clusters": options.clusters},
            **{"batch": options.batch, "seed": seed},
        }
        words = [word for k, v in numbers.items() for word in (f"--{k}", str(v))]
        subprocess.run(
            [
                *(sys.executable, "-m", "torch.distributed.run"),
                *("--nproc-per-node", str(count), __file__, "--recipe", recipe),
                *("--result", str(result), *words),
            ],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            check=True,
        )
        return float(result.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=5000)
    parser.add_argument("--clusters", type=int, default=50)
    parser.add_argument("--batch", type=int, default=2000, help="of recipe network")
    parser.add_argument("--recipe", choices=RECIPES)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.result is not None:
        fit(options)
        return
    print("| recipe | processes | seconds, median | of one |\n|---|---|---|---|")
    for recipe in [options.recipe] if options.recipe else RECIPES:
        seconds: dict[int, list[float]] = {count: [] for count in options.counts}
        for seed in range(options.seeds):
            for count in options.counts:
                seconds[count].append(seconds_of(count, recipe, seed, options))
        first = np.array(seconds[options.counts[0]])
        for count, taken in seconds.items():
            ratios = np.array(taken) / first
            spread = f"{ratios.min():.2f} to {ratios.max():.2f}"
            print(
                f"| {recipe} | {count} | {np.median(taken):.1f} "
                f"| {np.median(ratios):.2f} ({spread}) |",
                flush=True,
            )


if __name__ == "__main__":
    main()
