"""Services as processes of their own, asked over a real socket."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import sagl

HOME = Path(sagl.__file__).parents[1]
ROOT = Path(__file__).parents[2]
STOPPED = "sagl: stopped"


@contextmanager
def serving(run, *options, **variables):
    """A service at a free port: its address and its process."""
    paths = os.pathsep.join([str(HOME), str(ROOT)])
    words = [sys.executable, "-m", "sagl", "serve", run, "--port", "0", *options]
    with subprocess.Popen(
        list(map(str, words)),
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            line = process.stdout.readline()
            assert " at http://" in line, line + process.stderr.read()
            yield line.split(" at ")[1].split(",")[0], process
        finally:
            process.kill()


def stopped(process, number=signal.SIGTERM):
    """The exit code and what was said on stderr."""
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    return process.returncode, said
