"""Files on disk are whole or absent, and come back exactly as they were written."""

import errno
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import sagl
from sagl.storage import (
    held,
    read_tensors,
    replacing,
    sha256,
    write_json,
    write_tensors,
    write_text,
)


def names(directory):
    return sorted(path.name for path in directory.iterdir())


class TestReplacing:
    def test_new_content_takes_the_place_of_old(self, tmp_path):
        path = tmp_path / "x.txt"
        path.write_text("old")
        with replacing(path) as temporary:
            temporary.write_text("new")
        assert path.read_text() == "new"
        assert names(tmp_path) == ["x.txt"]

    def test_the_old_content_stays_until_the_block_ends(self, tmp_path):
        path = tmp_path / "x.txt"
        path.write_text("old")
        with replacing(path) as temporary:
            temporary.write_text("new")
            assert temporary.parent == tmp_path  # a rename needs the same file system
            assert path.read_text() == "old"

    @pytest.mark.parametrize("error", [RuntimeError, OSError, KeyboardInterrupt])
    @pytest.mark.parametrize("old", ["old", None])
    def test_after_an_error_the_old_remains_and_nothing_else(
        self, tmp_path, error, old
    ):
        path = tmp_path / "x.txt"
        if old is not None:
            path.write_text(old)

        def fail():
            with replacing(path) as temporary:
                temporary.write_text("half of the n")
                raise error("stop")

        with pytest.raises(error, match="stop"):
            fail()
        assert names(tmp_path) == ([] if old is None else ["x.txt"])
        if old is not None:
            assert path.read_text() == old

    def test_a_block_that_writes_nothing_is_an_error(self, tmp_path):
        path = tmp_path / "x.txt"
        path.write_text("old")
        with pytest.raises(FileNotFoundError), replacing(path):
            pass
        assert names(tmp_path) == ["x.txt"]
        assert path.read_text() == "old"

    def test_two_writers_do_not_share_a_temporary_file(self, tmp_path):
        path = tmp_path / "x.txt"
        with replacing(path) as one, replacing(path) as other:
            assert one != other
            one.write_text("one")
            other.write_text("other")
        assert path.read_text() == "one"  # the outer block ends last
        assert names(tmp_path) == ["x.txt"]

    def test_the_content_is_forced_to_disk_before_the_rename(
        self, tmp_path, monkeypatch
    ):
        path = tmp_path / "x.txt"
        synced = []

        def fsync(descriptor):
            assert not path.exists()
            synced.append(os.fstat(descriptor).st_size)

        monkeypatch.setattr(os, "fsync", fsync)
        write_text(path, "seven..")
        assert synced == [7]

    def test_a_disk_that_is_full_at_the_end_leaves_the_old(self, tmp_path, monkeypatch):
        path = tmp_path / "x.txt"
        path.write_text("old")

        def fsync(descriptor):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fsync", fsync)
        with pytest.raises(OSError, match="No space left"):
            write_text(path, "new")
        assert names(tmp_path) == ["x.txt"]
        assert path.read_text() == "old"


# The kernel refuses every byte beyond the limit, in the middle of a write.
WRITE_WITHOUT_SPACE = """
import errno, resource, signal, sys
from pathlib import Path
import torch
from sagl.storage import write_tensors, write_text

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
directory = Path(sys.argv[1])
for write in (
    lambda: write_tensors(directory / "new.safetensors", {"x": torch.ones(5000)}),
    lambda: write_tensors(directory / "old.safetensors", {"x": torch.ones(5000)}),
    lambda: write_text(directory / "new.txt", "x" * 50000),
):
    try:
        write()
    except OSError as error:
        assert error.errno == errno.EFBIG, error
    else:
        sys.exit("the write succeeded")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX resource limits")
def test_a_write_that_runs_out_of_space_midway_leaves_nothing(tmp_path):
    old = {"x": torch.arange(3)}
    write_tensors(tmp_path / "old.safetensors", old)
    source = str(Path(sagl.__file__).parents[1])
    subprocess.run(
        [sys.executable, "-c", WRITE_WITHOUT_SPACE, str(tmp_path)],
        check=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert names(tmp_path) == ["old.safetensors"]
    tensors, _ = read_tensors(tmp_path / "old.safetensors")
    assert torch.equal(tensors["x"], old["x"])


HOLD = """
import sys, time
from pathlib import Path
from sagl.storage import held

with held(Path(sys.argv[1]), "run"):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds a directory."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "run")],
        env={**os.environ, "PYTHONPATH": str(Path(sagl.__file__).parents[1])},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


class TestHeld:
    def test_another_process_is_refused_until_the_first_dies(
        self, tmp_path, holder, monkeypatch
    ):
        monkeypatch.setattr("sagl.storage._LOCK_SECONDS", 0.1)
        with (
            pytest.raises(ValueError, match=r"run: another process is at work on this"),
            held(tmp_path / "run", "run"),
        ):
            pass
        holder.kill()
        holder.wait()
        assert names(tmp_path / "run") == [".lock"]  # which means nothing
        with held(tmp_path / "run", "run"):
            write_text(tmp_path / "run" / "x.txt", "mine")
        assert names(tmp_path / "run") == ["x.txt"]

    def test_it_may_be_held_once_more_and_is_kept_until_the_end(self, tmp_path):
        with held(tmp_path / "run", "run"):
            with held(tmp_path / "run", "run"):
                pass
            assert names(tmp_path / "run") == [".lock"]
        assert not (tmp_path / "run").exists()  # nothing was written

    def test_what_killed_processes_left_is_removed_and_nothing_else(self, tmp_path):
        left = [".a.csv.0123abcd.tmp", ".probe-17"]
        others = [".a.tmp", "a.0123abcd.tmp", ".hidden", "a.csv", ".probe-x"]
        for name in (*left, *others):
            (tmp_path / name).touch()
        with held(tmp_path, "run"):
            pass
        assert names(tmp_path) == sorted(others)


