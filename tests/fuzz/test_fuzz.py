"""Readers of files that somebody else may have made: refused in one line, or read."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz import mutation
from tests.fuzz.bombs import BOMBS, MOST
from tests.fuzz.mutation import bytes_changed
from tests.fuzz.targets import TARGETS, attempt

CORPUS = Path(__file__).with_name("corpus")
KEPT = sorted(path for path in CORPUS.rglob("*") if path.is_file())
# What changes a target's files knowingly; all have their bytes changed, too.
STRUCTURES = {
    "npy": [lambda content, draw: mutation.npy_of(draw)],
    "npz": [lambda content, draw: mutation.npz_of(draw)],
    "safetensors": [mutation.header_changed],
    "jsonl": [mutation.lines_changed],
    "tar": [lambda content, draw: mutation.tar_of(draw)],
    "image": [lambda content, draw: mutation.image_of(draw)],
    "store-shard": [lambda content, draw: mutation.npy_of(draw)],
    "begun-journal": [mutation.lines_changed],
    "checkpoint": [mutation.tensors_changed, mutation.state_changed],
    "search": [mutation.tensors_changed, mutation.state_changed],
    "graph": [lambda content, draw: mutation.npz_of(draw)],
    **{
        name: [mutation.json_changed]
        for name in (
            *("manifest", "begun-plan", "begun-samples", "count", "result", "names"),
            "corrections",
        )
    },
}


def test_corpora_are_of_targets_and_small():
    assert {path.parent.name for path in KEPT} == set(TARGETS)
    assert len(KEPT) < 600
    assert max(path.stat().st_size for path in KEPT) < 32_768
    names = [hashlib.sha256(path.read_bytes()).hexdigest() for path in KEPT]
    pairs = [(path.parent, name) for path, name in zip(KEPT, names, strict=True)]
    assert len(set(pairs)) == len(pairs)


@pytest.mark.parametrize("name", TARGETS)
def test_sound_files_are_read(name):
    for content in TARGETS[name].seeds():
        assert None in attempt(name, content)


@pytest.mark.parametrize("name", TARGETS)
def test_kept_files(name):
    for path in sorted((CORPUS / name).iterdir()):
        try:
            attempt(name, path.read_bytes())
        except BaseException as error:
            error.add_note(f"{path}")
            raise


def examples(n):
    return settings(
        max_examples=n,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )


def change_and_read(name, data):
    ways = [bytes_changed, *2 * STRUCTURES.get(name, [])]
    content = data.draw(st.sampled_from(list(TARGETS[name].seeds())))
    attempt(name, data.draw(st.sampled_from(ways))(content, data.draw))


@pytest.mark.parametrize("name", TARGETS)
@examples(10)
@given(data=st.data())
def test_changed_files(name, data):
    change_and_read(name, data)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
@examples(300)
@given(data=st.data())
def test_many_changed_files(name, data):
    change_and_read(name, data)


@pytest.fixture(scope="module")
def exploded():
    """What each bomb came to, in a process of its own with limited memory."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the peak of memory is measured on Linux alone")
    order = [sys.executable, "-m", "tests.fuzz.bombs"]
    done = subprocess.run(order, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr[-3_000:]
    return {found["bomb"]: found for found in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("bomb", BOMBS)
def test_small_files_take_little_memory(exploded, bomb):
    found = exploded[bomb]
    # What is no result of a run is done anew.
    assert any(line is not None for line in found["lines"]) or bomb == "deep result"
    assert found["growth"] < 2 * max(MOST, 100 * found["bytes"])
    assert found["seconds"] < 10


@pytest.mark.slow
def test_a_short_campaign_of_atheris():
    pytest.importorskip("atheris", reason='not fuzzed: pip install "sagl[fuzz]"')
    order = [sys.executable, "-m", "tests.fuzz", "--seconds", "2"]
    done = subprocess.run(order, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-5_000:]
