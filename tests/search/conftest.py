"""The problems that most of these tests solve."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from sagl import Views
from sagl.search.space import Space
from tests.conftest import clustered_views

UNEVEN = (300, 120, 60, 30, 15)
EQUAL = (100,) * 5


def blobs(sizes, spread=1.5, seed=0):
    """Two views of Gaussian clusters of these sizes, and the clusters."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    views = {}
    for name in ("one", "other"):
        centres = 2 * rng.normal(size=(len(sizes), 12))
        noise = spread * rng.normal(size=(len(labels), 12))
        views[name] = (centres[labels] + noise).astype(np.float32)
    return Views(views), labels


def space_of(views):
    return Space([torch.from_numpy(h - h.mean(axis=0)) for _, h in views.items()], 10)


def configured(space, **changes):
    """The same space for a search with other numbers."""
    other = copy.copy(space)
    other.config = replace(space.config, **changes)
    return other


@pytest.fixture(scope="module")
def problem():
    """Four clusters of 40 samples that overlap a little, in two views."""
    views, labels = clustered_views(160, spread=1.5)
    return space_of(views), torch.from_numpy(labels)


@pytest.fixture(scope="module")
def uneven():
    """Five clusters, the largest twenty times as large as the smallest."""
    views, labels = blobs(UNEVEN)
    return space_of(views), torch.from_numpy(labels)
