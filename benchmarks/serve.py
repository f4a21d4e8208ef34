"""How fast is a service, and does its memory stay flat? Load on loopback alone.

    python benchmarks/serve.py
    python benchmarks/serve.py --seconds 2 --flat 2000

A default run of two views (768 and 512 columns, 30 clusters, 3,000 generated samples)
is served by ``sagl serve`` on 127.0.0.1 at a free port, and asked
by 1, 8 and 32 clients for 1 and for 100 rows at a time, as JSON and as tensors, each
for some seconds. Printed are requests and samples per second, and the 50th and 99th
percentile of the time from sending a request to the end of its answer. Clients are
threads of this program, on the same machine: they take time from the service.

Then 50,000 requests of one row, and the memory of the service (RSS) before, in between
and after: it is flat if it grows by less than 5 % after the first tenth.

Nothing is sent to another address, and all of it ends after --most-seconds.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from sagl import SAGL

HOST = "127.0.0.1"
WIDTHS = {"a": 768, "b": 512}
CLIENTS, ROWS = (1, 8, 32), (1, 100)
FLAT = 1.05


class Client:
    """A connection that stays open."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection(HOST, port, timeout=60)

    def ask(self, path: str, body: bytes, media_type: str) -> float:
        """The seconds that an answer took."""
        start = time.perf_counter()
        headers = {"Content-Type": media_type}
        self.connection.request("POST", path, body, headers)
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{answer.status}: {content.decode()[:200]}")
        return time.perf_counter() - start

    def memory(self) -> float:
        """The memory that the service holds now, in MiB."""
        self.connection.request("GET", "/metrics")
        text = self.connection.getresponse().read().decode()
        found = re.search(r"^process_resident_memory_bytes (\S+)", text, re.MULTILINE)
        if found is None:
            raise SystemExit("the service does not say how much memory it holds")
        return float(found[1]) / (1 << 20)


def generated(n: int, clusters: int, seed: int) -> dict[str, np.ndarray]:
    """Views in which the same clusters show."""
    rng, views = np.random.default_rng(seed), {}
    centres = np.random.default_rng(0)
    labels = rng.integers(0, clusters, size=n)
    for name, width in WIDTHS.items():
        means = centres.normal(size=(clusters, width))
        views[name] = (means[labels] + rng.normal(size=(n, width))).astype(np.float32)
    return views


@contextmanager
def serving(run: Path, threads: int) -> Iterator[int]:
    words = [sys.executable, "-m", "sagl", "serve", str(run), "--host", HOST]
    words += ["--port", "0", "--threads", str(threads), "--max-requests", "64"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            yield int(re.search(r":(\d+), Ctrl-C", line)[1])  # type: ignore[index]
        finally:
            process.terminate()


def bodies(views: dict[str, np.ndarray], rows: int) -> list[tuple[str, bytes, str]]:
    """The same rows in both forms: path, body, type."""
    cut = {name: np.ascontiguousarray(array[:rows]) for name, array in views.items()}
    text = json.dumps({"views": {name: a.tolist() for name, a in cut.items()}})
    return [
        ("/predict", text.encode(), "application/json"),
        ("/predict/tensors", save(cut), "application/octet-stream"),
    ]


def load(
    port: int, clients: int, body: tuple[str, bytes, str], seconds: float
) -> tuple[float, np.ndarray]:
    """Requests per second, and the seconds that each of them took."""
    end = time.perf_counter() + seconds

    def ask(_: int) -> list[float]:
        client, times = Client(port), []
        while time.perf_counter() < end:
            times.append(client.ask(*body))
        return times

    start = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        times = np.concatenate(list(pool.map(ask, range(clients))))
    return len(times) / (time.perf_counter() - start), times


def flat(
    port: int, body: tuple[str, bytes, str], count: int, end: float
) -> tuple[int, list[float]]:
    """How many of so many requests were made, and the memory after each tenth."""
    measured = Client(port)
    memory, done = [measured.memory()], 0
    each = max(1, count // 10 // 8)

    def ask(_: int) -> int:
        client = Client(port)
        for made in range(each):
            if time.perf_counter() > end:
                return made
            client.ask(*body)
        return each

    with ThreadPoolExecutor(8) as pool:
        for _ in range(10):
            done += sum(pool.map(ask, range(8)))
            memory.append(measured.memory())
    return done, memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--seconds", type=float, default=10, help="per row of the table"
    )
    parser.add_argument("--flat", type=int, default=50_000, help="requests, for memory")
    parser.add_argument("--most-seconds", type=float, default=1200)
    parser.add_argument("--threads", type=int, default=1, help="of the service")
    parser.add_argument("--samples", type=int, default=3000)
    parser.add_argument("--clusters", type=int, default=30)
    options = parser.parse_args()
    end = time.perf_counter() + options.most_seconds
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        model = SAGL(options.clusters, random_state=0)
        model.fit(generated(options.samples, options.clusters, 1)).save(run)
        new = generated(max(ROWS), options.clusters, 2)
        with serving(run, options.threads) as port:
            Client(port).ask(*bodies(new, 1)[0])  # what is loaded on first use
            print(
                "| body | rows | clients | requests/s | samples/s | p50 ms | p99 ms |"
            )
            print("|---|---|---|---|---|---|---|")
            for rows in ROWS:
                for body in bodies(new, rows):
                    for clients in CLIENTS:
                        seconds = min(options.seconds, end - time.perf_counter())
                        if seconds <= 0:
                            raise SystemExit("--most-seconds are over")
                        rate, times = load(port, clients, body, seconds)
                        p50, p99 = np.percentile(times, [50, 99]) * 1e3
                        form = body[2].partition("/")[2]
                        print(
                            f"| {form} | {rows} | {clients} | {rate:,.0f} | "
                            f"{rate * rows:,.0f} | {p50:.1f} | {p99:.1f} |",
                            flush=True,
                        )
            done, memory = flat(port, bodies(new, 1)[0], options.flat, end)
    steps = ", ".join(f"{value:.0f}" for value in memory)
    growth = memory[-1] / memory[1]
    verdict = "flat" if growth < FLAT else "NOT flat"
    print(
        f"\nMiB over {done:,} requests: {steps}; × {growth:.3f} after the first tenth,"
    )
    print(f"which is {verdict} (limit {FLAT})")


if __name__ == "__main__":
    main()
