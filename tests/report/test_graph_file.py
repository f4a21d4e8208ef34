"""A run's graph in files: every form holds the same edges and opens elsewhere."""

import csv
import shutil

import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array, csr_matrix, load_npz, save_npz

from sagl import SAGL
from sagl.features.store import write_view
from sagl.report.graph_file import (
    RunGraph,
    attention_graphs,
    check_graph_path,
    open_graph,
    write_graph,
)
from tests.conftest import clustered_views
from tests.runs import enter_parts

SUFFIXES = (".npz", ".parquet", ".csv", ".graphml", ".gexf")


@pytest.fixture
def graph():
    weights = csr_array([[0.5, 0.25, 0.25], [0, 1, 0], [1 / 3, 0, 0]])
    weights.data[0] = 0.125
    zero = csr_array(([0.0], ([2], [1])), shape=(3, 3))  # stored, but no edge
    stored = csr_array(
        (
            np.append(weights.data, zero.data),
            np.append(weights.indices, zero.indices),
            [0, 3, 4, 6],
        ),
        shape=(3, 3),
    )
    ids = ["a,b.png", 'say "c" & <d>', "é.png"]
    return RunGraph(stored, ids, np.array([0, 1, 0]))


def dense_of(edges, ids):
    dense = np.zeros((len(ids), len(ids)))
    for source, target, weight in edges:
        dense[ids.index(source), ids.index(target)] += float(weight)
    return dense


def read_back(path, ids):
    if path.suffix == ".npz":
        return load_npz(path).toarray()
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            head, *edges = csv.reader(file)
        assert head == ["source", "target", "weight"]
        assert len(edges) == 5
        return dense_of(edges, ids)
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        assert table.column_names == ["source", "target", "weight"]
        columns = (table.column(name).to_pylist() for name in table.column_names)
        return dense_of(zip(*columns, strict=True), ids)
    read = nx.read_graphml if path.suffix == ".graphml" else nx.read_gexf
    network = read(path)
    assert network.is_directed()
    assert list(network.nodes) == ids
    assert [network.nodes[name]["cluster"] for name in ids] == [0, 1, 0]
    return dense_of(network.edges(data="weight"), ids)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_form_holds_the_same_edges(graph, tmp_path, suffix):
    path = tmp_path / f"graph{suffix}"
    write_graph(path, graph)
    assert list(tmp_path.iterdir()) == [path]
    edges = read_back(path, graph.ids)
    np.testing.assert_array_equal(edges, graph.weights.toarray())


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_write_that_fails_leaves_what_was_there(graph, tmp_path, suffix, monkeypatch):
    path = tmp_path / f"graph{suffix}"
    path.write_text("before")

    def full(*_):
        raise OSError("disk full")

    monkeypatch.setattr("sagl.storage.os.fsync", full)
    with pytest.raises(OSError, match="disk full"):
        write_graph(path, graph)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_samples_without_an_edge_are_nodes(tmp_path):
    graph = RunGraph(csr_array((2, 2)), ["a", "b"], np.array([1, 0]))
    write_graph(tmp_path / "g.gexf", graph)
    assert sorted(nx.read_gexf(tmp_path / "g.gexf").nodes) == ["a", "b"]


@pytest.mark.parametrize("suffix", [".graphml", ".gexf"])
def test_ids_that_xml_cannot_hold_are_refused(tmp_path, suffix):
    graph = RunGraph(csr_array(np.eye(2)), ["a", "b\x01"], np.array([0, 1]))
    with pytest.raises(ValueError, match=r"'b\\x01' has a character that XML"):
        write_graph(tmp_path / f"g{suffix}", graph)
    assert list(tmp_path.iterdir()) == []
    write_graph(tmp_path / "g.csv", graph)


