"""Measured runs that survive an interruption: one compressed table per script.

A table is gzipped JSON lines, one per run, sorted by key and without a time: the same
runs are the same bytes. A key says what was measured (method, set, seed, settings) and
by which revision of the algorithm, so that a run of before a change is not taken for
one of today; the version of the package does not matter. Several processes may add to
a table: each waits for its turn, takes in what the others have added, and replaces the
file as a whole.
"""

from __future__ import annotations

import fcntl
import gzip
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from sagl._version import REVISION
from sagl.storage import replacing

Job = dict[str, Any]
TABLES = Path(__file__).parent / "runs"


def read(table: Path) -> dict[str, Job]:
    """Results by key, the key as JSON; none without a table."""
    if not table.exists():
        return {}
    lines = gzip.decompress(table.read_bytes()).decode().splitlines()
    entries = [json.loads(line) for line in lines]
    return {_text(entry["key"]): entry["result"] for entry in entries}


def add(table: Path, runs: Mapping[str, Job]) -> None:
    """Put runs into the table, in the place of those with the same key."""
    directory = os.open(table.parent, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        known = read(table)
        if all(known.get(key) == result for key, result in runs.items()):
            return
        merged = known | dict(runs)
        lines = [
            f'{{"key": {key}, "result": {_text(result)}}}\n'
            for key, result in sorted(merged.items())
        ]
        with replacing(table) as temporary:
            temporary.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
    finally:
        os.close(directory)  # and with it the lock


def measure(
    jobs: Iterable[Job],
    run: Callable[[Job], Job],
    table: Path,
    workers: int,
    revision: str | None = REVISION,
    minutes: float = math.inf,
) -> list[Job]:
    """Run each job that the table does not hold yet; return all results.

    Without a revision, jobs name it themselves where results depend on it. After so
    many ``minutes`` no job is begun; the results are those there are.
    """
    jobs = list(jobs)
    common = {} if revision is None else {"revision": revision}
    keys = [_text({**job, **common}) for job in jobs]
    known = read(table)
    deadline = time.time() + 60 * minutes
    with ProcessPoolExecutor(workers) as pool:
        running = {
            pool.submit(_in_time, run, job, deadline): (key, job)
            for key, job in zip(keys, jobs, strict=True)
            if key not in known
        }
        for future in as_completed(running):
            key, job = running[future]
            result = future.result()
            if result is None:
                continue
            known[key] = result
            add(table, {key: result})
            print(f"{len(known)}: {job} {result}", flush=True)
    done = [(job, key) for job, key in zip(jobs, keys, strict=True) if key in known]
    return [{**job, **known[key]} for job, key in done]


def _in_time(run: Callable[[Job], Job], job: Job, deadline: float) -> Job | None:
    return run(job) if time.time() < deadline else None


def unpack(table: Path, out: Path) -> None:
    """Write the runs of ``sagl compare`` where it looks for them, OUT/SET/runs.

    The last part of a file's name stands for settings, data and revision. Runs that
    are there already are left alone.
    """
    for text, result in read(table).items():
        key = json.loads(text)
        name = f"{key['method']}-{key['seed']}-{key['settings']}.json"
        file = out / key["set"] / "runs" / name
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(result), encoding="utf-8")


def pack(out: Path, table: Path) -> None:
    """Add the finished runs in OUT/SET/runs to the table."""
    runs = {}
    for file in out.glob("*/runs/*.json"):
        method, seed, settings = file.stem.rsplit("-", 2)
        place = file.parent.parent.name
        key = {"method": method, "set": place, "seed": int(seed), "settings": settings}
        result = json.loads(file.read_text(encoding="utf-8"))
        if "error" not in result:
            runs[_text(key)] = result
    add(table, runs)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
