"""Progress bars: drawn in a terminal or a notebook, plain lines in a log."""

from __future__ import annotations

import atexit
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from importlib import import_module
from threading import Lock

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

__all__ = ["Bar", "progress"]

# Between two looks at the display, so that steps of a millisecond are not slowed.
_REFRESH_SECONDS = 0.1
_CELL_SECONDS = 0.5  # in a notebook, which may be far away
_LINE_SECONDS = 30.0  # between two lines of a log


class Bar:
    """Counts what is done. This one shows nothing."""

    def update(self, count: int = 1) -> None:
        """So many more are done."""

    def note(self, text: str) -> None:
        """Words after the bar, such as the loss; they stay until the next ones."""

    def close(self) -> None:
        """Take the bar away."""


@contextmanager
def progress(
    total: int | None, description: str, unit: str = "step", show: bool = True
) -> Iterator[Bar]:
    """A bar for as long as the block runs; bars of nested blocks stand below it.

    A log gets a line every half minute, and one at the end.

    Parameters
    ----------
    total : int or None
        How many there are, if it is known.
    description : str
    unit : str, default="step"
        What is counted.
    show : bool, default=True

    Examples
    --------
    >>> from sagl.progress import progress
    >>> with progress(3, "training", show=False) as bar:
    ...     for loss in (1.5, 1.2, 1.1):
    ...         bar.update(1)
    ...         bar.note(f"loss {loss}")
    """
    bar = _open(total, description, unit) if show else Bar()
    try:
        yield bar
    finally:
        bar.close()


def _open(total: int | None, description: str, unit: str) -> Bar:
    console = Console(stderr=True)
    if console.is_jupyter:
        return _Cell(console, total, description, unit)
    shown = _Drawn if console.is_interactive else _Lines
    return shown(console, total, description, unit)


class _Shown(Bar):
    """Shows what it counts, no more often than every so many seconds."""

    seconds: float

    def __init__(
        self, console: Console, total: int | None, description: str, unit: str
    ) -> None:
        self._console, self._total = console, total
        self._description, self._unit = description, unit
        self._done = 0
        self._note = ""
        self._lock = Lock()
        self._next = time.monotonic() + self.seconds
        self._start()

    def update(self, count: int = 1) -> None:
        with self._lock:
            self._done += count
            now = time.monotonic()
            if now >= self._next:
                self._next = now + self.seconds
                self._show()

    def note(self, text: str) -> None:
        self._note = text
        self._show()

    def _words(self) -> str:
        of = "" if self._total is None else f" of {self._total:,}"
        note = f", {self._note}" if self._note else ""
        return f"{self._description}: {self._unit} {self._done:,}{of}{note}"

    def _start(self) -> None:
        """Begin to show it."""

    def _show(self) -> None:
        raise NotImplementedError


class _Lines(_Shown):
    """Lines of plain text."""

    seconds = _LINE_SECONDS

    def note(self, text: str) -> None:
        self._note = text  # for the next line

    def _show(self) -> None:
        words = self._words()
        self._console.print(words, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        if self._done:  # an error at once needs no line
            self._show()


class _Cell(_Shown):
    """A bar below the cell of a notebook, as browsers draw them; gone when done.

    rich would need ipywidgets for it.
    """

    seconds = _CELL_SECONDS

    def _start(self) -> None:
        ipython = import_module("IPython.display")
        self._html = ipython.HTML
        self._handle = ipython.display(self._html(self._bar()), display_id=True)

    def _bar(self) -> str:
        known = self._total is not None
        share = f' max="{self._total}" value="{self._done}"' if known else ""
        return f"<label><progress{share}></progress> {escape(self._words())}</label>"

    def _show(self) -> None:
        self._handle.update(self._html(self._bar()))

    def close(self) -> None:
        self._handle.update(self._html(""))


class _Drawn(_Shown):
    """One line of the display that all bars share: a console has room for one."""

    seconds = _REFRESH_SECONDS
    _shared: Progress | None = None
    _sharing = Lock()

    def _start(self) -> None:
        with _Drawn._sharing:
            if _Drawn._shared is None:
                _Drawn._shared = _new_display(self._console)
                _Drawn._shared.start()
                atexit.register(_Drawn._shared.stop)  # shows the cursor again
            self._display = _Drawn._shared
            self._task = self._display.add_task(
                self._description, total=self._total, unit=self._unit, note=""
            )

    def _show(self) -> None:
        self._display.update(self._task, completed=self._done, note=self._note)

    def close(self) -> None:
        with _Drawn._sharing:
            self._display.remove_task(self._task)
            if not self._display.tasks:
                self._display.stop()
                atexit.unregister(self._display.stop)
                _Drawn._shared = None


def _new_display(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=console,
        transient=True,
        refresh_per_second=2,  # drawing takes a few milliseconds from the training
        redirect_stdout=False,  # it would move what is printed to stderr
    )
