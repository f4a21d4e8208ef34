"""``sagl refit``: corrections from files, what is told of them, what is refused."""

import json

import numpy as np
import pytest

from sagl import SAGL
from sagl.run import run_checksum


@pytest.fixture
def views(fitted):
    return [f"--view={name}={fitted / name}.npy" for name in ("wide", "narrow")]


def written(path, run, **corrections):
    content = {"format": "sagl-corrections", "version": 1, "run": run_checksum(run)}
    path.write_text(json.dumps(content | corrections))
    return path


def test_corrections_are_kept_told_and_left_out_of_scores(
    sagl_cli, fitted, views, tmp_path
):
    run, out = fitted / "run", tmp_path / "run2"
    labels = SAGL.load(run).labels_
    other = (int(labels[3]) + 1) % 4
    file = written(tmp_path / "c.json", run, labels={"3": other}, wrong=["5"])
    line = ("refit", run, *views, "--corrections", file, "--out", out)
    code, text, err = sagl_cli(*line)
    assert code == 0, err
    assert "2 corrections: 1 label, 1 marked as wrong" in text
    new = SAGL.load(out)
    assert new.labels_[3] == other
    assert new.labels_[5] != labels[5]
    assert (out / "graph.npz").exists()
    code, text, _ = sagl_cli("info", out, "--json")
    told = json.loads(text)["corrections"]
    assert told["labels"] == [[3, other]]
    assert told["given"]["wrong"] == 1
    assert "2 corrections" in sagl_cli("info", out)[1]
    truth = f"--labels={fitted / 'labels.npy'}"
    code, text, _ = sagl_cli("evaluate", out, *views, truth)
    assert code == 0
    assert "2 samples were corrected by people and are left out" in text
    assert sagl_cli(*line)[0] == 2  # the run is there


def test_what_the_explorer_exports_is_read(sagl_cli, fitted, views, tmp_path):
    run, out = fitted / "run", tmp_path / "run2"
    content = {"format": "sagl-names", "version": 1, "run": run_checksum(run)}
    content |= {"clusters": {"0": "cats"}, "wrong": [{"row": 7, "sample": "7"}]}
    (tmp_path / "names.json").write_text(json.dumps(content))
    line = ("--corrections", tmp_path / "names.json", "--out", out, "--json")
    code, text, err = sagl_cli("refit", run, *views, *line)
    assert code == 0, err
    assert json.loads(text)["names"] == {"0": "cats"}
    assert SAGL.load(out).names_ == {0: "cats"}


def test_views_are_taken_from_where_the_run_has_them(sagl_cli, fitted, tmp_path):
    from sagl.features.store import write_view

    ids = [f"s{row}" for row in range(240)]
    for name in ("wide", "narrow"):
        write_view(tmp_path / "store", name, ids, np.load(fitted / f"{name}.npy"))
    run, out = tmp_path / "run", tmp_path / "run2"
    fit = ("fit", tmp_path / "store", "--clusters", 4, "--steps", 20, "--out", run)
    assert sagl_cli(*fit, "--quiet")[0] == 0
    file = written(tmp_path / "c.json", run, must_link=[["s1", "s2", "s3"]])
    code, _, err = sagl_cli("refit", run, "--corrections", file, "--out", out)
    assert code == 0, err
    new = SAGL.load(out)
    cluster = dict(zip(new.ids_, new.labels_, strict=True))
    assert cluster["s1"] == cluster["s2"] == cluster["s3"]
    # It knows where its features are, so that it can be corrected again.
    file = written(tmp_path / "d.json", out, wrong=["s9"])
    code, _, err = sagl_cli(
        "refit", out, "--corrections", file, "--out", tmp_path / "run3"
    )
    assert code == 0, err


@pytest.mark.parametrize(
    ("corrections", "error"),
    [
        ({}, "there is nothing to correct in it"),
        ({"labels": {"x": 1}}, "no sample 'x'"),
        ({"cannot_link": [["1", "2"]], "must_link": [["2", "1"]]}, "to be apart, but"),
        ({"labels": {"1": [2]}}, "labels.1 is a list"),
    ],
)
def test_bad_corrections_are_one_line(
    sagl_cli, fitted, views, tmp_path, corrections, error
):
    file = written(tmp_path / "c.json", fitted / "run", **corrections)
    out = tmp_path / "run2"
    line = ("refit", fitted / "run", *views, "--corrections", file, "--out", out)
    code, _, err = sagl_cli(*line)
    assert code == 2
    assert error in err
    assert str(file) in err
    assert err.count("\n") == 1
    assert not out.exists()


def test_a_run_that_does_not_know_its_views_needs_them(sagl_cli, fitted, tmp_path):
    file = written(tmp_path / "c.json", fitted / "run", wrong=["1"])
    line = ("refit", fitted / "run", "--corrections", file, "--out", tmp_path / "r")
    code, _, err = sagl_cli(*line)
    assert code == 2
    assert "give those of the fit with --view" in err
