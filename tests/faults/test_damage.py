"""Files that are cut, altered or exchanged between two runs of a command.

What was to be taken up is refused in one line that names a file, or done again: then it
ends in the same bits. What is whole is refused by who reads it.
"""

import shutil
import signal

import pytest

from sagl.card import CARD
from tests.faults.jobs import JOBS
from tests.faults.processes import Fault, call
from tests.faults.test_disk import refused
from tests.faults.test_kills import already_there

LIVES = {"extract": 16, "training": 10, "search": 10, "restarts": 4}
STUDIES = {"compare": 8, "sweep": 4}
_IGNORED = {".lock", ".out", ".err", ".events"}
RUN_READERS = (
    ("predict", "run", "--view", "wide.npy", "--view", "narrow.npy", "--out", "p.csv"),
    ("report", "run", "--view", "wide.npy", "--view", "narrow.npy", "--no-tsne", "-q"),
)


def damage(folder, place, rng, ignored=()):
    """Do something to one of the files below a place; what, and to which file."""
    files = sorted(
        path
        for path in place.rglob("*")
        if path.is_file() and path.name not in _IGNORED and path.name not in ignored
    )
    files = [path for path in files if path.stat().st_size]
    path = rng.choice(files)
    content = bytearray(path.read_bytes())
    how = rng.choice(["cut", "bit", "bit", "bit", "exchange"])
    if how == "cut":
        path.write_bytes(content[: rng.randrange(len(content))])
    elif how == "bit":
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(content)
    else:
        other = rng.choice([each for each in files if each != path] or [path])
        path.write_bytes(other.read_bytes())
        other.write_bytes(content)
    return f"{how} of {path.relative_to(folder)}"


def begun(job, folder, expected, rng):
    """Killed in the second half of its way, where there is something to damage."""
    at = rng.randint(expected.events // 3, expected.events - 1)
    call(job.words, folder, Fault(job.place(folder), at, signal.SIGKILL))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", LIVES)
def test_what_is_to_be_taken_up(name, whole, place, rng, count):
    job, expected = JOBS[name], whole(JOBS[name])
    for _ in range(LIVES[name]):
        folder = place(job)
        begun(job, folder, expected, rng)
        what = damage(folder, job.place(folder), rng)
        count("damage")
        outcome = call(job.words, folder)
        if outcome.code == 0:
            made = job.made(folder)
            for file, content in expected.made.items():
                assert made[file] == content, (what, file)
        elif not already_there(outcome):
            refused(outcome)
            assert "/" in outcome.err or job.out in outcome.err, (what, outcome)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", STUDIES)
def test_runs_of_a_study_are_done_again(name, whole, place, rng, count):
    job, expected = JOBS[name], whole(JOBS[name])
    folder = place(job)
    assert call(job.words, folder).code == 0
    for _ in range(STUDIES[name]):
        what = damage(folder, folder / job.out / "runs", rng)
        count("damage")
        outcome = call(job.words, folder)
        assert outcome.code == 0, (what, outcome)
        assert job.made(folder) == expected.made, what


@pytest.mark.timeout(900)
def test_a_whole_run_is_refused_by_all_that_read_it(whole, place, rng, count):
    job = JOBS["search"]
    whole(job)
    for life in range(12):
        folder = place(JOBS["report"])  # which has the run
        what = damage(folder, folder / "run", rng, ignored={CARD})  # for people
        count("damage")
        outcome = call(RUN_READERS[life % len(RUN_READERS)], folder)
        refused(outcome)
        assert "run/" in outcome.err, (what, outcome.err)


@pytest.mark.timeout(900)
def test_a_whole_store_is_refused_by_all_that_read_it(whole, place, rng, count):
    job, expected = JOBS["extract"], whole(JOBS["extract"])
    folder = place(job)
    assert call(job.words, folder).code == 0
    shutil.copytree(folder / "store", folder / "kept")
    fit = ("fit", "store", "--clusters", "2", "--steps", "5", "--out", "run", "-q")
    for life in range(10):
        shutil.rmtree(folder / "store")
        shutil.copytree(folder / "kept", folder / "store")
        shutil.rmtree(folder / "run", ignore_errors=True)
        what = damage(folder, folder / "store", rng)
        count("damage")
        outcome = call(fit if life % 2 else job.words, folder)
        if outcome.code == 0:
            assert job.made(folder) == expected.made, what
        else:
            refused(outcome)
            assert "store" in outcome.err, (what, outcome.err)
