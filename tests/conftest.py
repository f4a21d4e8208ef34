"""What all tests share: one thread, so that small problems do not fight over cores."""

import os
from contextlib import contextmanager

# Before torch is imported, and inherited by the processes that tests start.
os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from sagl import Views
from sagl.search.config import SearchConfig

# The search of a fit where quality does not count: all of its parts, in no time.
QUICK = {"starts": 2, "proposals": 4, "steps": 20}


@contextmanager
def quick_searches():
    """Fits that say nothing of their search have a quick one."""
    defaults = SearchConfig.__init__.__kwdefaults__
    before = dict(defaults)
    defaults.update(QUICK)
    try:
        yield
    finally:
        defaults.update(before)


def clustered_views(
    n_samples: int = 240, n_clusters: int = 4, seed: int = 0, spread: float = 0.5
) -> tuple[Views, NDArray[np.int64]]:
    """Two views of different width in which the same clusters show."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n_samples) % n_clusters)
    views = {}
    for name, width in (("wide", 12), ("narrow", 6)):
        centers = rng.normal(size=(n_clusters, width)) * 2
        noise = rng.normal(size=(n_samples, width)) * spread
        views[name] = (centers[labels] + noise).astype(np.float32)
    return Views(views), labels


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Packages may raise the number of threads; a forked process then waits forever."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def views() -> Views:
    return clustered_views()[0]


@pytest.fixture(scope="session")
def labels() -> NDArray[np.int64]:
    return clustered_views()[1]
