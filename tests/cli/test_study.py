"""What the commands that run experiments share."""

import io
from types import SimpleNamespace

import pytest
import typer
from rich.console import Console

from sagl.baselines import Method
from sagl.cli.study import (
    Running,
    _fitting,
    _notes,
    find_data,
    parse_params,
    parse_values,
    print_table,
    show_runs,
)
from sagl.experiments.table import Row
from tests.experiments.small_runs import write_split


def test_params():
    texts = ["steps=20", "gate=none", "refine=false", "normalize=null"]
    found = {"steps": 20, "gate": "none", "refine": False, "normalize": None}
    assert parse_params(texts) == found
    assert parse_params(None) == {}
    with pytest.raises(ValueError, match="--param steps: expected NAME=VALUE"):
        parse_params(["steps"])


def test_values():
    assert parse_values("--gamma", "1, 2.5,none") == [1, 2.5, "none"]
    with pytest.raises(ValueError, match=r"--gamma 1,,2: expected VALUE,VALUE"):
        parse_values("--gamma", "1,,2")


def test_columns_are_shared_out_by_width():
    columns = ["views", "ACC", "NMI", "a wider column", ""]
    lines = [["a + b", "[bold]0.9[/bold]", "0.8", "1", "note"]]
    assert _fitting(columns, lines, range(5), 1, 200) == [[0, 1, 2, 3, 4]]
    assert _fitting(columns, lines, range(5), 1, 20) == [[0, 1, 2], [0, 3], [0, 4]]
    assert _fitting(columns, lines, range(4), 1, 1) == [[0, 1], [0, 2], [0, 3]]


def test_lines_apart_make_a_section():
    out = io.StringIO()
    lines = [["a", "1"], ["b", ""], ["c", "3"]]
    console = Console(file=out, width=40)
    print_table(console, ["name", "x"], lines, (0, 1), apart=[False, False, True])
    text = out.getvalue()
    assert "a" in text
    assert "b" not in text.replace("name", "")  # nothing to say in these columns
    assert text.index("a ") < text.index("c ")


class Runs:
    """Something to run that ends as it is told."""

    total = 2

    def __init__(self, ending=None):
        self.ending = ending

    def run(self, *, jobs, minutes, progress):
        if self.ending is not None:
            raise self.ending


def test_an_interruption_says_how_to_go_on(capsys):
    with pytest.raises(typer.Exit) as end:
        Running(1, None, True, False).run(Runs(KeyboardInterrupt()))
    assert end.value.exit_code == 130
    assert "the same command takes up the rest" in capsys.readouterr().err


def test_jobs_are_checked():
    with pytest.raises(ValueError, match="--jobs must be at least 1; got 0"):
        Running(0, None, True, False).run(Runs())


def test_progress_has_what_is_known(capsys):
    task = SimpleNamespace(method=Method("a", "module:A"), seed=1)
    show = show_runs(2, quiet=False)
    show(task, {"scores": {"acc": 0.5}, "label_free": {"total": 2.0}, "seconds": 1.0})
    show(task, {"scores": {}, "label_free": {"total": 2.0}, "seconds": 1.0})
    show(task, {"error": "no"})
    show_runs(2, quiet=True)(task, {"error": "never shown"})
    assert capsys.readouterr().err.splitlines() == [
        "[1/2] a, seed 1: ACC 0.500 in 1.0 s",
        "[2/2] a, seed 1: score 2.000 in 1.0 s",
        "[3/2] a, seed 1: no",
    ]


def test_equal_notes_are_one_line():
    rows = [
        Row(n, n.upper(), False, 0, note=s) for n, s in zip("abc", "xyx", strict=True)
    ]
    assert _notes(rows) == ["A, C: x", "B: y"]


def test_single_files():
    source = find_data(None, None, ["a=x.npy"], None, ["a=y.npy"], None)
    assert source.train.views == ("a=x.npy",)
    assert source.scored.views == ("a=y.npy",)
    alone = find_data(None, None, ["a=x.npy"], "labels.npy", None, None)
    assert alone.test is None
    assert alone.scored.labels == "labels.npy"


def test_a_directory_and_some_of_its_views(tmp_path):
    directory = write_split(tmp_path / "split")
    source = find_data(directory, "wide, narrow", None, None, None, None)
    assert source.train.names == source.scored.names == ("wide", "narrow")
    with pytest.raises(ValueError, match="not both"):
        find_data(directory, None, ["a=x.npy"], None, None, None)
    with pytest.raises(ValueError, match="nothing to compare on"):
        find_data(None, None, None, None, None, None)
