"""Progress bars: on stderr alone, nested, cheap, and gone when done."""

import io
import sys
import time

import pytest
from rich.console import Console

from sagl import progress as module
from sagl.progress import progress


@pytest.fixture
def terminal(monkeypatch):
    """A terminal in the place of stderr that keeps what was drawn."""
    file = io.StringIO()

    def console(*, stderr):
        assert stderr
        return Console(
            file=file, force_terminal=True, width=120, _environ={"TERM": "xterm"}
        )

    monkeypatch.setattr(module, "Console", console)
    return file


def test_a_terminal_shows_description_count_unit_and_note(terminal, capsys):
    with progress(1000, "training", unit="step") as bar:
        bar.update(250)
        bar.note("loss [1.2]")
        time.sleep(0.8)  # the display is drawn twice a second
    drawn = terminal.getvalue()
    for text in ("training", "250/1000", "step", "loss [1.2]"):
        assert text in drawn
    assert capsys.readouterr().out == ""


def test_the_cursor_comes_back_even_after_an_error(terminal):
    with pytest.raises(KeyboardInterrupt), progress(10, "training"):
        raise KeyboardInterrupt
    assert terminal.getvalue().rfind("\x1b[?25h") > terminal.getvalue().rfind(
        "\x1b[?25l"
    )
    assert module._Drawn._shared is None


def test_nested_bars_share_the_display(terminal):
    with progress(2, "outer") as outer:
        with progress(3, "inner") as inner:
            inner.update(1)
            outer.update(1)
            time.sleep(0.8)
        assert module._Drawn._shared is not None
    assert module._Drawn._shared is None
    last = terminal.getvalue()
    assert "outer" in last
    assert "inner" in last


def test_an_outer_bar_may_end_before_an_inner_one(terminal):
    outer, inner = progress(2, "outer"), progress(3, "inner")
    outer.__enter__()
    bar = inner.__enter__()
    outer.__exit__(None, None, None)
    bar.update(1)
    bar.note("still here")
    inner.__exit__(None, None, None)
    assert module._Drawn._shared is None


def test_an_unknown_total_is_drawn(terminal):
    with progress(None, "reading", unit="files") as bar:
        bar.update(7)
        bar.note("")
        time.sleep(0.8)
    assert "7/?" in terminal.getvalue()


def test_stdout_keeps_what_is_printed_meanwhile(terminal, capsys):
    with progress(2, "outer"):
        sys.stdout.write("a result\n")
    assert capsys.readouterr().out == "a result\n"


def test_a_log_gets_a_line_at_the_end(capsys):
    with progress(1200, "training", unit="step") as bar:
        for _ in range(1200):
            bar.update(1)
        bar.note("loss 1.2")
    assert capsys.readouterr() == ("", "training: step 1,200 of 1,200, loss 1.2\n")


def test_a_log_gets_lines_now_and_then(capsys, monkeypatch):
    monkeypatch.setattr(module._Lines, "seconds", 0.0)
    with progress(2, "training") as bar:
        bar.update(1)
        bar.update(1)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["training: step 1 of 2", "training: step 2 of 2"]


def test_nothing_is_shown_if_not_wanted(terminal):
    with progress(10, "training", show=False) as bar:
        bar.update(1)
        bar.note("loss")
    assert terminal.getvalue() == ""


def test_the_display_is_not_touched_at_every_step(terminal, monkeypatch):
    touched = []
    monkeypatch.setattr(
        module.Progress, "update", lambda self, task, **_: touched.append(task)
    )
    start = time.monotonic()
    with progress(20_000, "training") as bar:
        for _ in range(20_000):
            bar.update(1)
    assert len(touched) <= (time.monotonic() - start) / module._REFRESH_SECONDS + 1


def test_a_notebook_gets_a_bar_that_goes(monkeypatch):
    shells = pytest.importorskip("IPython.core.interactiveshell")
    capture = pytest.importorskip("IPython.utils.capture")
    monkeypatch.setattr(
        module, "Console", lambda **_: Console(file=io.StringIO(), force_jupyter=True)
    )
    monkeypatch.setattr(module._Cell, "seconds", 0.0)
    shells.InteractiveShell.instance()
    try:
        with capture.capture_output() as seen, progress(1200, "training") as bar:
            bar.update(300)
            bar.note("loss <1>")
    finally:
        shells.InteractiveShell.clear_instance()
    shown = [output.data["text/html"] for output in seen.outputs]
    assert '<progress max="1200" value="0">' in shown[0]
    assert '<progress max="1200" value="300">' in shown[1]
    assert "training: step 300 of 1,200, loss &lt;1&gt;" in shown[2]
    assert shown[-1] == ""
    assert (seen.stdout, seen.stderr) == ("", "")
