"""``sagl ablate | sensitivity | combine | sweep``: from options to what is shown."""

import json

import pytest

from sagl.cli.studies import parse_ranges
from tests.experiments.small_runs import run_in_this_process, write_split

QUICK = ("--param", "steps=20", "--seeds", "1", "--param", "refine=false")
COMMANDS = {
    "ablate": (),
    "sensitivity": ("--gamma", "1,10", "--beta", "1", "--batch-size", "30,60"),
    "combine": ("--at-least", "1", "--max-views", "2"),
    "sweep": ("--clusters", "3", "--grid", "gamma=1,10"),
}
FILES = {
    "ablate": "accuracy.png",
    "sensitivity": "surface-acc.png",
    "combine": "combinations.png",
    "sweep": "sweep.png",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_shows_and_keeps(command, tmp_path, monkeypatch, sagl_cli):
    ran = run_in_this_process(monkeypatch)
    split, out = write_split(tmp_path / "split"), tmp_path / "out"
    options = ("--data", split, *COMMANDS[command], *QUICK, "--out", out)
    code, shown, err = sagl_cli(command, *options)
    assert code == 0, err
    assert "split: 3 clusters, 60 samples fitted; scored with labels on 30" in (
        " ".join(shown.split())
    )
    assert "score" in shown
    assert f"[{len(ran)}/{len(ran)}] " in err
    for name in ("table.md", "table.csv", "table.json", FILES[command]):
        assert (out / name).exists()
    before = len(ran)
    code, shown, err = sagl_cli(command, *options, "--json", "--quiet")
    assert code == 0
    assert err == ""
    assert len(ran) == before  # the same command takes up what is there
    printed = json.loads(shown)
    assert printed["command"] == command
    assert printed["protocol"] == "inductive"
    assert FILES[command] in printed["files"]
    kept = json.loads((out / "table.json").read_text())
    assert kept["rows"] == printed["rows"]


@pytest.mark.parametrize("command", COMMANDS)
def test_bad_input_is_one_line(command, tmp_path, sagl_cli):
    split, out = write_split(tmp_path / "split"), tmp_path / "out"
    clusters = COMMANDS[command][:4] if command == "sweep" else ()
    for options, line in (
        ((), "nothing to compare on"),
        (
            ("--data", split, "--jobs", "0"),
            "--jobs must be a whole number of at least 1; got 0",
        ),
        (
            ("--data", split, "--seeds", "0"),
            "seeds must be a whole number of at least 1; got 0",
        ),
        (("--data", split, "--param", "x=1"), "'x' cannot be set here"),
        (("--data", split, "--views", "x"), "there is no view 'x'"),
    ):
        code, _, err = sagl_cli(command, *clusters, *options, "--out", out)
        assert code == 2, err
        assert line in err
        assert err.count("\n") == 1
    assert not out.exists()


def test_ranges():
    assert parse_ranges(["gamma=1..50", "beta=0.1..1:linear", "dropout=0..0.5"]) == {
        "gamma": (1, 50, True),
        "beta": (0.1, 1, False),
        "dropout": (0, 0.5, False),
    }
    for bad in ("gamma", "gamma=1", "gamma=1..x", "gamma=1..2:log2", "=1..2"):
        with pytest.raises(ValueError, match=r"expected NAME=LOW\.\.HIGH"):
            parse_ranges([bad])
    with pytest.raises(ValueError, match="gamma is given twice"):
        parse_ranges(["gamma=1..2", "gamma=2..3"])


@pytest.mark.parametrize("minutes", ["-1", "nan", "inf"])
def test_minutes_that_are_none(tmp_path, sagl_cli, minutes):
    split = write_split(tmp_path / "split")
    code, _, err = sagl_cli(
        *("sweep", "--data", split, "--clusters", 3, "--grid", "gamma=0,1"),
        *("--minutes", minutes, "--out", tmp_path / "out"),
    )
    assert code == 2
    assert "--minutes must be at least 0 and finite" in err
    assert not (tmp_path / "out").exists()


def test_a_sweep_says_what_its_settings_do_not_decide(tmp_path, monkeypatch, sagl_cli):
    run_in_this_process(monkeypatch)
    split, out = write_split(tmp_path / "split"), tmp_path / "out"
    code, shown, err = sagl_cli(
        *("sweep", "--data", split, "--clusters", 3, "--grid", "gamma=0,1"),
        *("--seeds", 1, "--minutes", 0, "--out", out),
    )
    assert code == 0, err
    line = "gamma: of the paper's loss. Here a search finds the clusters"
    assert f"sagl: warning: {line}" in err
    assert line in " ".join(shown.split())
    assert line in (out / "table.md").read_text()
