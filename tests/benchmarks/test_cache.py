"""Kept runs: the same bytes for the same runs, and nothing lost between processes."""

import json
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import cache


def square(job):
    return {"value": job["n"] ** 2}


def refuse(job):
    raise AssertionError(f"{job} was measured before")


def add_one(table, n):
    cache.add(table, {json.dumps({"n": n}): {"value": n}})


def write_run(out, name, result):
    file = out / "pets" / "runs" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(result))


def test_what_was_measured_is_not_measured_again(tmp_path):
    table = tmp_path / "table.jsonl.gz"
    jobs = [{"n": n, "set": "pets"} for n in range(3)]
    expected = [{"n": n, "set": "pets", "value": n * n} for n in range(3)]
    assert cache.measure(jobs, square, table, 1) == expected
    assert cache.measure(jobs, refuse, table, 1) == expected
    for revision in ("another", None):
        with pytest.raises(AssertionError, match="was measured before"):
            cache.measure(jobs, refuse, table, 1, revision)


def test_nothing_is_begun_after_the_time(tmp_path):
    table = tmp_path / "table.jsonl.gz"
    first, second = {"n": 2}, {"n": 3}
    cache.measure([first], square, table, 1, minutes=1)
    done = cache.measure([first, second], refuse, table, 1, minutes=0)
    assert done == [{"n": 2, "value": 4}]


def test_the_same_runs_are_the_same_bytes(tmp_path):
    runs = {json.dumps({"n": n}): {"value": n} for n in range(5)}
    for name, order in (("a", list(runs)), ("b", list(runs)[::-1])):
        for key in order:
            cache.add(tmp_path / name, {key: runs[key]})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert cache.read(tmp_path / "a") == runs
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}


def test_processes_that_add_at_once_lose_nothing(tmp_path):
    table = tmp_path / "table.jsonl.gz"
    with ProcessPoolExecutor(4, get_context("fork")) as pool:
        list(pool.map(add_one, [table] * 40, range(40)))
    assert sorted(r["value"] for r in cache.read(table).values()) == list(range(40))


def test_runs_of_a_comparison_come_back(tmp_path):
    table = tmp_path / "table.jsonl.gz"
    write_run(tmp_path / "a", "sagl-paper-0-12ab.json", {"seconds": 1.5})
    write_run(tmp_path / "a", "kmeans-1-34cd.json", {"error": "killed"})
    cache.pack(tmp_path / "a", table)
    # What is there already may be newer than the table.
    write_run(tmp_path / "c", "sagl-paper-0-12ab.json", {"seconds": 2.5})
    for out, seconds in (("b", 1.5), ("c", 2.5)):
        cache.unpack(table, tmp_path / out)
        [file] = (tmp_path / out).glob("*/runs/*")
        assert file.relative_to(tmp_path / out).as_posix() == (
            "pets/runs/sagl-paper-0-12ab.json"
        )
        assert json.loads(file.read_text()) == {"seconds": seconds}


def test_the_kept_runs_can_be_read():
    runs = cache.read(cache.TABLES / "quality.jsonl.gz")
    keys = [json.loads(key) for key in runs]
    assert {"method", "set", "seed", "settings"} == set(keys[0])
    assert {"kmeans", "sagl", "turtle"} <= {key["method"] for key in keys}
    assert all("scores" in result for result in runs.values())
