"""Who does what: options, torchrun, Slurm."""

import pytest

from sagl.features.workers import (
    Share,
    device_of_process,
    parse_share,
    share_of_process,
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
