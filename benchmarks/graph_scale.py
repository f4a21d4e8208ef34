"""The attention graph of very many samples: time, exactness, memory.

    python benchmarks/graph_scale.py --samples 20000 50000 200000
    python benchmarks/graph_scale.py --samples 200000 --threads 2

Samples of 50 classes of three groups each, 24 directions of them turned, bent and
hidden in 256 columns with noise: the nearest neighbour of a sample is of another class
in about 30 of 100 cases. z is what the default starts from: 64 principal directions of
standardised columns, scores of like samples 25. ``cells`` is what the library does with
so many samples (``sagl/nn/cells.py``), ``blocks`` the same graph with all keys for each
block of rows: some blocks, and their time for all of them. Rows of both are compared.
Each size in a process of its own; times are wall-clock: let nothing else run.
"""

from __future__ import annotations

import argparse
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import torch
from numpy.typing import NDArray

from sagl.nn.attention import attend
from sagl.nn.cells import attention_by_cells
from sagl.nn.network import Linear

CLASSES, GROUPS, DIRECTIONS, COLUMNS, WIDTH = 50, 3, 24, 256, 64
WITHIN, HEAVY, NOISE = 1.2, 0.4, 0.3
SHARPNESS = 25.0
COMPARED = 2_000  # rows


def samples(n: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Features and true classes."""
    rng = np.random.default_rng(seed)
    middles = rng.normal(size=(CLASSES, 1, DIRECTIONS))
    groups = middles + 0.4 * rng.normal(size=(CLASSES, GROUPS, DIRECTIONS))
    labels, group = rng.integers(CLASSES, size=n), rng.integers(GROUPS, size=n)
    spread = WITHIN * rng.lognormal(0, HEAVY, size=(n, 1))
    x = groups[labels, group] + spread * rng.normal(size=(n, DIRECTIONS))
    turned = np.tanh(x @ rng.normal(size=(DIRECTIONS, COLUMNS)) / DIRECTIONS**0.5)
    noisy = turned + NOISE * rng.normal(size=turned.shape)
    return noisy.astype(np.float32), labels


def linear_of(x: NDArray[np.float32]) -> Linear:
    """Queries and keys as a default network begins with them."""
    h = torch.from_numpy((x - x.mean(axis=0)) / x.std(axis=0))
    h = h / h.norm(dim=1, keepdim=True)
    directions = torch.linalg.eigh(h.T @ h)[1][:, -WIDTH:]
    z = h @ directions
    z = z / z.norm(dim=1).mean()
    return Linear(z[:, :1], z * SHARPNESS * WIDTH**0.5, z, None)


def run(n: int, threads: int) -> dict[str, float]:
    torch.set_num_threads(threads)
    x, labels = samples(n, seed=0)
    linear = linear_of(x)
    start = time.perf_counter()
    graph = attention_by_cells(linear, 1.5, self_loops=False)
    by_cells = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows = torch.randperm(n, generator=torch.Generator().manual_seed(0))[:COMPARED]
    queries, keys = linear.queries[rows], linear.keys
    start = time.perf_counter()
    _, other = attend(queries, keys, keys[:, :0], return_graph=True, exclude=rows)
    by_blocks = (time.perf_counter() - start) * n / COMPARED
    weights, crow = graph.weights, other.crow_indices()
    worst = 0.0
    for i, row in enumerate(rows.tolist()):
        of_row = slice(int(weights.crow[row]), int(weights.crow[row + 1]))
        dense = torch.zeros(n)
        dense[weights.cols[of_row]] = weights.entries[of_row]
        there = slice(int(crow[i]), int(crow[i + 1]))
        dense[other.col_indices()[there]] -= other.values()[there]
        worst = max(worst, float(dense.abs().max()))
    same = labels[weights.rows().numpy()] == labels[weights.cols.numpy()]
    return {
        "cells, s": by_cells,
        "blocks, s": by_blocks,
        "ratio": by_blocks / by_cells,
        "certified": float(graph.certified.float().mean()),
        "largest difference": worst,
        "neighbours": len(weights.entries) / n,
        "weight inside": float(weights.entries.numpy()[same].sum()) / n,
        "peak MiB": peak,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, nargs="+", default=[20_000, 50_000])
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    head: list[str] = []
    for n in options.samples:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            result = pool.submit(run, n, options.threads).result()
        if not head:
            head = ["samples", *result]
            print(f"| {' | '.join(head)} |\n{'|---' * len(head)}|")
        cells = [f"{value:,.3g}" for value in result.values()]
        print(f"| {n:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
