"""Who does what: options, torchrun, Slurm."""

import pytest
import torch

from sagl.features.workers import (
    Share,
    _stack,
    device_of_process,
    parse_share,
    share_of_process,
    unstack,
)


@pytest.mark.parametrize("text", ["2/2", "1", "a/b", "-1/2", "0/0", "1/2/3", ""])
def test_what_is_no_share(text):
    with pytest.raises(ValueError, match="expected i/n"):
        parse_share(text)


@pytest.mark.parametrize(
    ("environment", "share"),
    [
        ({}, Share(0, 1)),
        ({"RANK": "3", "WORLD_SIZE": "4"}, Share(3, 4)),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, Share(1, 2)),
        (
            {"RANK": "0", "WORLD_SIZE": "1", "SLURM_PROCID": "1", "SLURM_NTASKS": "2"},
            Share(0, 1),
        ),
        ({"RANK": "3"}, Share(0, 1)),
    ],
)
def test_of_the_environment(environment, share):
    assert share_of_process(environment) == share


def test_devices(monkeypatch):
    assert device_of_process("cpu", {"LOCAL_RANK": "1"}) == "cpu"
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    assert device_of_process("auto", {"LOCAL_RANK": "5"}) == "cuda:1"
    assert device_of_process("auto", {"SLURM_LOCALID": "2"}) == "cuda:2"
    assert device_of_process("auto", {}) == "auto"
    assert device_of_process("cuda:3", {"LOCAL_RANK": "1"}) == "cuda:3"


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
        ([torch.ones(2), "text"], False),
        ([{"pixels": torch.ones(2), "mask": torch.tensor(1)}] * 2, True),
        ([{"pixels": torch.ones(2)}, {"pixels": torch.ones(3)}], False),
        ([{"pixels": torch.ones(2)}, {"other": torch.ones(2)}], False),
        ([{"ids": [1, 2]}, {"ids": [3]}], False),
        (["a text", "another"], False),
        ([], False),
    ],
)
def test_samples_arrive_as_they_were_prepared(samples, stacked):
    sent = _stack(samples)
    assert (type(sent) is not list) == stacked
    arrived = unstack(sent)
    assert len(arrived) == len(samples)
    assert all(equal(a, b) for a, b in zip(samples, arrived, strict=True))
