"""Commands as processes that faults can be done to.

Each is the real command line, ``sagl.cli.main.run``, in a process of its own with its
own exit code, output and signals; it is forked from one that has imported everything,
so that hundreds of them take minutes. Faults strike from outside, after so many
seconds, or from inside, at the n-th time that a file is opened for writing, renamed,
removed or made to last: that is where halves could be left.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import NamedTuple

from sagl.processes import end_with_parent

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.faults.warm"])
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EVENTS = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate"}
SECONDS = 120  # no command takes so long


class Outcome(NamedTuple):
    """How a command ended: negative codes are signals."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.err.splitlines()


@dataclass(frozen=True)
class Fault:
    """What is to happen at the n-th event below a directory, counted from 1.

    A signal is sent; an error is raised then and ever after, as when a disk is full.
    """

    below: Path
    at: int
    signal: int = 0
    error: int = 0


@dataclass
class Running:
    """A command that has been started."""

    process: multiprocessing.Process
    outputs: Path
    began: float = field(default_factory=time.monotonic)

    def strike(self, number: int, *, everybody: bool = False) -> None:
        """Send a signal, to all of its processes as a terminal does, or to the first.

        It may have ended before.
        """
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if everybody else os.kill)(self.process.pid, number)

    def halted(self) -> bool:
        """Whether it was stopped by a signal."""
        return _state(self.process.pid)[0] == "T"

    def children(self) -> list[int]:
        """The processes that its threads have started, in order."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return sorted(int(one) for task in tasks for one in task.read_text().split())

    def ended(self) -> Outcome:
        """Wait for it, and for all that it has started."""
        self.process.join(SECONDS)
        code = self.process.exitcode
        if code is None:
            self.strike(signal.SIGKILL, everybody=True)
            raise TimeoutError(f"the command took more than {SECONDS} s")
        until = time.monotonic() + 15
        while _lives(self.process.pid):
            if time.monotonic() > until:
                self.strike(signal.SIGKILL, everybody=True)
                raise TimeoutError("a process that it started lives on")
            time.sleep(0.01)
        texts = [(self.outputs / f".{n}").read_text(errors="replace") for n in _OUTPUT]
        return Outcome(code, *texts)


_OUTPUT = {"out": 1, "err": 2}
STARTED: list[Running] = []  # by this test


def start(
    words,
    folder: Path,
    fault: Fault | None = None,
    outputs: Path | None = None,
    **setting,
) -> Running:
    """Start a command in a folder; for ``setting`` see ``_prepare``.

    What it prints goes to ``outputs``, by default the same folder.
    """
    words, outputs = [str(word) for word in words], outputs or folder
    begun = CONTEXT.Event()
    arguments = (words, str(folder), str(outputs), fault, setting, begun)
    process = CONTEXT.Process(target=_command, args=arguments)
    process.start()
    begun.wait(SECONDS)  # what strikes before is no matter of the command
    STARTED.append(Running(process, outputs))
    return STARTED[-1]


def call(words, folder: Path, fault: Fault | None = None, **setting) -> Outcome:
    """Run a command to its end."""
    return start(words, folder, fault, **setting).ended()


def events_of(words, folder: Path, below: Path) -> tuple[Outcome, int, float]:
    """The same undisturbed; how many events there were, and how long it took."""
    running = start(words, folder, Fault(below, 1 << 60))
    outcome = running.ended()
    seconds = time.monotonic() - running.began
    return outcome, len((folder / ".events").read_text()), seconds


def wait_until(there: Callable[[], object]) -> None:
    """Look until it is so."""
    until = time.monotonic() + SECONDS
    while not there():
        assert time.monotonic() < until, "it did not come so far"
        time.sleep(0.02)


def _lives(group: int) -> bool:
    """Whether any process of the group is there; dead ones are not."""
    numbers = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    states = [_state(number) for number in numbers]
    return any(of == group and state not in "ZX" for state, of in states)


def _state(number: int) -> tuple[str, int]:
    """What a process is doing, as one letter, and its group."""
    try:
        status = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return "X", 0
    state, _, group = status.rpartition(")")[2].split()[:3]
    return state, int(group)


def _command(
    words: list[str],
    folder: str,
    outputs: str,
    fault: Fault | None,
    setting: dict,
    begun: Event,
) -> None:
    """What the new process does: the command line, and nothing else."""
    assert "sagl.report.page" in sys.modules, "nothing was imported before the fork"
    os.setpgid(0, 0)
    os.chdir(folder)
    for name, number in _OUTPUT.items():
        path = Path(outputs, f".{name}")
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
        os.close(file)
    # As where the command line is started, and not forked from a server.
    multiprocessing.set_start_method("fork", force=True)
    _make_small()
    _prepare(**setting)
    if fault is not None:
        _arm(fault)
    from sagl.cli.main import run
    from sagl.experiments import fit

    fit.subprocess = Forking
    sys.argv = ["sagl", *words]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    begun.set()
    run()


def _make_small() -> None:
    """Few starts of a search, small pieces, a checkpoint whenever there may be one."""
    from sagl import SAGL
    from sagl.features import store_write

    search = {"starts": 2, "proposals": 16, "steps": 10}
    SAGL.__init__.__kwdefaults__ |= {"checkpoint_seconds": 0.0, "search": search}
    store_write._PIECE_ROWS, store_write._FILES = 16, 3


def _prepare(permissions: bool = False, clock: float = 0) -> None:
    """Whether root obeys permissions, and by how many seconds the clock goes wrong."""
    if permissions:
        obey_permissions()
    if clock:
        right, turns = time.time, iter(range(1, 1 << 60))
        time.time = lambda: right() + clock * (-1) ** next(turns)


def obey_permissions() -> None:
    """Take from this process what lets root write where nobody may (Linux)."""
    import ctypes

    libc = ctypes.CDLL(None)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0
    sets[0] &= ~0b110  # of those in effect: CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    assert libc.capset(header, sets) == 0


def _arm(fault: Fault) -> None:
    """Count events of this process, and strike; each leaves a byte in ``.events``."""
    below, own = str(fault.below), os.getpid()
    log = os.open(".events", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    sync, lock, count = os.fsync, threading.Lock(), 0

    def happens(path: object) -> None:
        nonlocal count
        if not isinstance(path, str | bytes | os.PathLike) or os.getpid() != own:
            return
        if not str(Path.cwd() / os.fsdecode(path)).startswith(below):
            return
        with lock:
            count += 1
            now = count
        os.write(log, b".")
        if fault.signal and now == fault.at:
            os.kill(own, fault.signal)
        if fault.error and now >= fault.at:
            raise OSError(fault.error, os.strerror(fault.error), os.fsdecode(path))

    def audit(event: str, arguments: tuple) -> None:
        if event == "open":
            path, mode, flags = arguments
            writes = set(mode or "") & set("wax+") or (flags or 0) & _WRITING
            if writes:
                happens(path)
        elif event in _EVENTS and not (fault.error and "remove" in event):
            happens(arguments[0])

    def syncing(handle: int) -> None:
        happens(Path(f"/proc/self/fd/{handle}").readlink())
        sync(handle)

    os.fsync = syncing
    sys.addaudithook(audit)


class Forking:
    """``subprocess`` for runs of a study, which are forked instead of started.

    With what they are to read in memory: were it a pipe, a fork of another thread at
    the same time would hold it open, and each of the two wait for the other to end.
    """

    PIPE, TimeoutExpired = subprocess.PIPE, subprocess.TimeoutExpired

    class Popen:
        def __init__(self, words, *, env, stdin, stdout, stderr, text) -> None:
            assert words[1:3] == ["-m", "sagl.experiments.fit"]
            self.returncode: int | None = None
            self._begin = (words[3:], stdout.fileno(), env)
            self._pid = 0

        def poll(self) -> int | None:
            if self._pid and self.returncode is None:
                pid, status = os.waitpid(self._pid, os.WNOHANG)
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
            return self.returncode

        def communicate(self, order, timeout) -> None:
            if not self._pid:
                self._pid = os.fork()
                if self._pid == 0:
                    _run_of_study(order, *self._begin)
            until = time.monotonic() + timeout
            while self.poll() is None:
                if time.monotonic() > until:
                    raise subprocess.TimeoutExpired("run", timeout)
                time.sleep(0.005)

        def kill(self) -> None:
            os.kill(self._pid, signal.SIGKILL)

        def wait(self) -> int | None:
            while self.poll() is None:
                time.sleep(0.005)
            return self.returncode


def _run_of_study(
    order: str, words: list[str], output: int, env: dict[str, str]
) -> None:
    code = 1
    end_with_parent(int(words[1]))
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ.update(env)
        sys.stdin = io.StringIO(order)
        from sagl.experiments.fit import main

        main(words[0])
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
