"""SAGL taken apart."""

import json

import pytest

from sagl.experiments.ablate import VARIANTS, Ablation
from sagl.experiments.compare import Comparison
from sagl.features.split import find_source
from tests.experiments.small_runs import run_in_this_process
from tests.experiments.test_compare import methods, write_split


@pytest.fixture(autouse=True)
def ran(monkeypatch):
    return run_in_this_process(monkeypatch)


def test_variants_figures_and_published_figures(tmp_path, ran):
    source = find_source(write_split(tmp_path / "pets_like"))
    study = Ablation(source, tmp_path / "out", seeds=1, params={"steps": 20})
    study.run()
    assert [name for name, _ in ran] == list(VARIANTS)
    written = study.write()
    assert "accuracy.png" in written
    for name in written:
        assert (tmp_path / "out" / name).stat().st_size > 100
    rows = {row.name: row for row in study.rows()}
    assert list(rows) == list(VARIANTS)  # no rows that cannot be run
    assert rows["sagl-b"].published_acc == pytest.approx(0.6361)
    assert rows["sagl-w"].published_acc == pytest.approx(0.9722)
    assert rows["sagl-paper"].published_acc == pytest.approx(0.9757)
    assert all(row.label_free["total"] > 0 for row in rows.values())
    columns, lines, head = study.table()
    assert columns[:5] == ["method", "ACC", "NMI", "ARI", "score"]
    assert "to TURTLE" not in columns
    assert head == 1
    assert len(lines) == len(VARIANTS)
    assert "inductive: test samples, each predicted alone" in study.heading()
    kept = json.loads((tmp_path / "out" / "table.json").read_text())
    assert kept["command"] == "ablate"
    assert kept["protocol"] == "inductive"
    assert [row["name"] for row in kept["rows"]] == list(VARIANTS)


def test_runs_of_a_comparison_count(tmp_path):
    source = find_source(write_split(tmp_path / "split"))
    there = Comparison(source, methods("sagl-i"), tmp_path, seeds=1)
    study = Ablation(source, tmp_path, seeds=1)
    files = {study.comparison._file(task) for task in study.comparison.tasks}
    assert there._file(there.tasks[0]) in files


def test_without_labels(tmp_path):
    directory = write_split(tmp_path / "split")
    (directory / "train" / "labels.npy").unlink()
    (directory / "test" / "labels.npy").unlink()
    source = find_source(directory)
    study = Ablation(
        source, tmp_path / "out", n_clusters=3, seeds=1, params={"steps": 20}
    )
    assert "no labels" in study.heading()
    assert study.figures() == {}  # nothing has been run
    study.run()
    assert "scores.svg" in study.write()
    assert "ACC" not in study.table()[0]


def test_bad_parameters_are_refused_at_once(tmp_path):
    source = find_source(write_split(tmp_path / "split"))
    with pytest.raises(ValueError, match="steps must be a whole number"):
        Ablation(source, tmp_path / "out", params={"steps": 0})
    assert not (tmp_path / "out").exists()
