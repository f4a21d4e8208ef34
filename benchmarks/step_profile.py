"""Where the time of one small training step goes: batch 100, two views of 512, C = 37.

    python benchmarks/step_profile.py

Medians in microseconds over 400 steps, one thread.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch

import sagl.nn.dense as dense
import sagl.nn.fused_step as fused_step
from sagl.nn.network import Network
from sagl.nn.objective import Objective
from sagl.training.sampler import step_seed
from sagl.training.step import FlatParameters

N, BATCH, WIDTH, C = 3680, 100, 512, 37
PARTS = (
    (fused_step, "_encode", "linear maps, forward"),
    (fused_step._Gates, "forward", "gate, forward"),
    (fused_step, "attended", "attention, forward (with the thresholds below)"),
    (dense, "row_threshold", "  of it: entmax thresholds"),
    (Objective, "with_gradient", "loss and its gradient"),
    (fused_step, "attended_gradient", "attention, backward"),
    (fused_step._Gates, "backward", "gate, backward"),
    (fused_step, "_encode_backward", "linear maps, backward"),
)


class Clock:
    """Notes how long named parts take."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)

    def timed(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            result = call(*args, **kwargs)
            self.seconds[name].append(time.perf_counter() - start)
            return result

        return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400)
    options = parser.parse_args()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    network = Network(
        [WIDTH, WIDTH], C, gate="shrink", dropout=0.1, generator=generator
    ).train()
    flat = FlatParameters(network)
    optimizer = torch.optim.Adam([flat.values], lr=1e-3, fused=True)
    objective = Objective(5.0, 1.0)
    views = [torch.randn(N, WIDTH, generator=generator) * 0.44 for _ in range(2)]
    clock = Clock()
    for owner, name, title in PARTS:
        setattr(owner, name, clock.timed(title, getattr(owner, name)))
    feed = clock.timed("rows of the batch", lambda r: [h[r] for h in views])
    fill = clock.timed("gradients into one vector", flat.set_gradients)
    adam = clock.timed("Adam", optimizer.step)

    def step(i: int) -> None:
        rows = torch.randint(N, (BATCH,), generator=generator)
        generator.manual_seed(step_seed(0, i))
        _, gradients = fused_step.loss_and_gradients(
            network, objective, feed(rows), generator
        )
        fill(gradients)
        adam()

    whole = clock.timed("whole step", step)
    for i in range(options.steps):
        whole(i)
    print("| part | microseconds |\n|---|---|")
    for name, seconds in clock.seconds.items():
        print(f"| {name} | {statistics.median(seconds) * 1e6:,.0f} |")


if __name__ == "__main__":
    main()
