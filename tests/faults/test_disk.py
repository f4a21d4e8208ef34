"""A disk that is full or read-only: one line, no halves, and it goes on with room."""

import errno
import os
import signal
import subprocess
from contextlib import contextmanager

import pytest

from tests.faults.jobs import JOBS, copy_inputs
from tests.faults.processes import Fault, call
from tests.faults.test_kills import check_halves, finish

ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO)
LIVES = {
    "extract": 8,
    "training": 8,
    "restarts": 2,
    "search": 6,
    "fit of texts": 3,
    "compare": 3,
    "report": 2,
}


def refused(outcome):
    """In one line, which is no traceback."""
    assert outcome.code in (1, 2), outcome
    assert len(outcome.lines) == 1, outcome.err
    assert outcome.err.startswith("sagl: error: "), outcome.err


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", LIVES)
def test_errors_of_the_disk_at_random_moments(name, whole, place, rng, count):
    """From some moment on, nothing can be written."""
    job, expected = JOBS[name], whole(JOBS[name])
    for life in range(LIVES[name]):
        folder, error = place(job), ERRORS[life % len(ERRORS)]
        fault = Fault(job.place(folder), rng.randint(1, expected.events), error=error)
        outcome = call(job.words, folder, fault)
        count(errno.errorcode[error])
        if outcome.code != 0:  # or it had come to its end
            refused(outcome)
        check_halves(job, folder, expected, outcome)
        finish(job, folder, expected)


@pytest.mark.parametrize("name", ["extract", "training", "search", "report"])
def test_a_disk_that_is_really_full(name, whole, inputs, tmp_path, rng, count):
    job, expected = JOBS[name], whole(JOBS[name])
    with small_disk(tmp_path / "disk") as resize:
        folder = copy_inputs(inputs, tmp_path / "disk" / "work", job)
        used = sum(path.stat().st_blocks * 512 for path in folder.rglob("*"))
        needed = sum(map(len, expected.made.values()))
        for _ in range(3):
            room = used + 4096 * 4 + int(rng.uniform(0.05, 0.9) * needed)
            disk = os.statvfs(folder)  # it cannot be smaller than what is on it
            resize(max(room, (disk.f_blocks - disk.f_bfree) * disk.f_frsize))
            outcome = call(job.words, folder, outputs=tmp_path)
            count("full disk")
            refused(outcome)
            assert "space" in outcome.err, outcome.err
            check_halves(job, folder, expected, outcome)
        resize(used + 4 * needed + (1 << 20))
        finish(job, folder, expected)


@contextmanager
def small_disk(place):
    """A file system in memory; its size can be changed. Only root may mount one."""
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        yield lambda size: subprocess.run(
            ["mount", "-o", f"remount,size={size}", place], check=True
        )
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.parametrize("name", ["extract", "training", "compare", "report"])
def test_a_directory_that_may_not_be_written(name, whole, place, count):
    """Neither before anything is there, nor in the middle of it."""
    job, expected = JOBS[name], whole(JOBS[name])
    folder = place(job)
    below = job.place(folder)
    if below.exists():  # of a report: the run
        check_forbidden(job, folder, below)
    else:
        check_forbidden(job, folder, folder)
        fault = Fault(below, expected.events // 2, signal.SIGKILL)
        call(job.words, folder, fault)
        check_forbidden(job, folder, below)
    count("read-only", 2)
    finish(job, folder, expected)


def check_forbidden(job, folder, directory):
    before = {path: path.stat().st_mtime_ns for path in directory.rglob("*")}
    for each in (directory, *filter(os.path.isdir, directory.rglob("*"))):
        if each != folder:
            each.chmod(0o555)
    # The output of the command goes to files that are there.
    for name in (".out", ".err"):
        (folder / name).touch()
    folder.chmod(0o555)
    try:
        outcome = call(job.words, folder, permissions=True)
    finally:
        for each in (folder, directory, *filter(os.path.isdir, directory.rglob("*"))):
            each.chmod(0o755)
    refused(outcome)
    assert "ermission denied" in outcome.err or "annot be written" in outcome.err
    after = {path: path.stat().st_mtime_ns for path in directory.rglob("*")}
    for path in (*before, *after):
        if path.name not in (".out", ".err"):
            assert before.get(path) == after.get(path), path
