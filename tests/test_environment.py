"""What a machine offers: packages that may be missing, devices, shares of work."""

import sys

import pytest

from sagl.environment import (
    cores,
    default_workers,
    device_of_process,
    optional_module,
    share_of_process,
)


@pytest.mark.parametrize(
    ("name", "package"), [("transformers", "transformers"), ("PIL.Image", "pillow")]
)
def test_a_package_that_is_not_installed(monkeypatch, name, package):
    monkeypatch.setitem(sys.modules, name, None)
    cure = rf'^this needs {package}: pip install "sagl\[backbones\]" \('
    for kind in (ImportError, ValueError):  # the command line shows the second
        with pytest.raises(kind, match=cure):
            optional_module(name)


def test_a_package_beside_a_torchvision_that_does_not_fit(monkeypatch, tmp_path):
    fault = "operator torchvision::nms does not exist"
    (tmp_path / "needs_torchvision.py").write_text(f"raise RuntimeError({fault!r})")
    (tmp_path / "broken.py").write_text("raise RuntimeError('something else')")
    monkeypatch.syspath_prepend(tmp_path)
    cure = "^needs_torchvision: .* pip uninstall torchvision$"
    with pytest.raises(ValueError, match=cure):
        optional_module("needs_torchvision")
    with pytest.raises(RuntimeError, match="something else"):
        optional_module("broken")


@pytest.mark.parametrize("text", ["2/2", "1", "a/b", "-1/2", "0/0", "1/2/3", ""])
def test_what_is_no_share(text):
    with pytest.raises(ValueError, match="expected i/n"):
        share_of_process(text)


@pytest.mark.parametrize(
    ("environment", "share"),
    [
        ({}, (0, 1)),
        ({"RANK": "3", "WORLD_SIZE": "4"}, (3, 4)),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, (1, 2)),
        (
            {"RANK": "0", "WORLD_SIZE": "1", "SLURM_PROCID": "1", "SLURM_NTASKS": "2"},
            (0, 1),
        ),
        ({"RANK": "3"}, (0, 1)),
    ],
)
def test_a_share_of_the_environment(environment, share):
    assert share_of_process(environment=environment) == share
    assert share_of_process("1/3", environment) == (1, 3)


def test_devices(monkeypatch):
    assert device_of_process("cpu", {"LOCAL_RANK": "1"}) == "cpu"
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    assert device_of_process("auto", {"LOCAL_RANK": "5"}) == "cuda:1"
    assert device_of_process("auto", {"SLURM_LOCALID": "2"}) == "cuda:2"
    assert device_of_process("auto", {}) == "auto"
    assert device_of_process("cuda:3", {"LOCAL_RANK": "1"}) == "cuda:3"


def test_default_workers_leave_a_core():
    assert 0 <= default_workers({}) <= 8
    assert default_workers({"LOCAL_WORLD_SIZE": "100000"}) == 0


def test_only_cores_that_may_be_used_count(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {3, 5}, raising=False)
    assert cores() == 2
    monkeypatch.delattr("os.sched_getaffinity")  # as on macOS
    assert cores() == 64
