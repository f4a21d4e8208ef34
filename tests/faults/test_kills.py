"""Commands that are killed or interrupted end in the same bits when run again."""

import signal
import time

import pytest

from tests.faults.jobs import JOBS
from tests.faults.processes import Fault, start

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
LIVES = {  # how often each is begun, struck now and then, and brought to its end
    "extract": 10,
    "extract with workers": 4,
    "training": 10,
    "restarts": 3,
    "search": 8,
    "fit of texts": 5,
    "compare": 5,
    "sweep": 5,
    "report": 4,
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", LIVES)
def test_killed_at_random_moments(name, whole, place, rng, count):
    job, expected = JOBS[name], whole(JOBS[name])
    for life in range(LIVES[name]):
        folder = place(job)
        for _ in range(rng.randint(2, 4)):
            number = SIGNALS[(life + rng.randrange(3)) % 3]
            outcome = _struck(job, folder, number, expected, rng)
            count(number.name)
            check(outcome, number)
            check_halves(job, folder, expected, outcome)
            if outcome.code in (0, 2):
                break
        finish(job, folder, expected)


def _struck(job, folder, number, expected, rng):
    """Struck where something is written, or after so many seconds."""
    if rng.random() < 0.6:
        at = rng.randint(1, max(1, expected.events))
        return start(job.words, folder, Fault(job.place(folder), at, number)).ended()
    running = start(job.words, folder)
    time.sleep(rng.uniform(0, 1.1) * expected.seconds)
    running.strike(number, everybody=rng.random() < 0.5)
    return running.ended()


def check(outcome, number):
    """It ended by the signal and said so in one line, or came to its end before."""
    if outcome.code == 0 or already_there(outcome):
        return  # in the latter case the one before was struck behind its last step
    if number == signal.SIGINT:
        assert outcome.code == 130, outcome
        assert len(outcome.lines) == 1, outcome.err
        assert outcome.lines[0].startswith("sagl: interrupted; "), outcome.err
    else:
        assert outcome.code == -number, outcome
        assert outcome.err == "", outcome.err


def already_there(outcome):
    return outcome.code == 2 and "already holds a run" in outcome.err


def check_halves(job, folder, expected, outcome):
    """Whatever has the name of a result is that result."""
    for name, content in job.made(folder).items():
        if name in expected.made and name not in job.grows:
            assert content == expected.made[name], (name, outcome)


def finish(job, folder, expected):
    """The same command again, and nothing disturbs it."""
    outcome = start(job.words, folder).ended()
    assert outcome.code == 0 or already_there(outcome), outcome
    made = job.made(folder)
    assert made.keys() == expected.made.keys(), outcome
    for name, content in expected.made.items():
        assert made[name] == content, name
