"""Processes end with the one that started them, whatever they are doing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sagl
from sagl.processes import told_to_end

# The child says its number, then holds the interpreter for as long as it lives.
CHILD = """
import os, sys
from sagl.processes import end_with_parent
end_with_parent()
print(os.getpid(), flush=True)
{}
"""
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
BUSY = {
    "waiting": "import time; time.sleep(600)",
    "stuck": "10 ** 10 ** 9",
    "stopped": "import signal; os.kill(os.getpid(), signal.SIGSTOP)",
}


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("doing", BUSY)
def test_a_process_ends_with_its_parent(doing):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, CHILD.format(BUSY[doing])],
        env={**os.environ, "PYTHONPATH": str(Path(sagl.__file__).parents[1])},
        stdout=subprocess.PIPE,
        text=True,
    )
    child = int(parent.stdout.readline())
    time.sleep(0.2)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    status = Path(f"/proc/{child}/stat")
    until = time.monotonic() + 10
    while status.exists() and ") Z " not in status.read_text():
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            pytest.fail("the child lives on")
        time.sleep(0.05)


def test_sigterm_is_an_error():
    before = signal.getsignal(signal.SIGTERM)
    with (
        pytest.raises(ConnectionError, match="the same command takes up what was"),
        told_to_end(print),
        told_to_end(print),
    ):
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before


# Waits in a call of C from which Python does not come back to raise an error.
WAITING = """
import ctypes
import sagl.processes

sagl.processes._GRACE_SECONDS = 0.2
libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)
with sagl.processes.told_to_end(lambda why: print(why, flush=True)):
    libc.pthread_mutex_lock(mutex)
    print("waiting", flush=True)
    libc.pthread_mutex_lock(mutex)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="locks a mutex twice")
def test_sigterm_ends_what_waits_in_vain():
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING],
        env={**os.environ, "PYTHONPATH": str(Path(sagl.__file__).parents[1])},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "waiting\n"
        looks = 0  # at which it waits for the mutex, one after the other
        while looks < 5:
            time.sleep(0.05)
            place = Path(f"/proc/{process.pid}/wchan").read_text()
            looks = looks + 1 if "futex" in place else 0
        process.terminate()
        assert "the same command takes up what was done" in process.stdout.readline()
        assert process.wait(10) == 1
    finally:
        process.kill()
        process.stdout.close()