def test_bad_places_are_refused(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    for name, words in (
        ("graph.txt", r"written as \.npz, \.parquet, \.csv, \.graphml or \.gexf"),
        ("graph", "written as"),
        ("folder.csv", "is a directory; name a file in it"),
        ("none/graph.csv", "there is no directory"),
    ):
        with pytest.raises(ValueError, match=words):
            check_graph_path(tmp_path / name)


@pytest.fixture
def run(small_run, tmp_path):
    return shutil.copytree(small_run, tmp_path / "run")


def expected_graphs(run, rows=slice(None)):
    views, _ = clustered_views()
    return attention_graphs(SAGL.load(run), views[rows])


def write_store(folder, rows, labels=None):
    views, _ = clustered_views()
    names = [f"{row:03}.png" for row in rows]
    for name, array in views.items():
        write_view(folder, name, names, array[rows], labels=labels)
    return names


def test_given_samples_their_ids_and_labels(run, tmp_path):
    rows = np.arange(0, 240, 3)
    labels = [f"class {k}" for k in clustered_views()[1][rows]]
    ids = write_store(tmp_path / "store", rows, labels)
    graphs = expected_graphs(run, rows)
    opened = open_graph(run, store=tmp_path / "store", views=["narrow"])
    assert opened.ids == ids
    assert opened.labels.tolist() == labels
    np.testing.assert_array_equal(opened.weights.toarray(), graphs["narrow"].toarray())
    views, _ = clustered_views()
    clusters = SAGL.load(run).predict(views[rows])
    np.testing.assert_array_equal(opened.clusters, clusters)
    together = SAGL.load(run).attention_graph(views[rows], together=True)
    weights = open_graph(run, store=tmp_path / "store").weights
    np.testing.assert_allclose(weights.toarray(), together.toarray(), atol=1e-7)


def test_files_beside_the_name_of_the_wanted_view(run, tmp_path):
    views, _ = clustered_views()
    options = []
    for name, array in views.items():
        np.save(tmp_path / f"{name}.npy", array[:50])
        options.append(f"{name}={tmp_path}/{name}.npy")
    opened = open_graph(run, views=["wide", *options])
    np.testing.assert_array_equal(
        opened.weights.toarray(), expected_graphs(run, slice(50))["wide"].toarray()
    )
    assert opened.ids == [str(row) for row in range(50)]
    assert opened.labels is None


def test_the_runs_own_features_in_the_order_of_the_run(run, tmp_path):
    write_store(run / "features", np.arange(240))
    enter_parts(run)
    opened = open_graph(run, views=["wide"])
    assert opened.ids[:2] == ["000.png", "001.png"]
    np.testing.assert_array_equal(opened.clusters, SAGL.load(run).labels_)
    np.testing.assert_array_equal(
        opened.weights.toarray(), expected_graphs(run)["wide"].toarray()
    )


def test_the_stored_graph_is_taken_only_for_the_mean(run):
    marked = csr_matrix(np.eye(240))
    save_npz(run / "graph.npz", marked)
    enter_parts(run)
    weights = open_graph(run).weights.toarray()
    np.testing.assert_array_equal(weights, np.eye(240))
    with pytest.raises(ValueError, match=r"does not hold the features .* NAME=FILE"):
        open_graph(run, views=["wide"])
    save_npz(run / "graph.npz", csr_matrix(np.eye(7)))
    enter_parts(run)
    with pytest.raises(ValueError, match=r"shape \(7, 7\) and the run 240 samples"):
        open_graph(run)
    whole = (run / "graph.npz").read_bytes()
    for broken in (whole[:-40], b"nothing of the kind"):
        (run / "graph.npz").write_bytes(broken)
        enter_parts(run)
        with pytest.raises(
            ValueError, match=r"graph.npz: .*damaged or not a .npz file"
        ):
            open_graph(run)


def test_an_unknown_view_is_named_with_those_that_there_are(run):
    with pytest.raises(ValueError, match=r"--view clip: .* only wide, narrow; files"):
        open_graph(run, views=["clip"])
