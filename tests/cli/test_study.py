"""What the commands that run experiments share."""

from types import SimpleNamespace

import pytest
import typer
from rich.text import Text

from sagl.baselines import Method
from sagl.cli.study import (
    Running,
    _fitting,
    _notes,
    find_data,
    parse_pairs,
    parse_values,
    show_runs,
    show_study,
)
from sagl.experiments.table import Row
from tests.experiments.small_runs import write_split


def test_pairs():
    assert parse_pairs("--param", ["steps=20", " gate =a=b"]) == {
        "steps": "20",
        "gate": "a=b",
    }
    assert parse_pairs("--param", None) == {}
    for bad in ("steps", "=20"):
        with pytest.raises(ValueError, match=f"--param {bad}: expected NAME=VALUE"):
            parse_pairs("--param", [bad])
    with pytest.raises(ValueError, match="--grid a=2: a is given twice"):
        parse_pairs("--grid", ["a=1", "a=2"])


def test_values():
    expected = [1, 2.5, "none", False, None]
    assert parse_values("--gamma", "1, 2.5,none,false,null") == expected
    with pytest.raises(ValueError, match=r"--gamma 1,,2: expected VALUE,VALUE"):
        parse_values("--gamma", "1,,2")


def test_columns_are_shared_out_by_width():
    columns = ["views", "ACC", "NMI", "a wider column", ""]
    cells = [[Text(text) for text in ("a + b", "0.9", "0.8", "1", "note")]]
    places = range(1, 5)
    assert _fitting(columns, cells, places, 1, 200) == [[1, 2, 3, 4]]
    assert _fitting(columns, cells, places, 1, 20) == [[1, 2], [3], [4]]
    assert _fitting(columns, cells, [1, 2, 3], 1, 1) == [[1], [2], [3]]


class Shown:
    """A study with three rows, of which the last used labels."""

    command = "compare"
    columns = ("ACC", "NMI", "")
    out = "out"

    def rows(self):
        return [
            Row("a", "[A]", False, 2),
            Row("b", "B", False, 0, note="failed"),
            Row("c", "C", True, 1),
        ]

    def table(self):
        lines = [["[A]", "**0.9**", "", ""], ["B", "", "", "failed"]]
        return ["method", "ACC", "NMI", ""], [*lines, ["C", "1.0", "0.8", ""]], 1

    def heading(self):
        return "a heading"

    def sentences(self):
        return ["to use it: sagl fit"]


def test_rows_with_labels_are_apart_and_notes_stand_below(capsys):
    show_study(Shown(), ["table.md"])
    heading, _, columns, line, first, rule, last, *rest = (
        text.rstrip() for text in capsys.readouterr().out.splitlines()
    )
    assert heading == "a heading"
    assert columns.split() == ["method", "ACC", "NMI"]
    assert first.split() == ["[A]", "0.9"]  # the best mean, without its marks
    assert set(line.strip()) == {"─"}
    assert rule.strip() == ""
    assert last.split() == ["C", "1.0", "0.8"]
    said = [text for text in rest if text]
    assert said == ["B: failed", "to use it: sagl fit", "kept in out: table.md"]


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
        Running(jobs=0)


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
