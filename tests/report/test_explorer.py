"""The payload: neighbours against a loop, a round trip through another reader."""

import base64
import io
import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy.sparse import csr_matrix

from sagl.clusters.names import Names
from sagl.report.explorer import (
    SIDE,
    make_thumbnails,
    neighbour_count,
    pack,
    places,
    shown_column,
    strongest_neighbours,
    write_atlas,
)
from sagl.report.inputs import make_column, with_samples
from tests.report.pages import HOSTILE, Pictures, Texts, random_graph, unpack


@given(st.integers(0, 1000), st.integers(1, 25), st.integers(1, 6), st.integers(1, 8))
def test_strongest_neighbours_equal_a_loop(seed, n, degree, k):
    graph = random_graph(n, degree, seed)
    rows, values = strongest_neighbours(graph, k)
    dense = graph.toarray()
    for i in range(n):
        others = [(-dense[i, j], j) for j in range(n) if j != i and dense[i, j] > 0]
        best = sorted(others)[:k]
        missing = k - len(best)
        assert rows[i].tolist() == [j for _, j in best] + [-1] * missing
        assert values[i].tolist() == [-w for w, _ in best] + [0.0] * missing


def test_a_sample_alone_has_no_neighbours():
    rows, weights = strongest_neighbours(csr_matrix(np.eye(3)), 2)
    assert (rows == -1).all()
    assert (weights == 0).all()


def test_fewer_neighbours_when_there_are_many_samples():
    assert neighbour_count(1_000, 3) == 10
    assert neighbour_count(100_000, 3) == 10
    assert 1 <= neighbour_count(200_000, 5) < 10
    assert neighbour_count(2, 1) == 1


@given(st.integers(0, 1000), st.integers(1, 50))
def test_places_keep_the_shape(seed, n):
    points = np.random.default_rng(seed).normal(size=(n, 2)) * [3, 1] + [10, -5]
    xy, extent = places(points)
    span = np.ptp(points, axis=0)
    scale = span.max() or 1.0
    back = xy * scale + points.min(axis=0)
    np.testing.assert_allclose(back, points, atol=scale / 1e5)
    assert all(0.05 <= side <= 1 for side in extent)
    if n > 1:
        assert max(extent) == pytest.approx(1)


def test_payload_round_trip():
    content = {"ids": HOSTILE, "none": [], "views": [{"title": HOSTILE[0]}]}
    text = pack(content)
    assert text == pack(content)  # the same file every time
    assert unpack(text) == content
    with pytest.raises(ValueError, match="not JSON compliant"):
        pack({"x": float("nan")})  # browsers would not read it


def test_columns_are_of_the_chosen_rows():
    rows = np.array([2, 0])
    words = shown_column(make_column("kind", ["a", "b", "c"]), rows)
    assert [words["categories"][code] for code in words["values"]] == ["c", "a"]
    mass = make_column("mass", ["1.5", "", "9.5"])
    shown = shown_column(mass, rows)
    assert shown["values"] == [9.5, 1.5]
    assert (shown["low"], shown["high"]) == (1.5, 9.5)
    missing = shown_column(mass, np.array([1]))
    assert json.dumps(missing["values"]) == "[null]"
    assert missing["low"] < missing["high"]


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
    write_atlas(tmp_path / "a.parquet", altered(graph=graph))
    neighbours = pq.read_table(tmp_path / "a.parquet").to_pydict()["neighbors"]
    dense = graph.toarray()
    lengths = set()
    for row, nearest in enumerate(neighbours):
        assert set(nearest) == {"ids", "distances"}
        ids, distances = nearest["ids"], nearest["distances"]
        lengths.add((len(ids), len(distances)))
        assert distances == sorted(distances)
        assert ids[0] == row
        assert distances[0] == 0
        others = {i: d for i, d in zip(ids, distances, strict=True) if i != row}
        assert set(others) == set(np.flatnonzero(dense[row])) - {row}
        for i, distance in others.items():
            assert abs(distance - (1 - dense[row, i])) < 1e-4
    assert len(lengths) == 1  # embedding-atlas stacks them


def opened(address):
    """The picture in an address."""
    return Image.open(io.BytesIO(base64.b64decode(address.partition(";base64,")[2])))


def test_large_pictures_shrink_and_keep_their_shape():
    samples = Pictures("abc", size=(800, 400))
    thumbnails = make_thumbnails([0, 2], samples.__getitem__)
    assert list(thumbnails.images) == [0, 2]
    assert not thumbnails.pixelated
    for content in thumbnails.images.values():
        assert opened(content).size == (SIDE, SIDE // 2)
        assert len(content) < 7_000


def test_tiny_pictures_are_kept_to_the_pixel():
    samples = Pictures("abc", size=(8, 8))
    thumbnails = make_thumbnails([1], samples.__getitem__)
    assert thumbnails.pixelated
    kept = opened(thumbnails.images[1])
    assert kept.tobytes() == samples[1].tobytes()


def test_without_webp_thumbnails_are_png(monkeypatch):
    monkeypatch.setattr("PIL.features.check", lambda name: False)
    thumbnails = make_thumbnails([0], Pictures("a").__getitem__)
    assert thumbnails.images[0].startswith("data:image/png;base64,iVBOR")


def test_unreadable_pictures_are_counted():
    samples = Pictures("abc", broken=1)
    thumbnails = make_thumbnails(range(3), samples.__getitem__)
    assert list(thumbnails.images) == [0, 2]
    assert thumbnails.unreadable == 1


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P", "CMYK", "1", "I;16"])
def test_all_modes_can_be_shown(mode):
    for size in ((200, 100), (8, 8)):
        image = Image.new("RGB", size, "red")
        image = Image.new(mode, size) if mode == "I;16" else image.convert(mode)
        thumbnails = make_thumbnails([0], lambda row, image=image: image)
        address = thumbnails.images[0]
        assert address.startswith(f"data:image/{opened(address).format.lower()};")
