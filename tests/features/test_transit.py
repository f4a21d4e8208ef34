"""Prepared samples arrive as they were sent."""

import pickle

import pytest
import torch

from sagl.features.transit import Stacked, packed, unpacked


def equal(a, b):
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


@pytest.mark.parametrize(
    ("samples", "stacked"),
    [
        ([torch.ones(2, 3), torch.zeros(2, 3)], True),
        ([torch.ones(2, 3), torch.zeros(2, 4)], False),
        ([torch.ones(2), torch.ones(2, dtype=torch.int64)], False),
        ([{"pixels": torch.ones(2), "mask": torch.tensor(1)}] * 2, True),
        ([{"pixels": torch.ones(2)}, {"pixels": torch.ones(3)}], False),
        ([{"pixels": torch.ones(2)}, {"other": torch.ones(2)}], False),
        ([{"ids": [1, 2]}, {"ids": [3]}], False),
        (["a text", "another"], False),
        ([], False),
    ],
)
def test_there_and_back(samples, stacked):
    sent = packed(samples)
    assert isinstance(sent, Stacked) == stacked
    arrived = unpacked(pickle.loads(pickle.dumps(sent)))
    assert len(arrived) == len(samples)
    assert all(equal(a, b) for a, b in zip(samples, arrived, strict=True))


def test_what_was_not_sent_anywhere():
    samples = [{"pixels": torch.ones(2)}, torch.ones(3), "text"]
    assert all(equal(a, b) for a, b in zip(samples, unpacked(samples), strict=True))