def as_bytes(tensor):
    return tensor.reshape(-1).view(torch.uint8)


class TestTensors:
    def test_they_come_back_bit_for_bit(self, tmp_path):
        generator = torch.Generator().manual_seed(0)
        written = {
            "float32": torch.randn(5, 3, generator=generator),
            "float64": torch.randn(4, generator=generator, dtype=torch.float64),
            "float16": torch.randn(2, 2, generator=generator).half(),
            "bfloat16": torch.randn(2, 2, generator=generator).bfloat16(),
            "int64": torch.tensor([-(2**60), 0, 7]),
            "bool": torch.tensor([True, False]),
            "scalar": torch.tensor(1.25),
            "empty": torch.zeros(0, 3),
            "not finite": torch.tensor([torch.nan, torch.inf, -0.0]),
        }
        write_tensors(tmp_path / "t.safetensors", written)
        read, _ = read_tensors(tmp_path / "t.safetensors")
        assert read.keys() == written.keys()
        for name, tensor in written.items():
            assert read[name].dtype == tensor.dtype
            assert read[name].shape == tensor.shape
            assert torch.equal(as_bytes(read[name]), as_bytes(tensor))

    def test_strided_and_trained_tensors_are_written_as_they_look(self, tmp_path):
        base = torch.arange(12.0).reshape(3, 4)
        written = {"transposed": base.T, "parameter": torch.nn.Parameter(base + 1)}
        write_tensors(tmp_path / "t.safetensors", written)
        read, _ = read_tensors(tmp_path / "t.safetensors")
        assert torch.equal(read["transposed"], base.T)
        assert torch.equal(read["parameter"], base + 1)
        assert not read["parameter"].requires_grad

    @pytest.mark.parametrize("metadata", [{}, None, {"a": "1", "β": '{"x": "ü\\n"}'}])
    def test_metadata_comes_back(self, tmp_path, metadata):
        path = tmp_path / "t.safetensors"
        write_tensors(path, {"x": torch.ones(1)}, metadata)
        assert read_tensors(path)[1] == (metadata or {})

    @pytest.mark.parametrize("word", [b'\\"step\\": 1', b"F32", b"[3,4]", b"x" * 9])
    def test_what_is_noted_beside_them_is_checked_as_well(self, tmp_path, word):
        path = tmp_path / "t.safetensors"
        write_tensors(
            path,
            {"x" * 9: torch.ones(3, 4), "y": torch.ones(2)},
            {"state": '{"step": 1}'},
        )
        content = path.read_bytes()
        assert word in content
        other = {b"F32": b"I32", b"[3,4]": b"[4,3]"}
        changed = other.get(word, word[:-1] + bytes([word[-1] ^ 1]))
        path.write_bytes(content.replace(word, changed))
        with pytest.raises(ValueError, match=r"t\.safetensors: damaged"):
            read_tensors(path)

    def test_a_second_write_replaces_the_first(self, tmp_path):
        path = tmp_path / "t.safetensors"
        write_tensors(path, {"x": torch.ones(100)})
        write_tensors(path, {"y": torch.zeros(2)})
        read, _ = read_tensors(path)
        assert list(read) == ["y"]
        assert names(tmp_path) == ["t.safetensors"]

    @pytest.mark.parametrize(
        "damage",
        [
            lambda content: b"",
            lambda content: content[:4],
            lambda content: content[:-1],
            lambda content: content[: len(content) // 2],
            lambda content: content + b"\0",
            lambda content: b"\xff" * 16 + content[16:],
            lambda content: b"PK\x03\x04 not safetensors at all",
        ],
        ids=["empty", "8 bytes", "1 short", "half", "1 long", "header", "other"],
    )
    def test_a_damaged_file_is_refused_by_name(self, tmp_path, damage):
        path = tmp_path / "t.safetensors"
        write_tensors(path, {"x": torch.ones(64)}, {"a": "b"})
        path.write_bytes(damage(path.read_bytes()))
        with pytest.raises(ValueError, match=r"t\.safetensors: damaged or not a") as e:
            read_tensors(path)
        assert "\n" not in str(e.value)


class TestText:
    def test_json_comes_back(self, tmp_path):
        value = {"b": [1, 2.5, None, True], "a": {"ü": "x"}, "tenth": 0.1}
        write_json(tmp_path / "x.json", value)
        assert json.loads((tmp_path / "x.json").read_text("utf-8")) == value

    @pytest.mark.parametrize("value", [{"x": float("nan")}, {"x": np.int64(1)}, object])
    def test_what_json_cannot_say_leaves_the_old(self, tmp_path, value):
        path = tmp_path / "x.json"
        write_json(path, 1)
        with pytest.raises((ValueError, TypeError)):
            write_json(path, value)
        assert json.loads(path.read_text()) == 1
        assert names(tmp_path) == ["x.json"]

    def test_text_is_utf8_whatever_the_locale(self, tmp_path):
        write_text(tmp_path / "x.txt", "γ = 5\n")
        assert (tmp_path / "x.txt").read_bytes() == "γ = 5\n".encode()


@pytest.mark.parametrize("size", [0, 1, 300_000])
def test_sha256_is_that_of_the_content(tmp_path, size):
    content = bytes(i % 251 for i in range(size))
    (tmp_path / "x").write_bytes(content)
    assert sha256(tmp_path / "x") == hashlib.sha256(content).hexdigest()
