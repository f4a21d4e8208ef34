"""A default fit of this version beside one of another checkout: time and quality.

    git worktree add ../earlier COMMIT
    python benchmarks/beside.py ../earlier/src --sets pets_clip handwritten

Each fit is a process of its own with one thread, the two versions in turn, so that
other work on the machine troubles both alike; seconds are processor time of the fit.
Each test sample is predicted alone; labels only score.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


def measure(data: Path, name: str, seed: int) -> None:
    """In a process of its own: print what a fit costs and how good it is."""
    import torch

    from data import load
    from sagl import SAGL
    from sagl.evaluation import clustering_accuracy

    torch.set_num_threads(1)
    split = load(data, name)
    start = time.process_time()
    model = SAGL(split.n_clusters, random_state=seed).fit(split.train)
    seconds = time.process_time() - start
    acc = clustering_accuracy(split.test_labels, model.predict(split.test))
    print(json.dumps({"seconds": seconds, "acc": acc}))


def fresh(source: Path, data: Path, name: str, seed: int) -> dict[str, float]:
    """The same by the version whose package is in ``source``."""
    places = os.pathsep.join([str(source.resolve()), str(HERE)])
    environment = {**os.environ, "PYTHONPATH": places, "OMP_NUM_THREADS": "1"}
    code = f"import beside, pathlib; beside.measure(pathlib.Path({str(data)!r}), "
    code += f"{name!r}, {seed})"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, stdout=-1
    )
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, help="the src of another checkout")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", nargs="+", default=["pets_clip", "handwritten"])
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    ours = HERE.parent / "src"
    head = ["set", "seed", "this, s", "other, s", "ratio", "ACC this", "other"]
    print(f"| {' | '.join(head)} |\n{'|---' * len(head)}|")
    for name in options.sets:
        ratios = []
        for seed in range(options.seeds):
            runs = [
                fresh(place, options.data, name, seed)
                for place in (ours, options.other)
            ]
            ratios.append(runs[0]["seconds"] / runs[1]["seconds"])
            cells = [f"{run['seconds']:.1f}" for run in runs]
            cells += [f"{ratios[-1]:.2f}", *(f"{run['acc']:.3f}" for run in runs)]
            print(f"| {name} | {seed} | {' | '.join(cells)} |", flush=True)
        print(f"| {name} | median | | | {np.median(ratios):.2f} | | |", flush=True)


if __name__ == "__main__":
    main()
