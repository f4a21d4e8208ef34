"""A killed run, resumed, ends with the bits of one that was never interrupted."""

import errno
import os
import signal
import subprocess
import sys
import time
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

import sagl
import sagl.storage
from sagl import SAGL, Views
from sagl.storage import write_tensors
from sagl.training import Callback
from tests.conftest import clustered_views

# 160 samples in batches of 80: two steps per epoch, a record (and with it a
# checkpoint) after steps 26, 52 and 60.
STEPS = 60
RECORDS = (26, 52, 60)
FILE = "checkpoint.safetensors"

VARIANTS = {
    "network": {"recipe": "network"},
    "released": {"recipe": "released", "dropout": 0.3},
    "no dropout": {"dropout": 0.0, "gate": "none", "graph": "identity"},
}


@pytest.fixture(scope="module")
def data():
    return clustered_views(160)[0]


def fit(data, directory=None, **params):
    defaults = {
        "n_clusters": 4,
        "recipe": "network",
        "steps": STEPS,
        "batch_size": 80,
        "random_state": 0,
        "checkpoint_dir": directory,
        "checkpoint_seconds": 0,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a short training may leave clusters empty
        return SAGL(**defaults | params).fit(data)


class KilledError(Exception):
    pass


class Kill(Callback):
    """Ends the run, at one step, in one hook, as an interruption would."""

    def __init__(self, step, hook="on_step"):
        self.step = step
        setattr(self, hook, self.kill)

    def kill(self, trainer):
        if trainer.step == self.step:
            raise KilledError


class Count(Callback):
    """The steps that this process did itself."""

    def __init__(self):
        self.steps = []

    def on_step(self, trainer):
        self.steps.append(trainer.step)


def kill(data, directory, step, hook="on_step", **params):
    with pytest.raises(KilledError):
        fit(data, directory, callbacks=[Kill(step, hook)], **params)


def assert_same_bits(one, other, data):
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_array_equal(one.confidence_, other.confidence_)
    np.testing.assert_array_equal(one.predict_proba(data), other.predict_proba(data))
    assert one.history_ == other.history_
    assert one.n_steps_ == other.n_steps_
    assert one.settings_ == other.settings_
    for name, tensor in one.network_.state_dict().items():
        assert torch.equal(tensor, other.network_.state_dict()[name]), name
    assert all(map(torch.equal, one.anchors_, other.anchors_))


@pytest.fixture(scope="module")
def whole(data):
    """What uninterrupted runs end with, by the name of the variant."""
    return {name: fit(data, **params) for name, params in VARIANTS.items()}


class TestResume:
    @pytest.mark.parametrize("variant", VARIANTS)
    @pytest.mark.parametrize("step", [27, 40, 52])
    def test_a_killed_run_ends_as_if_it_had_not_been(
        self, data, whole, tmp_path, variant, step
    ):
        kill(data, tmp_path, step, **VARIANTS[variant])
        assert sorted(path.name for path in tmp_path.iterdir()) == [FILE]
        count = Count()
        resumed = fit(data, tmp_path, callbacks=[count], **VARIANTS[variant])
        assert count.steps == list(range(27, 61))  # taken up after step 26
        assert_same_bits(resumed, whole[variant], data)

    @pytest.mark.parametrize(("record", "before"), pairwise([0, *RECORDS][::-1]))
    def test_a_run_killed_right_before_a_checkpoint(
        self, data, whole, tmp_path, record, before
    ):
        """Callbacks are called first: one that raises prevents the checkpoint."""
        kill(data, tmp_path, record, "on_record")
        count = Count()
        resumed = fit(data, tmp_path, callbacks=[count])
        assert count.steps == list(range(before + 1, 61))
        assert_same_bits(resumed, whole["network"], data)

    def test_a_run_killed_again_and_again(self, data, whole, tmp_path):
        for step in (3, 30, 30, 51, 55):
            kill(data, tmp_path, step, **VARIANTS["released"])
        resumed = fit(data, tmp_path, **VARIANTS["released"])
        assert_same_bits(resumed, whole["released"], data)

    def test_a_run_killed_before_its_first_checkpoint_starts_anew(
        self, data, whole, tmp_path
    ):
        kill(data, tmp_path, 25)
        assert list(tmp_path.iterdir()) == []
        assert_same_bits(fit(data, tmp_path), whole["network"], data)

    def test_keeping_checkpoints_changes_nothing(self, data, whole, tmp_path):
        model = fit(data, tmp_path)
        assert (tmp_path / FILE).is_file()
        assert_same_bits(model, whole["network"], data)

    def test_a_finished_run_is_at_its_end_at_once(self, data, whole, tmp_path):
        fit(data, tmp_path)
        count = Count()
        again = fit(data, tmp_path, callbacks=[count])
        assert count.steps == []
        assert_same_bits(again, whole["network"], data)
        assert not again.network_.training

    @pytest.mark.parametrize("ends", ["stable", "callback"])
    def test_a_run_that_stopped_early_is_at_its_end_at_once(self, data, tmp_path, ends):
        class Stop(Callback):
            def on_record(self, trainer):
                trainer.stop = True

        params = {"tolerance": 1.0, "patience": 1}
        if ends == "callback":
            params = {"callbacks": [Stop()]}
        stopped = fit(data, tmp_path, **params)
        assert stopped.n_steps_ == 26
        again = fit(data, tmp_path, **params)
        assert again.n_steps_ == 26
        assert_same_bits(again, stopped, data)

    def test_the_time_between_checkpoints_is_respected(self, data, tmp_path):
        kill(data, tmp_path, 40, checkpoint_seconds=3600)
        assert list(tmp_path.iterdir()) == []

    def test_a_checkpoint_directory_is_made(self, data, tmp_path):
        fit(data, tmp_path / "not" / "yet", graph="identity")
        assert (tmp_path / "not" / "yet" / FILE).is_file()

    def test_callbacks_see_the_restored_state_when_training_begins(
        self, data, tmp_path
    ):
        class Look(Callback):
            def on_train_begin(self, trainer):
                seen.append((trainer.step, trainer.epoch, len(trainer.history)))

        seen = []
        kill(data, tmp_path, 30)
        fit(data, tmp_path, callbacks=[Look()])
        assert seen == [(26, 13, 1)]

    def test_a_disk_that_fills_up_leaves_the_last_checkpoint(
        self, data, whole, tmp_path, monkeypatch
    ):
        real, written = os.fsync, []

        def fsync(descriptor):
            if written:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            written.append(descriptor)
            real(descriptor)

        with monkeypatch.context() as patch:
            patch.setattr(sagl.storage.os, "fsync", fsync)
            with pytest.raises(OSError, match="No space left"):
                fit(data, tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == [FILE]
        count = Count()
        resumed = fit(data, tmp_path, callbacks=[count])
        assert count.steps[0] == 27
        assert_same_bits(resumed, whole["network"], data)


PROCESS = """
import sys, time, warnings
import numpy as np
import torch
from sagl import SAGL
from sagl.training import Callback

source, directory, result, pause = sys.argv[1:]
steps = []

class Slow(Callback):
    def on_step(self, trainer):
        steps.append(trainer.step)
        if steps[-1] > 30:
            time.sleep(float(pause))

torch.set_num_threads(1)
warnings.simplefilter("ignore")
data = dict(np.load(source))
model = SAGL(
    4, recipe="released", dropout=0.3, steps=60, batch_size=80, random_state=0,
    checkpoint_dir=directory, checkpoint_seconds=0, callbacks=[Slow()],
).fit(data)
np.savez(
    result, steps=steps, labels=model.labels_, q=model.predict_proba(data),
)
"""


def start(source, directory, result, pause):
    home = str(Path(sagl.__file__).parents[1])
    arguments = [str(argument) for argument in (source, directory, result, pause)]
    return subprocess.Popen(
        [sys.executable, "-c", PROCESS, *arguments],
        env={**os.environ, "PYTHONPATH": home},
    )


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_process_that_is_killed_resumes_in_another(data, whole, tmp_path):
    source, directory = tmp_path / "data.npz", tmp_path / "checkpoints"
    np.savez(source, **dict(data.items()))
    process = start(source, directory, tmp_path / "never.npz", pause=5)
    try:
        deadline = time.monotonic() + 120
        while not (directory / FILE).exists():
            assert process.poll() is None, "the process ended before a checkpoint"
            assert time.monotonic() < deadline, "no checkpoint appeared"
            time.sleep(0.01)
    finally:
        process.kill()
    assert process.wait(30) == -signal.SIGKILL
    assert not (tmp_path / "never.npz").exists()

    assert start(source, directory, tmp_path / "end.npz", pause=0).wait(120) == 0
    end = np.load(tmp_path / "end.npz")
    assert end["steps"].tolist() == list(range(27, 61))
    np.testing.assert_array_equal(end["labels"], whole["released"].labels_)
    np.testing.assert_array_equal(end["q"], whole["released"].predict_proba(data))


@pytest.fixture(scope="module")
def checkpoint(data, tmp_path_factory):
    """The bytes of a checkpoint at step 26 of the default run."""
    directory = tmp_path_factory.mktemp("checkpoint")
    kill(data, directory, 30)
    return (directory / FILE).read_bytes()


@pytest.fixture
def directory(checkpoint, tmp_path):
    (tmp_path / FILE).write_bytes(checkpoint)
    return tmp_path


def refused(data, directory, **params):
    """The one line with which a fit is refused; the checkpoint must survive it."""
    before = (directory / FILE).read_bytes()
    count = Count()
    with pytest.raises(ValueError, match=str(directory / FILE)) as caught:
        fit(data, directory, callbacks=[count], **params)
    assert count.steps == []
    assert (directory / FILE).read_bytes() == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestRefusal:
    @pytest.mark.parametrize(
        ("name", "value", "was", "now"),
        [
            ("gamma", 3.0, None, "3.0"),
            ("n_clusters", 5, "4", "5"),
            ("steps", 61, "60", "61"),
            ("batch_size", 40, "80", "40"),
            ("alpha", 2.0, "1.5", "2.0"),
            ("graph", "dense", "'sparse'", "'dense'"),
            ("pseudo_label", "log", "'linear'", "'log'"),
            ("self_loops", False, "True", "False"),
            ("n_anchors", 10, "160", "10"),
        ],
    )
    def test_other_settings_are_named(self, data, directory, name, value, was, now):
        message = refused(data, directory, **{name: value})
        assert f"belongs to another run: {name} was {was or ''}" in message
        assert f"and is now {now};" in message

    def test_another_seed_is_named(self, data, directory):
        message = refused(data, directory, random_state=1)
        assert "seed was 0 and is now 1" in message

    def test_other_data_are_named(self, data, directory):
        others = {
            "values": clustered_views(160, seed=1)[0],
            "a name": Views({"wide": data["wide"], "slim": data["narrow"]}),
            "a width": Views({"wide": data["wide"], "narrow": data["narrow"][:, 1:]}),
            "the order of samples": data[::-1],
            "the order of views": Views(dict(reversed(list(data.items())))),
        }
        for other in others.values():
            assert "data was" in refused(other, directory)

    def test_another_number_of_samples_is_refused(self, data, directory):
        assert "belongs to another run" in refused(data[:150], directory)

    @pytest.mark.parametrize(
        "damage",
        [
            lambda content: b"",
            lambda content: content[:-1],
            lambda content: content[: len(content) // 2],
            lambda content: b"not a checkpoint",
        ],
        ids=["empty", "1 short", "half", "other"],
    )
    def test_a_damaged_file(self, data, directory, checkpoint, damage):
        (directory / FILE).write_bytes(damage(checkpoint))
        assert "damaged" in refused(data, directory)

    @pytest.mark.parametrize(
        "metadata", [{}, {"state": "{}"}, {"fingerprint": "{", "state": "{}"}], ids=str
    )
    def test_tensors_that_are_no_checkpoint(self, data, directory, metadata):
        write_tensors(directory / FILE, {"x": torch.ones(2)}, metadata)
        assert "not a training checkpoint" in refused(data, directory)

    def test_an_altered_byte(self, data, directory, checkpoint):
        content = bytearray(checkpoint)
        content[-3] ^= 1
        (directory / FILE).write_bytes(content)
        assert "damaged" in refused(data, directory)

    @pytest.mark.parametrize("state", [None, np.random.RandomState(0)], ids=str)
    def test_a_run_without_a_seed_cannot_be_resumed(self, data, tmp_path, state):
        with pytest.raises(ValueError, match="an int as random_state"):
            fit(data, tmp_path / "new", random_state=state)
        assert not (tmp_path / "new").exists()

    def test_a_numpy_seed_is_a_seed(self, data, tmp_path):
        fit(data, tmp_path, random_state=np.int64(0), graph="identity")

    def test_a_place_that_cannot_be_written(self, data, tmp_path):
        (tmp_path / "file").write_text("mine")
        for place in (tmp_path / "file", tmp_path / "file" / "below"):
            count = Count()
            with pytest.raises(ValueError, match=f"{place}: cannot be written"):
                fit(data, place, callbacks=[count])
            assert count.steps == []
        assert (tmp_path / "file").read_text() == "mine"
