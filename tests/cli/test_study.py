"""What the commands that run experiments share."""

import re
from types import SimpleNamespace

import pytest
import typer

from sagl.baselines import Method
from sagl.cli.study import (
    Running,
    _notes,
    find_data,
    fitting_widths,
    parse_pairs,
    parse_values,
    show_runs,
    show_study,
)
from sagl.experiments.compare import Comparison
from sagl.experiments.study import Study
from sagl.experiments.table import Row
from sagl.features.split import find_source
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


def test_columns_are_whole_or_broken_between_words_or_left_out():
    columns = [["method", "SAGL (paper)"], ["ACC", "0.912 ±0.003"], ["to TURTLE", "7"]]
    assert fitting_widths(columns, 40) == [13, 13, 10]
    assert fitting_widths(columns, 38) == [12, 6, 6]
    assert fitting_widths(columns, 22) == [7, 6, 6]
    assert fitting_widths(columns, 21) == [12, 6]
    assert fitting_widths(columns, 1) == [7, 6]


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
        return ["method", "ACC", "NMI", ""], [*lines, ["C", "1.0", "0.8", ""]]

    def heading(self):
        return "a heading"

    def sentences(self):
        return ["to use it: sagl fit"]


def test_rows_with_labels_are_apart_and_notes_stand_below(capsys):
    show_study(Shown(), ["table.md"])
    heading, _, columns, line, first, failed, rule, last, *rest = (
        text.rstrip() for text in capsys.readouterr().out.splitlines()
    )
    assert heading == "a heading"
    assert columns.split() == ["method", "ACC", "NMI"]
    assert first.split() == ["[A]", "0.9"]  # the best mean, without its marks
    assert set(line.strip()) == {"─"}
    assert failed == "B"
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
    with pytest.raises(ValueError, match="--jobs must be a whole number of at least 1"):
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


METHODS = ("k-means", "linear probe", "ICCE (ensemble of TEMI)")
ROWS = [
    Row(
        *(name, name, name == "linear probe", 2),
        mean={m: 0.9 for m in ("acc", "nmi", "ari", "ami", "score")},
        sd={m: 0.01 for m in ("acc", "nmi", "ari", "ami", "score")},
        clusters=3.0,
        seconds=1234.5,
        peak_mib=1500.0,
        to_kmeans_plus_10=12.5,
    )
    for name in METHODS
]


@pytest.mark.parametrize("width", [100, 80, 60])
def test_a_comparison_is_one_table_without_empty_columns(
    tmp_path, monkeypatch, capsys, width
):
    """Where the terminal is narrow, what is missing is named."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(Study, "rows", lambda self: ROWS)
    source = find_source(write_split(tmp_path / "split"))
    study = Comparison(source, [], tmp_path)
    show_study(study, ["table.md"])
    shown = capsys.readouterr().out
    lines = [line for line in shown.splitlines() if not line.startswith("kept in")]
    assert max(map(len, lines)) <= width
    assert sum(set(line) <= set("─ ") and "─" in line for line in lines) == 1
    assert "published" not in shown
    assert "TURTLE" not in shown
    assert study.columns.index("published") > 0  # it is one, where there are figures
    missing = re.search(r"in table.md alone: ([^\n]*)", shown)
    assert (missing is None) == (width > 60)
    words = shown.split()
    assert words.count("ACC") == words.count("NMI") == 1
    assert words.count("0.900") == 3 * 5
