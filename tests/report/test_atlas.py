"""The table for embedding-atlas has the columns and the form that it documents."""

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq

from sagl.report.atlas import write_atlas
from sagl.report.columns import make_column
from sagl.report.inputs import with_samples
from sagl.report.names import Names
from tests.report.pages import HOSTILE, Texts, random_graph


def test_table(small_data, tmp_path):
    texts = [HOSTILE[row % 8] for row in range(240)]
    inputs = with_samples(
        small_data.inputs, Texts(small_data.inputs.ids, texts), "texts"
    )
    inputs = replace(
        inputs,
        names=Names({1: "cats"}),
        columns=(make_column("half", ["a", "b"] * 120),),
    )
    write_atlas(tmp_path / "a.parquet", replace(small_data, inputs=inputs))
    table = pq.read_table(tmp_path / "a.parquet").to_pydict()
    np.testing.assert_allclose(
        table["x"], small_data.layout.points[:, 0], rtol=1e-5, atol=1e-5
    )
    assert table["cluster"] == small_data.labels.tolist()
    assert table["confidence"] == small_data.confidence.tolist()
    assert table["id"][3] == "sample 3"
    assert table["text"] == texts
    assert table["half"][:3] == ["a", "b", "a"]
    assert set(table["true_label"]) == {"0", "1", "2", "3"}
    named = {n for n, k in zip(table["cluster_name"], table["cluster"]) if k == 1}  # noqa: B905
    assert named == {"cats"}


def test_neighbours_are_positions_with_ascending_distances(altered, tmp_path):
    graph = random_graph(240, 3)
    write_atlas(tmp_path / "a.parquet", altered(mean_graph=graph))
    neighbours = pq.read_table(tmp_path / "a.parquet").to_pydict()["neighbors"]
    dense = graph.toarray()
    lengths = set()
    for row, found in enumerate(neighbours):
        assert set(found) == {"ids", "distances"}
        ids, distances = found["ids"], found["distances"]
        lengths.add((len(ids), len(distances)))
        assert distances == sorted(distances)
        assert ids[0] == row
        assert distances[0] == 0
        others = {i: d for i, d in zip(ids, distances, strict=True) if i != row}
        assert set(others) == set(np.flatnonzero(dense[row])) - {row}
        for i, distance in others.items():
            assert abs(distance - (1 - dense[row, i])) < 1e-4
    assert len(lengths) == 1  # embedding-atlas stacks them
