"""``sagl graph``: what it prints, writes and refuses."""

import json

import numpy as np
import pytest
from scipy.sparse import load_npz

from sagl import SAGL
from sagl.evaluation.graphs import graph_measures
from sagl.report.graph_file import attention_graphs
from tests.conftest import clustered_views


def files(fitted):
    return [f"--view={name}={fitted}/{name}.npy" for name in ("wide", "narrow")]


def test_measures_of_a_run_alone(sagl_cli, fitted):
    code, out, err = sagl_cli("graph", fitted / "run", "--json")
    assert code == 0, err
    stored = load_npz(fitted / "run" / "graph.npz")
    assert json.loads(out) == {"out": None, **graph_measures(stored).as_dict()}


def test_one_view_with_labels(sagl_cli, fitted, tmp_path):
    code, out, err = sagl_cli(
        "graph",
        fitted / "run",
        *("--view", "narrow", *files(fitted)),
        *("--labels", fitted / "labels.npy"),
        *("--out", tmp_path / "graph.npz", "--json"),
    )
    assert code == 0, err
    views, labels = clustered_views()
    graph = attention_graphs(SAGL.load(fitted / "run"), views)["narrow"]
    written = load_npz(tmp_path / "graph.npz")
    np.testing.assert_array_equal(written.toarray(), graph.toarray())
    expected = graph_measures(graph, labels).as_dict()
    assert json.loads(out) == {"out": str(tmp_path / "graph.npz"), **expected}
    assert expected["inside"] > 0.5


def test_a_table_for_people(sagl_cli, fitted, tmp_path):
    code, out, _ = sagl_cli("graph", fitted / "run")
    assert code == 0
    assert "neighbours per row" in out
    assert "label propagation" not in out
    labels = fitted / "labels.npy"
    code, out, _ = sagl_cli("graph", fitted / "run", "--labels", labels)
    assert "label propagation" in out
    code, out, _ = sagl_cli("graph", fitted / "run", "--out", tmp_path / "g.csv")
    edges = load_npz(fitted / "run" / "graph.npz").count_nonzero()
    assert out == f"240 samples and {edges:,} edges in {tmp_path / 'g.csv'}\n"
    assert len((tmp_path / "g.csv").read_text().splitlines()) == edges + 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--out", "graph.txt"], "graph.txt: graphs are written as .npz, .parquet"),
        (["--out", "none/graph.csv"], "there is no directory none"),
        (["--view", "clip"], "--view clip: "),
        (["--view", "wide"], "does not hold the features that this graph needs"),
        (["--view", "wide=none.npy"], "none.npy: no such file"),
        (["--labels", "none.npy", "--json"], "none.npy: no such file"),
        (["none"], "none"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(
    sagl_cli, fitted, tmp_path, monkeypatch, options, words
):
    monkeypatch.chdir(tmp_path)
    code, out, err = sagl_cli("graph", fitted / "run", "--out", "g.csv", *options)
    assert code == 2
    assert err.startswith("sagl: error: ")
    assert err.count("\n") == 1
    assert words in err
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_labels_of_other_samples_are_refused_before_writing(sagl_cli, fitted, tmp_path):
    np.save(tmp_path / "few.npy", np.zeros(7, dtype=int))
    options = ["--labels", tmp_path / "few.npy", "--out", tmp_path / "g.csv", "--json"]
    code, _, err = sagl_cli("graph", fitted / "run", *options)
    assert code == 2
    assert "7 labels for a graph of 240 samples" in err
    assert not (tmp_path / "g.csv").exists()


def test_no_run(sagl_cli, tmp_path):
    code, _, err = sagl_cli("graph", tmp_path)
    assert code == 2
    assert "holds no run" in err
