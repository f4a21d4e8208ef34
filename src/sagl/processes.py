"""Processes that belong together: none outlives the one that it works for."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Thread
from typing import NoReturn

TOLD = (
    "ended by SIGTERM, perhaps because another process of this job has died; the same "
    "command takes up what was done"
)
_SET_DEATH_SIGNAL = 1  # of prctl
_GRACE_SECONDS = 5.0

_listening = False


def end_with_parent(parent: int | None = None) -> None:
    """End this process when the one that started it ends, in whatever way.

    On Linux the kernel does it at once, even to a process that is stuck or stopped.
    Who knows the number of the ``parent`` says so: it may have ended before.
    """
    parent = os.getppid() if parent is None else parent
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def end_with_torchrun(environment: Mapping[str, str] = os.environ) -> None:
    """The same, if it was torchrun that started this process."""
    if "TORCHELASTIC_RUN_ID" in environment:
        end_with_parent()


@contextmanager
def told_to_end(say: Callable[[str], None]) -> Iterator[None]:
    """SIGTERM, by which torchrun ends the others when one has died, is an error.

    Python raises it when it gets to. In a call that waits for another process it does
    not, so some seconds later the process says why, and ends all the same.
    """
    global _listening
    if _listening or threading.current_thread() is not threading.main_thread():
        yield
        return
    _listening = True
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    raised = threading.Event()

    def fail(*_: object) -> NoReturn:
        raised.set()
        raise ConnectionError(TOLD)

    before = signal.signal(signal.SIGTERM, fail)
    woken = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    Thread(target=_end_in_vain, args=(reading, raised, say), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(woken)
        signal.signal(signal.SIGTERM, before)
        os.close(writing)
        _listening = False


def _end_in_vain(
    reading: int, raised: threading.Event, say: Callable[[str], None]
) -> None:
    """Read the numbers of signals as they come, until nobody listens any more."""
    while number := os.read(reading, 1):
        if number[0] == signal.SIGTERM and not raised.wait(_GRACE_SECONDS):
            say(TOLD)
            os._exit(1)
    os.close(reading)
