"""Features that change under a run, clocks that go wrong, workers that are killed."""

import os
import signal
import time
from contextlib import suppress

import numpy as np
import pytest

from tests.faults.jobs import JOBS
from tests.faults.processes import Fault, call, start, wait_until
from tests.faults.test_disk import refused
from tests.faults.test_kills import check_halves, finish


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["search", "training", "compare"])
@pytest.mark.parametrize("how", ["shrinks", "changes"])
def test_a_feature_file_that_changes_under_a_run(name, how, whole, place, rng, count):
    """It is halted where it writes something; then the file is not what it was."""
    job, expected = JOBS[name], whole(JOBS[name])
    folder = place(job)
    file, kept = folder / "wide.npy", (folder / "wide.npy").read_bytes()
    times = (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    # Behind the first events the features have been opened; at the end nobody reads.
    at = rng.randint(4, expected.events // 4)
    running = start(job.words, folder, Fault(job.place(folder), at, signal.SIGSTOP))
    wait_until(running.halted)
    if how == "shrinks":
        os.truncate(file, len(kept) // 2)
    else:
        np.save(file, np.load(file) + 1)
    running.strike(signal.SIGCONT)
    outcome = running.ended()
    count("changed file")
    refused(outcome)
    assert "wide.npy has changed while it was in use" in outcome.err
    check_halves(job, folder, expected, outcome)
    file.write_bytes(kept)
    os.utime(file, ns=times)
    finish(job, folder, expected)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["extract", "search", "compare"])
@pytest.mark.parametrize("years", [-30, 30])
def test_clocks_that_go_wrong(name, years, whole, place, rng, count):
    """Begun, killed, and taken up when the clock and all files are years away."""
    job, expected = JOBS[name], whole(JOBS[name])
    folder, seconds = place(job), years * 365 * 86400
    at = rng.randint(expected.events // 3, expected.events - 1)
    fault = Fault(job.place(folder), at, signal.SIGKILL)
    call(job.words, folder, fault, clock=seconds)
    for path in folder.rglob("*"):
        os.utime(path, (time.time() + seconds, time.time() + seconds))
    count("clock")
    outcome = call(job.words, folder, clock=-seconds)
    assert outcome.code == 0 or "already holds a run" in outcome.err, outcome
    made = job.made(folder)
    assert made == expected.made


@pytest.mark.timeout(600)
def test_a_worker_that_is_killed_for_want_of_memory(whole, place, rng, count):
    job = JOBS["extract with workers"]
    expected, folder = whole(job), place(job)
    slow = (
        (folder / "toy_models.py")
        .read_text()
        .replace(
            "def colours(pictures):", "def colours(pictures):\n    time.sleep(0.05)"
        )
    )
    kept = (folder / "toy_models.py").read_text()
    for _ in range(3):
        (folder / "toy_models.py").write_text(f"import time\n{slow}")
        running = start(job.words, folder)
        wait_until(running.children)
        time.sleep(rng.uniform(0, 0.2))
        for worker in running.children()[-1:]:  # it may have done its work
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        outcome = running.ended()
        count("worker killed")
        if outcome.code != 0:
            refused(outcome)
            assert "a worker process was killed" in outcome.err
            assert "--workers" in outcome.err
        (folder / "toy_models.py").write_text(kept)
    finish(job, folder, expected)
