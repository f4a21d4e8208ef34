"""What each way through attention buys: one training step, loss and all gradients.

    python benchmarks/attention_paths.py

fused    nn/fused_step.py, the gradient written out
dense    nn/dense.py, small batches through autograd
sparse   nn/support.py and nn/aggregate.py, everything else
plain    scores, ``entmax_rows`` and a product, as autograd has them

Two views of 512 columns, dropout 0.1, one thread; `late` has the sharp scores of a
trained network. Ratios of processor time to that of `dense`, medians of runs in turn.
"""

from __future__ import annotations

import argparse
import statistics
import time
from unittest.mock import patch

import torch
from torch import Tensor

from sagl.nn import Network, Objective, attention, fused_step
from sagl.nn.entmax import entmax_rows
from sagl.training.step import loss_and_gradients

SIZES = ("100x10", "222x37", "100x100", "100x400", "480x80")
SIZES += ("600x10", "600x100", "600x400", "3000x10", "3000x400")
PATHS = ("dense", "fused", "sparse", "plain")
WIDTH, OBJECTIVE = 512, Objective(5.0, 1.0)


def plain(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    gate: Tensor | None = None,
    alpha: float = 1.5,
    *,
    exclude: None = None,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """``attend`` as one would write it down; without what is not measured here."""
    A = entmax_rows(queries @ keys.mT / keys.shape[-1] ** 0.5, alpha)
    return torch.dropout(A, dropout, train=True) @ values


def seconds(path: str, network: Network, features: list[Tensor]) -> float:
    """Processor time of one step by one path."""
    attend = plain if path == "plain" else attention.attend
    with (
        patch.object(attention, "_SMALL", 0 if path == "sparse" else 1 << 40),
        patch.object(fused_step, "takes", lambda *_: path == "fused"),
        patch("sagl.nn.network.attend", attend),
    ):
        generator = torch.Generator().manual_seed(0)
        start = time.thread_time()
        loss_and_gradients(network, OBJECTIVE, features, generator)
        return time.thread_time() - start


@torch.no_grad()
def sharpen(network: Network, features: list[Tensor]) -> None:
    """U and V for which a sample's score with itself is about 9."""
    for view, h in zip(network.view_networks, features, strict=True):
        C = len(view.bias)
        own = view.linear(h).values.square().sum(dim=1).mean() / C**0.5
        for M in (view.U, view.V):
            M.copy_(torch.eye(C) * 3 / own.sqrt())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=SIZES, metavar="BATCHxC")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| batch | C | scores | non-zeros | dense | " + " | ".join(PATHS[1:]) + " |")
    print("|" + "---|" * (4 + len(PATHS)))
    for size in options.sizes:
        n, C = map(int, size.split("x"))
        for phase in ("early", "late"):
            generator = torch.Generator().manual_seed(0)
            network = Network([WIDTH] * 2, C, dropout=0.1, generator=generator)
            clusters = torch.randint(C, (n,), generator=generator)
            features = [
                0.3 * torch.randn(C, WIDTH, generator=generator)[clusters]
                + 0.3 * torch.randn(n, WIDTH, generator=generator)
                for _ in range(2)
            ]
            if phase == "late":
                sharpen(network, features)
            share = network.view_networks[0].sparsity(features[0])
            repeats = max(3, min(60, 6000 // n))
            turns = [
                [seconds(path, network, features) for path in PATHS]
                for _ in range(repeats)
            ][1:]
            ratios = [
                statistics.median(turn[i] / turn[0] for turn in turns)
                for i in range(1, len(PATHS))
            ]
            dense = statistics.median(turn[0] for turn in turns)
            cells = [f"{dense * 1e3:.1f} ms", *(f"{ratio:.2f}" for ratio in ratios)]
            print(
                f"| {n:,} | {C} | {phase} | {share:.1%} | " + " | ".join(cells) + " |",
                flush=True,
            )


if __name__ == "__main__":
    main()
