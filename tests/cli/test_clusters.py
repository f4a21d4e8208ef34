"""``sagl clusters``, and names in what other commands show."""

import csv
import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

from sagl import SAGL


@pytest.fixture
def named(fitted, tmp_path):
    SAGL.load(fitted / "run").rename({1: 'big, "loud" dogs'}).save(tmp_path / "run")
    return tmp_path / "run"


def test_a_table(sagl_cli, fitted):
    code, out, _ = sagl_cli("clusters", fitted / "run")
    assert code == 0
    model = SAGL.load(fitted / "run")
    for row in model.clusters(3):
        assert row.name in out
        assert ", ".join(map(str, row.typical)) in out
    assert "near-duplicates: 0 groups" in out


def test_for_machines(sagl_cli, named):
    code, out, _ = sagl_cli("clusters", named, "--json", "--examples", 2)
    facts = json.loads(out)
    model = SAGL.load(named)
    assert code == 0
    assert facts["clusters"] == [row._asdict() for row in model.clusters(2)]
    assert facts["clusters"][1]["name"] == 'big, "loud" dogs'
    worst = np.argsort(-model.outliers())[:2].tolist()
    assert facts["outliers"] == worst
    assert facts["duplicates"] == []


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_every_sample(sagl_cli, named, tmp_path, suffix):
    path = tmp_path / f"samples.{suffix}"
    code, out, _ = sagl_cli("clusters", named, "--out", path)
    assert code == 0
    assert str(path) in out
    if suffix == "csv":
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
    else:
        rows = pq.read_table(path).to_pylist()
    model = SAGL.load(named)
    assert [int(row["cluster"]) for row in rows] == model.labels_.tolist()
    assert [float(row["outlier"]) for row in rows] == model.outliers().tolist()
    assert {row["name"] for row in rows if int(row["cluster"]) == 1} == {
        'big, "loud" dogs'
    }


def test_a_table_that_cannot_be_written(sagl_cli, named, tmp_path):
    code, _, err = sagl_cli("clusters", named, "--out", tmp_path / "x.xlsx")
    assert code == 2
    assert ".csv or .parquet" in err
    assert err.count("\n") == 1


def test_predictions_and_info_have_the_names(sagl_cli, fitted, named, tmp_path):
    views = [f"--view={name}={fitted / name}.npy" for name in ("wide", "narrow")]
    assert sagl_cli("predict", named, *views, "--out", tmp_path / "p.csv")[0] == 0
    with (tmp_path / "p.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        expected = 'big, "loud" dogs' if row["cluster"] == "1" else None
        assert row["name"] == (expected or f"Cluster {row['cluster']}")
    assert 'big, "loud" dogs' in sagl_cli("info", named)[1]
    assert json.loads(sagl_cli("info", named, "--json")[1])["names"] == {
        "1": 'big, "loud" dogs'
    }


def test_doubtful_samples_have_no_name(sagl_cli, fitted, named, tmp_path):
    views = [f"--view={name}={fitted / name}.npy" for name in ("wide", "narrow")]
    out = tmp_path / "p.csv"
    sagl_cli("predict", named, *views, "--out", out, "--agreement", "1")
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert all((row["name"] == "") == (row["cluster"] == "-1") for row in rows)


def test_a_run_without_names_predicts_as_it_did(sagl_cli, fitted, tmp_path):
    shutil.copytree(fitted / "run", tmp_path / "run")
    views = [f"--view={name}={fitted / name}.npy" for name in ("wide", "narrow")]
    sagl_cli("predict", tmp_path / "run", *views, "--out", tmp_path / "p.csv")
    header = (tmp_path / "p.csv").read_text().splitlines()[0]
    assert header == "row,cluster,confidence"
