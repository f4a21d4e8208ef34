"""``sagl compare``: what its options mean, and what it refuses."""

import json
import subprocess
import sys
import time

import numpy as np
import pytest

from sagl.cli.main import run
from sagl.cli.studies import parse_methods
from tests.experiments.small_runs import run_in_this_process, write_split


def sagl(monkeypatch, capsys, *arguments):
    """Exit code, stdout and stderr of one command."""
    monkeypatch.setattr(sys, "argv", ["sagl", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        run()
    captured = capsys.readouterr()
    return end.value.code or 0, captured.out, captured.err


def test_param():
    texts = ["my.module:Toy:rate=0.5", "kmeans:name=a=b", "kmeans:n_init=null"]
    toy, kmeans = parse_methods("my.module:Toy,kmeans", texts, None, None, None)
    assert toy.params == {"rate": 0.5}
    assert kmeans.params == {"name": "a=b", "n_init": None}


def test_a_method_that_is_named_twice():
    with pytest.raises(ValueError, match="--methods: kmeans is given twice"):
        parse_methods("kmeans,gmm, kmeans", [], None, None, None)


@pytest.mark.parametrize("text", ["turtle", "steps=3", ":steps=3", "turtle:=3"])
def test_param_of_another_form(text):
    with pytest.raises(ValueError, match="expected METHOD:NAME=VALUE"):
        parse_methods("turtle", [text], None, None, None)


def test_methods_with_parameters_and_class_names(tmp_path):
    (tmp_path / "names.txt").write_text("cat\n\n dog \n")
    methods = {
        method.name: method.params
        for method in parse_methods(
            "sagl-i,zero-shot,kmeans",
            ["sagl-i:steps=7", "kmeans:n_init=1"],
            tmp_path / "names.txt",
            "clip-directory",
            None,
        )
    }
    assert methods["sagl-i"] == {"refine": False, "graph": "identity", "steps": 7}
    assert methods["kmeans"] == {"n_init": 1}
    assert methods["zero-shot"]["class_names"] == ["cat", "dog"]
    assert methods["zero-shot"]["text_encoder"] == "clip-directory"
    with pytest.raises(ValueError, match="'turtle' is not among the methods"):
        parse_methods("kmeans", ["turtle:steps=1"], None, None, None)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "nothing to compare on; give --data DIR, or --view and --labels"),
        (["--data", "x", "--view", "a=b.npy"], "give --data, or --view and --labels"),
        (["--data", "nowhere"], "nowhere: there is no directory train in it"),
        (["--data", "SPLIT", "--methods", "kmean"], "no method 'kmean'; there are"),
        (
            ["--data", "SPLIT", "--seeds", "0"],
            "seeds must be a whole number of at least 1; got 0",
        ),
        (
            ["--data", "SPLIT", "--jobs", "0"],
            "--jobs must be a whole number of at least 1",
        ),
        (["--data", "SPLIT", "--views", "x"], "there is no view 'x', only narrow"),
    ],
)
def test_bad_input_is_one_line(tmp_path, monkeypatch, capsys, arguments, line):
    split = write_split(tmp_path / "split")
    arguments = [split if a == "SPLIT" else a for a in arguments]
    out = tmp_path / "out"
    code, _, err = sagl(monkeypatch, capsys, "compare", *arguments, "--out", out)
    assert code == 2
    assert err.count("\n") == 1
    assert line in err
    assert not out.exists()


def test_prints_and_keeps_the_table(tmp_path, monkeypatch, capsys):
    run_in_this_process(monkeypatch)
    split, out = write_split(tmp_path / "split"), tmp_path / "out"
    np.save(split / "train" / "third.npy", np.zeros((60, 2)))  # not asked for
    options = ["--views", "wide,narrow", "--methods", "kmeans,linear-probe"]
    options += ["--seeds", "1"]
    code, shown, err = sagl(
        monkeypatch, capsys, "compare", "--data", split, *options, "--out", out
    )
    assert code == 0
    assert "k-means" in shown
    assert "linear probe (with labels)" in shown
    assert "[1/2] k-means, seed 0: ACC 1.000" in err
    assert "| k-means |" in (out / "table.md").read_text()
    assert (out / "table.csv").exists()
    code, shown, _ = sagl(
        monkeypatch,
        capsys,
        *("compare", "--data", split, *options, "--out", out, "--json", "--quiet"),
    )
    printed = json.loads(shown)
    assert printed["rows"][0]["mean"]["acc"] == 1
    assert printed["n_clusters"] == 3
    assert json.loads((out / "table.json").read_text())["rows"] == printed["rows"]


def test_a_killed_comparison_is_taken_up(tmp_path, monkeypatch, capsys):
    """Killed for good after its first run: the second time that run is not repeated."""
    split, out = write_split(tmp_path / "split"), tmp_path / "out"
    command = ["compare", "--data", split, "--out", out, "--methods", "kmeans"]
    command += ["--seeds", "2"]
    runs = out / "runs"
    process = subprocess.Popen(
        [sys.executable, "-m", "sagl", *command], stderr=subprocess.DEVNULL
    )
    while not list(runs.glob("kmeans-0-*.json")):
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    assert not (out / "table.md").exists()
    [first] = runs.glob("kmeans-0-*.json")
    before = first.stat().st_mtime_ns
    ran = run_in_this_process(monkeypatch)
    assert sagl(monkeypatch, capsys, *command)[0] == 0
    assert ("kmeans", 0) not in ran
    assert first.stat().st_mtime_ns == before
    assert sorted(path.suffix for path in runs.iterdir()) == [".json"] * 2
    table = json.loads((out / "table.json").read_text())
    assert table["rows"][0]["runs"] == 2
