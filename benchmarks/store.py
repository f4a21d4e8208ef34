"""How much slower is a feature store than one plain file?

    python benchmarks/store.py --out store.json

A training step of 5,000 samples reads 5,000 random rows of two views. The plain read is
the best that NumPy does: one ``.npy`` file per view, memory-mapped, rows sorted before
they are read. The store gets them unsorted and gives them back in the order asked for.
Both kinds of file are in the page cache, and the reads take turns.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap

from sagl.features.store import FeatureStore, write_view

VIEWS = ("first", "second")
BLOCK = 10_000


def build(directory: Path, rows: int, dim: int) -> None:
    """The same random numbers as plain files and as a store."""
    ids = [f"images/{i:09d}.jpg" for i in range(rows)]
    for seed, name in enumerate(VIEWS):
        rng = np.random.default_rng(seed)
        plain = open_memmap(directory / f"{name}.npy", "w+", np.float16, (rows, dim))
        for start in range(0, rows, BLOCK):
            stop = min(start + BLOCK, rows)
            block = rng.standard_normal((stop - start, dim), dtype=np.float32)
            plain[start:stop] = block
        plain.flush()
        write_view(directory / "store", name, ids, plain)


Times = dict[str, tuple[float, float]]


def measure(directory: Path, batch: int, rounds: int) -> Times:
    """Median milliseconds of each way to read a batch: by the clock, of the CPU."""
    plain = [np.load(directory / f"{name}.npy", mmap_mode="r") for name in VIEWS]
    views = FeatureStore.open(directory / "store").views()

    def plain_sorted(rows: np.ndarray) -> list[np.ndarray]:
        rows = np.sort(rows)
        return [array[rows] for array in plain]

    def plain_unsorted(rows: np.ndarray) -> list[np.ndarray]:
        return [array[rows] for array in plain]

    def plain_float32(rows: np.ndarray) -> list[np.ndarray]:
        rows = np.sort(rows)
        return [array[rows].astype(np.float32) for array in plain]

    ways: dict[str, Callable[[np.ndarray], list[np.ndarray]]] = {
        "one .npy per view, sorted": plain_sorted,
        "store": lambda rows: [views[name][rows] for name in VIEWS],
        "one .npy per view, unsorted": plain_unsorted,
        "one .npy per view, sorted, as float32": plain_float32,
        "store, as float32 (what training reads)": views.take,
    }
    rng = np.random.default_rng(0)
    seconds: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for number in range(rounds + 3):  # the first three fill the page cache
        for way, read in ways.items():
            # Rows of its own: those that were just read would be in the CPU's cache.
            rows = rng.choice(len(views), batch, replace=False)
            clock, cpu = time.perf_counter(), time.process_time()
            found = read(rows)
            passed = time.perf_counter() - clock, time.process_time() - cpu
            if number >= 3:
                seconds[way].append(passed)
            del found
        expected = [array[rows] for array in plain]
        for found, wanted in zip(ways["store"](rows), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
    return {
        way: tuple(1e3 * np.median(times, axis=0)) for way, times in seconds.items()
    }


def table(found: Times) -> str:
    ways = list(found)
    against = {ways[1]: ways[0], ways[2]: ways[0], ways[4]: ways[3]}
    lines = ["| read | ms | ratio | CPU ms | ratio |", "|---|---|---|---|---|"]
    for way, both in found.items():
        cells = []
        for i, milliseconds in enumerate(both):
            base = found[against[way]][i] if way in against else None
            ratio = "" if base is None else f"{milliseconds / base:.2f}"
            cells += [f"{milliseconds:.1f}", ratio]
        lines.append(f"| {way} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--dim", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--out", type=Path, help="Where to write the numbers as JSON.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        build(Path(directory), options.rows, options.dim)
        found = measure(Path(directory), options.batch, options.rounds)
    print(
        f"{options.batch:,} random rows of {options.rows:,}, {len(VIEWS)} views of "
        f"{options.dim:,} float16; medians of {options.rounds}\n"
    )
    print(table(found))
    if options.out:
        options.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
