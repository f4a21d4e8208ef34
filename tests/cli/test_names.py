"""``sagl names``: what is set, read back, found and kept."""

import json
import shutil

import pytest

from sagl import SAGL
from sagl.clusters.names import read_names
from sagl.run import run_checksum


@pytest.fixture
def run(fitted, tmp_path):
    shutil.copytree(fitted / "run", tmp_path / "run")
    return tmp_path / "run"


def names_in(sagl_cli, run, *more):
    code, out, err = sagl_cli("names", run, *more, "--json")
    assert code == 0, err
    return {row["cluster"]: row["name"] for row in json.loads(out)["names"]}


def test_names_are_set_and_samples_marked_as_wrong_stay(sagl_cli, run):
    content = {"format": "sagl-names", "version": 1, "run": run_checksum(run)}
    content |= {"clusters": {"0": "old"}, "wrong": [{"row": 7, "sample": "7"}]}
    (run / "names.json").write_text(json.dumps(content))
    names = names_in(sagl_cli, run, "--set", "2=big = dogs")
    assert names[0] == "old"
    assert names[2] == "big = dogs"
    kept = read_names(run / "names.json", run_checksum(run))
    assert kept.clusters == {0: "old", 2: "big = dogs"}
    assert kept.wrong == {7: "7"}
    assert SAGL.load(run).names_ == dict(kept.clusters)


def test_to_show_names_writes_nothing(sagl_cli, run):
    assert names_in(sagl_cli, run) == {k: f"Cluster {k}" for k in range(4)}
    assert not (run / "names.json").exists()


def test_what_the_explorer_exported_is_taken_over(sagl_cli, run, tmp_path):
    content = {"format": "sagl-names", "version": 1, "run": run_checksum(run)}
    content |= {"clusters": {"3": "threes"}, "wrong": []}
    (tmp_path / "names.json").write_text(json.dumps(content))
    assert names_in(sagl_cli, run, "--from", tmp_path / "names.json")[3] == "threes"


def test_names_are_found_in_columns_and_by_a_function(sagl_cli, run, tmp_path):
    labels = SAGL.load(run).labels_
    lines = ["kind", *(f"kind{k}" for k in labels)]
    (tmp_path / "columns.csv").write_text("\n".join(lines) + "\n")
    find = ("--find", "--columns", tmp_path / "columns.csv")
    shutil.copytree(run, tmp_path / "other")
    names = names_in(sagl_cli, run, *find)
    assert names == {k: f"kind: kind{k}" for k in range(4)}
    own = names_in(sagl_cli, tmp_path / "other", *find, "--with", f"{__name__}:shout")
    assert own == {k: f"KIND: KIND{k}" for k in range(4)}


def shout(about):
    return about.values[0].upper()


def test_names_of_an_earlier_run_are_kept(sagl_cli, run, tmp_path):
    shutil.copytree(run, tmp_path / "again")
    names_in(sagl_cli, run, "--set", "1=ones")
    assert names_in(sagl_cli, tmp_path / "again", "--keep", run)[1] == "ones"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--set", "cats"), "write N=NAME"),
        (("--set", "1=cats", "--set", "1=dogs"), "'1=dogs': cluster 1 has two names"),
        (("--set", "9=cats"), "no cluster 9"),
        (("--set", "0=Cluster 1"), "clusters 0 and 1"),
        (("--source", "x"), "belong to --find"),
        (("--find", "--with", "nowhere_at_all:f"), "no such function"),
    ],
)
def test_bad_names_are_one_line(sagl_cli, run, options, error):
    code, _, err = sagl_cli("names", run, *options)
    assert code == 2
    assert error in err
    assert err.count("\n") == 1
    assert not (run / "names.json").exists()
