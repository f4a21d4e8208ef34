"""One seed for all faults, printed at the end; what the undisturbed commands make."""

import os
import random
import shutil
import signal
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.faults.jobs import JOBS, copy_inputs, write_inputs
from tests.faults.processes import STARTED, events_of

HERE = Path(__file__).parent
WORK = "work"
_SEED = "SAGL_FAULT_SEED"
# The same every time, so that a change is told from bad luck; "random" draws one, and
# the processes of pytest-xdist agree on it.
_GIVEN = os.environ.get(_SEED, "1")
_DRAWN = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"{random.SystemRandom().random()}")
SEED = random.Random(_DRAWN).randrange(10**6) if _GIVEN == "random" else int(_GIVEN)
COUNTS: dict[str, int] = {}


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.slow)
            if sys.platform != "linux":
                item.add_marker(pytest.mark.skip(reason="looks into /proc"))


def pytest_terminal_summary(terminalreporter):
    if COUNTS:
        listed = ", ".join(f"{count} {kind}" for kind, count in sorted(COUNTS.items()))
        terminalreporter.write_line(
            f"{sum(COUNTS.values())} faults ({listed}); again: {_SEED}={SEED}"
        )


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    report = (yield).get_result()
    if HERE in item.path.parents and report.failed:
        report.sections.append(("faults", f"again: {_SEED}={SEED}"))


@pytest.fixture
def rng(request):
    """Random moments, which depend on the seed and on the name of the test alone."""
    return random.Random(f"{SEED} {request.node.name}")


@pytest.fixture(autouse=True)
def nobody_left():
    """Ends what a test that failed has left stopped: pytest would wait for it."""
    yield
    for running in STARTED:
        running.strike(signal.SIGKILL, everybody=True)
        running.process.join()
    STARTED.clear()


@pytest.fixture
def count():
    """Counts the faults that were done."""

    def add(kind, number=1):
        COUNTS[kind] = COUNTS.get(kind, 0) + number

    return add


class Whole(NamedTuple):
    """What an undisturbed command made, in how many events and seconds."""

    made: dict
    events: int
    seconds: float


@pytest.fixture(scope="session")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults") / "inputs"
    write_inputs(folder)
    return folder


@pytest.fixture(scope="session")
def whole(inputs):
    """Gives what a job makes when nothing disturbs it."""
    known = {}

    def made(job):
        if job.name not in known:
            if job.needs:
                made(JOBS[job.needs])
            folder = copy_inputs(inputs, inputs.parent / WORK, job)
            outcome, events, seconds = events_of(job.words, folder, job.place(folder))
            assert outcome.code == 0, outcome.err
            known[job.name] = Whole(job.made(folder), events, seconds)
            folder.rename(inputs.parent / job.name)  # others need it
        return known[job.name]

    return made


@pytest.fixture
def place(inputs, whole):
    """Makes a folder with the inputs of a job, in the place of the one before.

    Always in the same: a run remembers where its samples are.
    """

    def make(job):
        whole(job)
        shutil.rmtree(inputs.parent / WORK, ignore_errors=True)
        return copy_inputs(inputs, inputs.parent / WORK, job)

    yield make
    shutil.rmtree(inputs.parent / WORK, ignore_errors=True)
