"""Two commands at once on one run, store or study; locks of the dead hold nobody up."""

import signal

import pytest

from tests.faults.jobs import JOBS
from tests.faults.processes import Fault, call, start, wait_until
from tests.faults.test_disk import refused
from tests.faults.test_kills import already_there, check_halves, finish

# What the second is told; or it comes when there is nothing more to do.
TOLD = {
    "extract": "another process is writing this file",
    "training": "another process is at work on this run",
    "search": "another process is at work on this run",
    "sweep": "another process is at work on this study",
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", TOLD)
def test_two_at_once(name, whole, place, rng, count, tmp_path):
    """The first is halted in the middle; the second is refused, and takes over.

    Files of a store are locked one by one, so that machines can share the work. Where
    the first is halted between two of them, the second may do all that is left.
    """
    job, expected = JOBS[name], whole(JOBS[name])
    folder = place(job)
    first = _halted(job, folder, expected, rng)
    outcome = call(job.words, folder, outputs=tmp_path)
    count("two at once")
    if name != "extract" or outcome.code != 0:
        refused(outcome)
        assert TOLD[name] in outcome.err
    first.strike(signal.SIGKILL, everybody=True)
    assert first.ended().code == -signal.SIGKILL
    count("stale lock")
    check_halves(job, folder, expected, outcome)
    finish(job, folder, expected)


def _halted(job, folder, expected, rng):
    """A command that was stopped in the middle of its work, and does not end."""
    if job.name == "sweep":  # its runs are what writes in the middle
        first = start(job.words, folder)
        wait_until(first.children)
        first.strike(signal.SIGSTOP)
    else:
        at = rng.randint(expected.events // 3, expected.events // 2)
        first = start(job.words, folder, Fault(job.place(folder), at, signal.SIGSTOP))
    wait_until(first.halted)
    return first


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["training", "extract"])
def test_several_are_started_at_the_same_time(name, whole, place, count, tmp_path):
    """Some are refused, and what is made is made once."""
    job, expected = JOBS[name], whole(JOBS[name])
    folder, outputs = place(job), [tmp_path / f"{i}" for i in range(3)]
    for each in outputs:
        each.mkdir()
    running = [start(job.words, folder, outputs=each) for each in outputs]
    for each in running:
        outcome = each.ended()
        count("two at once")
        if outcome.code != 0 and not already_there(outcome):
            refused(outcome)
            assert TOLD[name] in outcome.err
    finish(job, folder, expected)
