"""Measurements that survive an interruption: one JSON line per finished run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

Job = dict[str, Any]


def measure(
    jobs: Iterable[Job], run: Callable[[Job], Job], cache: Path, workers: int
) -> list[Job]:
    """Run each job that the cache does not hold yet; return all results."""
    known = {}
    if cache.exists():
        for line in cache.read_text().splitlines():
            entry = json.loads(line)
            known[json.dumps(entry["job"], sort_keys=True)] = entry["result"]
    jobs = list(jobs)
    keys = [json.dumps(job, sort_keys=True) for job in jobs]
    open_jobs = [(k, j) for k, j in zip(keys, jobs, strict=True) if k not in known]
    with ProcessPoolExecutor(workers) as pool, cache.open("a") as file:
        running = {pool.submit(run, job): (key, job) for key, job in open_jobs}
        for future in as_completed(running):
            key, job = running[future]
            known[key] = future.result()
            file.write(json.dumps({"job": job, "result": known[key]}) + "\n")
            file.flush()
            print(f"{len(known)}: {job} {known[key]}", flush=True)
    return [{**job, **known[key]} for key, job in zip(keys, jobs, strict=True)]
