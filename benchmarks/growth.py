"""How time and memory grow with the number of samples, and how far one machine goes.

    python benchmarks/growth.py --out growth.json

step    one attention step, forward and backward, C = 100, of ours and of dense softmax
        attention, at the start of training (early) and after it (late)
batch   the first step of SAGL on two views with all 50,000 samples in one batch
graph   SAGL.graph of 200,000 samples of 256 clustered features

Rows that the output holds already are not measured again. Each measurement is a fresh
process; the memory is what it holds at most beyond what it held before.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch

from attention import Step, held_now, high_water
from late import Phase, clustered, phases
from sagl import SAGL
from sagl.training import Callback, Trainer

SIZES = (1000, 2000, 5000, 10000, 20000, 50000)
C = 100
SOFTMAX_LIMIT = 20000  # beyond it dense attention does not fit into 24 GB


def measure_step(n: int, phase: str, method: str, cache: Path) -> dict[str, float]:
    inputs = Phase(*(t[:n].clone() for t in phases(SIZES[-1], C, cache)[phase]))
    Step(method, Phase(*(t[:64] for t in inputs)))()
    step = Step(method, inputs)
    before = held_now()
    seconds = step()
    return {"seconds": seconds, "mib": high_water() - before}


class Moments(Callback):
    """Notes when each training step ends."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def on_step(self, trainer: Trainer) -> None:
        self.seconds.append(time.perf_counter())


def measure_batch(n: int) -> dict[str, float]:
    """Seconds and memory of the first step of a fit with all samples in one batch."""
    views = clustered(n, C)
    moments = Moments()
    model = SAGL(
        C,
        batch_size=n,
        steps=1,
        n_anchors=2000,
        refine=False,
        random_state=0,
        callbacks=[moments],
    )
    before, start = held_now(), time.perf_counter()
    model.fit(views)
    return {
        "seconds": moments.seconds[0] - start,
        "mib": high_water() - before,
        "loss": model.history_[-1]["loss"],
    }


def measure_graph(n: int) -> dict[str, float]:
    views = clustered(n, C)
    model = SAGL(C, steps=600, random_state=0).fit([view[:20000] for view in views])
    before, start = held_now(), time.perf_counter()
    graphs = model.attention_graph(views)
    return {
        "seconds": time.perf_counter() - start,
        "mib": high_water() - before,
        "entries per row": float(np.mean([g.nnz / n for g in graphs])),
        "mib of the graphs": sum(g.data.nbytes * 3 for g in graphs) / 2**20,
    }


def fresh(*arguments: object) -> dict[str, float]:
    command = [sys.executable, __file__, "--one", *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, stdout=-1).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=Path("late"))
    parser.add_argument("--out", type=Path, default=Path("growth.json"))
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        kind, threads, *rest = options.one
        torch.set_num_threads(int(threads))
        if kind == "step":
            n, phase, method, cache = rest
            found = measure_step(int(n), phase, method, Path(cache))
        elif kind == "batch":
            found = measure_batch(int(rest[0]))
        else:
            found = measure_graph(int(rest[0]))
        print(json.dumps(found))
        return
    rows = json.loads(options.out.read_text()) if options.out.exists() else []
    threads, cache = options.threads, options.cache

    def measure(*arguments: object, **row: object) -> None:
        if any(row.items() <= done.items() for done in rows):
            return
        rows.append(row | fresh(row["kind"], threads, *arguments))
        print(json.dumps(rows[-1]), flush=True)
        options.out.write_text(json.dumps(rows, indent=2))

    for n in SIZES:
        for phase in ("early", "late"):
            for method in ("ours", "softmax"):
                if method == "softmax" and n > SOFTMAX_LIMIT:
                    continue
                row = {"kind": "step", "n": n, "phase": phase, "method": method}
                measure(n, phase, method, cache, **row)
    measure(50000, kind="batch", n=50000)
    measure(200000, kind="graph", n=200000)


if __name__ == "__main__":
    main()
