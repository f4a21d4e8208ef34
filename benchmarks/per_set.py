"""The same measurement on every set, several times each: options, cache, results."""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch

from cache import Job, measure
from data import DEFAULT_VIEWS, Split, by_size, load


def parser_of(
    doc: str, cache: str, repeats: str, count: int
) -> argparse.ArgumentParser:
    """Options that all such scripts have; ``repeats`` is what the seeds are called."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", nargs="+", default=list(DEFAULT_VIEWS))
    parser.add_argument(f"--{repeats}", dest="repeats", type=int, default=count)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=Path(cache))
    parser.add_argument("--minutes", type=float, default=math.inf)
    return parser


def measure_sets(
    options: argparse.Namespace,
    run: Callable[[Split, Job], Job],
    variants: Sequence[Job] = ({},),
    rows: int | None = None,
) -> list[Job]:
    """``run`` for each set, seed and variant that the cache does not hold yet.

    The first seed of every set comes first, small sets before large ones; of sets
    with more training samples than ``rows`` so many are drawn, by seed. After
    ``--minutes`` none is begun. Returned are all results there are.
    """
    sets = by_size(options.data, options.sets)
    jobs = [
        {"set": name, "seed": seed, **variant}
        for seed in range(options.repeats)
        for name in sets
        for variant in variants
    ]
    alone = partial(_on_one_core, options.data, run, rows)
    return measure(jobs, alone, options.cache, options.jobs, minutes=options.minutes)


def _on_one_core(
    directory: Path, run: Callable[[Split, Job], Job], rows: int | None, job: Job
) -> Job:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    split = load(directory, job["set"])
    if rows is not None and rows < len(split.train):
        order = np.random.default_rng(job["seed"]).permutation(len(split.train))
        kept = np.sort(order[:rows])
        train, labels = split.train[kept], split.train_labels[kept]
        split = split._replace(train=train, train_labels=labels)
    return run(split, job)
