"""Processes of torchrun end when it is killed, or one of them, whenever that is."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.test_torchrun import environment, fit_options, processes_of, torchrun
from tests.faults.jobs import write_inputs
from tests.faults.processes import _state

SECONDS = 60  # until all have ended
# From before anything is imported to the middle of the work.
MOMENTS = {"at once": (0, 1), "soon": (1, 4), "later": (3, 8), "late": (6, 15)}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("torchrun") / "inputs"
    write_inputs(folder)
    return folder


class Started:
    """A job of two processes, as soon as both are there."""

    def __init__(self, files, out):
        more = ("--recipe", "paper", "--tolerance", 0, "--epochs", 10**6)
        self.job = subprocess.Popen(
            torchrun(2, *fit_options(out, *more)),
            cwd=files,
            env=environment(files),
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        until = time.monotonic() + 120
        while len(self.workers()) < 2:
            assert self.job.poll() is None, self.job.stderr.read()
            assert time.monotonic() < until, "no process was started"
            time.sleep(0.05)
        self.known = self.workers()

    def workers(self):
        words = {n: self._words(n) for n in processes_of(self.job.pid)}
        return [number for number, said in words.items() if b"-m\0sagl\0" in said]

    @staticmethod
    def _words(number):
        return Path(f"/proc/{number}/cmdline").read_bytes()

    def wait(self):
        """Until all have ended; how long that took."""
        began = time.monotonic()
        while any(_state(number)[0] not in "ZX" for number in self.known):
            assert time.monotonic() - began < SECONDS, "a process lives on"
            time.sleep(0.1)
        return time.monotonic() - began

    def clear(self):
        for number in (*self.known, self.job.pid):
            if _state(number)[0] not in "ZX":
                os.kill(number, signal.SIGKILL)
        self.job.wait()
        self.job.stderr.close()


@pytest.fixture
def started(files, tmp_path):
    begun = []

    def start():
        begun.append(Started(files, tmp_path / f"run-{len(begun)}"))
        return begun[-1]

    yield start
    for each in begun:
        each.clear()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("moment", MOMENTS)
def test_they_end_with_torchrun(moment, started, rng, count):
    job = started()
    time.sleep(rng.uniform(*MOMENTS[moment]))
    if rng.random() < 0.5:  # stuck, as in a call that never comes back
        os.kill(job.known[0], signal.SIGSTOP)
    job.job.kill()
    count("torchrun killed")
    job.wait()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("moment", MOMENTS)
def test_they_end_with_one_of_them(moment, started, rng, count):
    job = started()
    time.sleep(rng.uniform(*MOMENTS[moment]))
    os.kill(rng.choice(job.known), signal.SIGKILL)
    count("rank killed")
    job.wait()
    assert job.job.wait(SECONDS) != 0
    said = job.job.stderr.read()
    assert "Traceback" not in said.partition("failed (exitcode")[0], said
    assert "sagl: error: " in said or "exitcode  : -9" in said, said
