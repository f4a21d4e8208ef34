"""The problem that most of these tests solve."""

import pytest
import torch

from sagl.partition.space import Space
from tests.conftest import clustered_views


@pytest.fixture(scope="module")
def problem():
    """Four clusters of 40 samples that overlap a little, in two views."""
    views, labels = clustered_views(160, spread=1.5)
    centred = [torch.from_numpy(h - h.mean(axis=0)) for _, h in views.items()]
    return Space(centred), torch.from_numpy(labels)
