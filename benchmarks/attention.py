"""Time and memory of one attention step, forward and backward, beside its peers.

    python benchmarks/attention.py --threads 1

ours           sagl.nn.attend
entmax15       the entmax package's sort in dense attention, as the released code has it
entmax15 k=100 the same with its top-k form, exact only for supports up to 100
softmax        dense softmax attention, as MSRL-like methods use it
floor          the bare score product Q K^T, which nobody can do without

All in one process, interleaved, medians of several repeats; peak memory in a fresh
process each. The entmax package is needed: pip install -c constraints.txt entmax.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from entmax import entmax15
from torch import Tensor

from late import Phase, phases
from sagl.nn import attend

SIZES = ((100, 37), (500, 102), (1000, 37), (5000, 397), (10000, 1000))
Method = Callable[[Tensor, Tensor, Tensor], Tensor]


def _scores(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.T / q.shape[1] ** 0.5


METHODS: dict[str, Method] = {
    "ours": attend,
    "entmax15": lambda q, k, v: entmax15(_scores(q, k), dim=1) @ v,
    "entmax15 k=100": lambda q, k, v: entmax15(_scores(q, k), dim=1, k=100) @ v,
    "softmax": lambda q, k, v: torch.softmax(_scores(q, k), dim=1) @ v,
    "floor": lambda q, k, v: q @ k.T,
}


class Step:
    """One method on given inputs; all that is not the step itself is made before."""

    def __init__(self, method: str, phase: Phase) -> None:
        self.method = METHODS[method]
        self.backward = method != "floor"
        self.inputs = [t.clone().requires_grad_(self.backward) for t in phase]
        self.grad = torch.full_like(phase.values, 1 / len(phase.values))

    def __call__(self) -> float:
        """Forward and backward; the seconds it took."""
        for tensor in self.inputs:
            tensor.grad = None
        start = time.perf_counter()
        out = self.method(*self.inputs)
        if self.backward:
            out.backward(self.grad)
        return time.perf_counter() - start


def measure(n: int, C: int, repeats: int, cache: Path) -> list[dict[str, object]]:
    """Median seconds of each method, early and late."""
    rows = []
    for name, phase in phases(n, C, cache).items():
        _, graph = attend(*phase, return_graph=True)
        times: dict[str, list[float]] = {method: [] for method in METHODS}
        for _ in range(repeats + (n <= 5000)):  # there the first is to warm up
            for method in METHODS:
                times[method].append(Step(method, phase)())
        if n <= 5000:
            times = {method: found[1:] for method, found in times.items()}
        rows.append(
            {
                "n": n,
                "C": C,
                "phase": name,
                "sparsity": graph.values().numel() / n**2,
                "seconds": {m: statistics.median(ts) for m, ts in times.items()},
            }
        )
    return rows


def peak_memory(n: int, C: int, phase: str, method: str, cache: Path) -> float:
    """MiB that one step needs beyond its inputs, in a fresh process."""
    command = [sys.executable, __file__, "--memory", str(n), str(C), phase, method]
    command += ["--cache", str(cache)]
    return float(subprocess.run(command, check=True, capture_output=True).stdout)


def _peak(n: int, C: int, phase: str, method: str, cache: Path) -> float:
    inputs = phases(n, C, cache)[phase]
    Step(method, Phase(*(tensor[:64] for tensor in inputs)))()  # what libraries need
    step = Step(method, inputs)
    before = held_now()
    step()
    return high_water() - before


def held_now() -> float:
    """MiB held at this moment; ``high_water`` counts anew from here."""
    Path("/proc/self/clear_refs").write_text("5")
    return high_water()


def high_water() -> float:
    """MiB held at most so far (Linux; getrusage would inherit the parent's)."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


def _size(text: str) -> tuple[int, int]:
    n, C = text.split("x")
    return int(n), int(C)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--sizes",
        nargs="+",
        default=SIZES,
        type=_size,
        metavar="NxC",
        help="e.g. 500x102",
    )
    parser.add_argument("--cache", type=Path, default=Path("late"))
    parser.add_argument("--out", type=Path, help="also write the rows as JSON")
    parser.add_argument("--memory", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.memory:
        n, C, phase, method = options.memory
        print(_peak(int(n), int(C), phase, method, options.cache))
        return
    rows = []
    print(f"threads: {options.threads}; seconds, and as multiples of ours")
    print(
        "| n | C | phase | non-zeros | ours | " + " | ".join(list(METHODS)[1:]) + " |"
    )
    print("|" + "---|" * (5 + len(METHODS) - 1))
    for n, C in options.sizes:
        repeats = options.repeats * (20 if n <= 500 else 4 if n <= 1000 else 1)
        for row in measure(n, C, repeats, options.cache):
            rows.append(row)
            seconds = row["seconds"]
            ours = seconds["ours"]
            cells = [f"{seconds[m] / ours:.2f} ×" for m in list(METHODS)[1:]]
            print(
                f"| {n:,} | {C:,} | {row['phase']} | {row['sparsity']:.2%} "
                f"| {ours * 1e3:.2f} ms | " + " | ".join(cells) + " |",
                flush=True,
            )
    print(
        "\n| n | C | phase | method | peak MiB beyond the inputs |"
        "\n|---|---|---|---|---|"
    )
    n, C = options.sizes[-1]
    for phase in ("early", "late"):
        for method in METHODS:
            peak = peak_memory(n, C, phase, method, options.cache)
            print(f"| {n:,} | {C:,} | {phase} | {method} | {peak:,.0f} |", flush=True)
    if options.out:
        options.out.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
