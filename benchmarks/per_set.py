"""The same measurement on every set, several times each: options, cache, results."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from cache import Job, measure
from data import DEFAULT_VIEWS


def parser_of(
    doc: str, cache: str, repeats: str, count: int
) -> argparse.ArgumentParser:
    """Options that all such scripts have; ``repeats`` is what the seeds are called."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--data", default="../shared/data")
    parser.add_argument("--sets", nargs="+", default=list(DEFAULT_VIEWS))
    parser.add_argument(f"--{repeats}", dest="repeats", type=int, default=count)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=Path(cache))
    return parser


def measure_sets(options: argparse.Namespace, run: Callable[[Job], Job]) -> list[Job]:
    """``run`` for every set and seed that the cache does not hold yet; all results."""
    jobs = [
        {"data": options.data, "set": name, "seed": seed}
        for name in options.sets
        for seed in range(options.repeats)
    ]
    return measure(jobs, run, options.cache, options.jobs)
