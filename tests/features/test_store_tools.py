"""Every kind of damage is named; merged and exported stores hold what they held."""

import csv
import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from sagl.features.extraction import extract
from sagl.features.files import read_array, read_labels
from sagl.features.manifest import Manifest
from sagl.features.store import FeatureStore, read_skipped, write_view
from sagl.features.store_tools import export, merge, verify
from sagl.features.store_write import begin
from tests.features.toy_extraction import Letters, Words, tree


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr("sagl.features.store_write._PIECE_ROWS", 16)


def numbers(rows, dim, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, dim)).astype(np.float16)


def test_views_side_by_side(tmp_path):
    ids = [f"{i:02d}" for i in range(20)]
    a, b = numbers(20, 3), numbers(20, 5, 1)
    write_view(tmp_path / "1", "a", ids, a, labels=ids)
    write_view(tmp_path / "2", "b", ids, b)
    merge([tmp_path / "1", tmp_path / "2"], tmp_path / "both")
    joined = FeatureStore.open(tmp_path / "both").join()
    np.testing.assert_array_equal(joined.views["a"], a)
    np.testing.assert_array_equal(joined.views["b"], b)
    assert joined.labels.tolist() == ids
    assert verify(tmp_path / "both") == []
    # The same as if both had been written to one place.
    write_view(tmp_path / "direct", "a", ids, a, labels=ids)
    write_view(tmp_path / "direct", "b", ids, b)
    merged, direct = tree(tmp_path / "both"), tree(tmp_path / "direct")
    assert {k: v for k, v in direct.items() if k != ".lock"} == merged


def test_rows_of_one_view_one_below_the_other(tmp_path):
    ids = [f"{i:02d}" for i in range(50)]
    a = numbers(50, 3)
    for i in range(3):
        rows = np.arange(i, 50, 3)
        part = [ids[row] for row in rows]
        write_view(tmp_path / f"{i}", "a", part, a[rows], labels=part, source={"of": i})
    merge([tmp_path / f"{i}" for i in range(3)], tmp_path / "all")
    store = FeatureStore.open(tmp_path / "all")
    assert store.ids == ids
    np.testing.assert_array_equal(store["a"], a)
    assert store.join().labels.tolist() == ids
    assert store.join().source == {"merged": [{"of": 0}, {"of": 1}, {"of": 2}]}
    assert verify(tmp_path / "all") == []


def test_a_repeated_sample_is_refused(tmp_path):
    for i in range(2):
        write_view(tmp_path / f"{i}", "a", ["x", f"{i}"], numbers(2, 3))
    with pytest.raises(ValueError, match=r"view 'a' .* have the same id 'x'"):
        merge([tmp_path / "0", tmp_path / "1"], tmp_path / "all")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1"]


def test_a_view_made_in_another_way_is_refused(tmp_path):
    write_view(tmp_path / "0", "a", ["x"], numbers(1, 3))
    write_view(tmp_path / "1", "a", ["y"], numbers(1, 4))
    with pytest.raises(ValueError, match="made in another way"):
        merge([tmp_path / "0", tmp_path / "1"], tmp_path / "all")


def test_some_labels_are_no_labels(tmp_path):
    write_view(tmp_path / "0", "a", ["x"], numbers(1, 3), labels=["l"])
    write_view(tmp_path / "1", "a", ["y"], numbers(1, 3))
    with pytest.warns(UserWarning, match="not all of the stores have labels"):
        merge([tmp_path / "0", tmp_path / "1"], tmp_path / "all")
    assert FeatureStore.open(tmp_path / "all").join().labels is None


def test_parts_of_one_extraction_from_separate_disks(tmp_path):
    """--shard 0/2 here and 1/2 there, merged: the same bytes as one process."""
    samples, models = Words(70), {"v": Letters(), "w": Letters("w", 9)}
    extract(samples, models, tmp_path / "one", workers=0)
    for i in range(2):
        part = extract(samples, models, tmp_path / f"{i}", workers=0, share=(i, 2))
        assert not part.complete
        with pytest.raises(ValueError, match="the extraction is not finished"):
            FeatureStore.open(tmp_path / f"{i}")
        with pytest.raises(
            ValueError, match=r"'v' lacks [23] of its 5 pieces \([01], "
        ):
            merge([tmp_path / f"{i}"])
    with pytest.raises(ValueError, match=r"'v' lacks 2 of its 5 pieces \(1, 3\)"):
        merge([tmp_path / "0"], tmp_path / "half")
    merge([tmp_path / "0", tmp_path / "1"], tmp_path / "merged")
    assert tree(tmp_path / "merged") == tree(tmp_path / "one")
    assert len(read_skipped(tmp_path / "merged")) == 4


def test_finishing_in_place(tmp_path):
    samples = Words(70)
    extract(samples, {"v": Letters()}, tmp_path / "one", workers=0)
    for i in range(2):
        extract(samples, {"v": Letters()}, tmp_path / f"{i}", workers=0, share=(i, 2))
    # Copied by hand, as people do.
    for name, content in tree(tmp_path / "1").items():
        (tmp_path / "0" / name).write_bytes(content)
    assert not (tmp_path / "0" / "manifest.json").exists()
    assert merge([tmp_path / "0"]) == tmp_path / "0"
    assert tree(tmp_path / "0") == tree(tmp_path / "one")
    assert merge([tmp_path / "0"]) == tmp_path / "0"  # nothing left to do


def test_parts_made_in_different_ways_are_refused(tmp_path):
    for i, size in enumerate((8, 16)):
        extract(
            Words(70),
            {"v": Letters()},
            tmp_path / f"{i}",
            batch_size=size,
            workers=0,
            share=(i, 2),
        )
    with pytest.raises(ValueError, match="begun in another way"):
        merge([tmp_path / "0", tmp_path / "1"], tmp_path / "all")


def test_a_view_finished_here_and_begun_there_is_refused(tmp_path):
    extract(Words(70), {"v": Letters()}, tmp_path / "whole", workers=0)
    extract(Words(70), {"v": Letters()}, tmp_path / "half", workers=0, share=(0, 2))
    with pytest.raises(ValueError, match=r"half: view 'v' is not finished here, and"):
        merge([tmp_path / "whole", tmp_path / "half"], tmp_path / "all")


def test_places(tmp_path):
    write_view(tmp_path / "0", "a", ["x"], numbers(1, 3))
    (tmp_path / "there").mkdir()
    with pytest.raises(ValueError, match="there is there already"):
        merge([tmp_path / "0"], tmp_path / "there")
    with pytest.raises(ValueError, match="there is not a feature store"):
        merge([tmp_path / "0", tmp_path / "there"], tmp_path / "all")
    with pytest.raises(ValueError, match="2 stores need a place"):
        merge([tmp_path / "0", tmp_path / "0"])


@pytest.fixture
def sharded(tmp_path, monkeypatch):
    monkeypatch.setattr("sagl.features.store_write._PIECE_ROWS", 4)
    features = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)
    ids = [f"{i}" for i in range(10)]
    write_view(tmp_path / "s", "v", ids, features, labels=ids)
    return tmp_path / "s"


def test_a_whole_store_has_no_fault(sharded):
    assert verify(sharded) == []


def test_one_flipped_bit(sharded):
    path = sharded / "v" / "00001.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    [fault] = verify(sharded)
    assert fault.startswith(f"{path}: its content is not what was written")


def test_values_that_are_not_finite_even_if_the_checksum_fits(tmp_path):
    features = np.ones((5, 3), np.float32)
    features[3, 1] = np.inf
    features[4, 0] = np.nan
    write_view(tmp_path / "s", "v", list("abcde"), features)
    [fault] = verify(tmp_path / "s")
    assert "00000.npy: row 3, column 1 is inf; 2 of its rows" in fault


def test_missing_and_cut_files(sharded):
    (sharded / "v" / "00000.npy").unlink()
    path = sharded / "v" / "00002.npy"
    path.write_bytes(path.read_bytes()[:-4])
    missing, changed, cut = verify(sharded)
    assert "00000.npy: no such file" in missing
    assert "00002.npy: its content is not what was written" in changed
    assert "00002.npy: is cut short" in cut


def test_ids_and_labels(sharded):
    [ids] = sharded.glob("ids-*.txt")
    [labels] = sharded.glob("labels-*.txt")
    ids.write_text(ids.read_text().replace("3", "33"))
    labels.write_text(labels.read_text()[:-2])
    first, second = verify(sharded)
    assert first.startswith(f"{ids}: ")
    assert "its content is not what was written" in first
    assert second.startswith(f"{labels}: ")
    assert "it holds 9 lines, expected 10" in second


def test_rows_that_do_not_add_up(sharded):
    manifest = json.loads((sharded / "manifest.json").read_text())
    manifest["views"]["v"]["shards"].pop()
    manifest["views"]["v"]["rows"] = 8
    del manifest["checksum"]
    (sharded / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match="v: 8 rows, 8 in its files, 10 ids"):
        verify(sharded)


def test_an_unfinished_view(sharded):
    plan = Manifest.read(sharded).views["v"].plan
    begin(sharded, "w", plan, [f"{i}" for i in range(10)], None, {})
    [fault] = verify(sharded)
    assert "view 'w' is not finished: 3 of 3 pieces are missing" in fault


IDS = ["a,b", 'say "c"', "d"]


@pytest.fixture
def labelled(tmp_path):
    rng = np.random.default_rng(0)
    write_view(
        tmp_path / "s",
        "half",
        IDS,
        rng.normal(size=(3, 4)).astype(np.float16),
        labels=["x", "y, z", "x"],
    )
    write_view(tmp_path / "s", "full", IDS, rng.normal(size=(3, 2)).astype(np.float32))
    return FeatureStore.open(tmp_path / "s")


@pytest.mark.parametrize(
    ("form", "key"), [("npy", None), ("npz", "features"), ("parquet", "features")]
)
def test_numbers_come_back(labelled, tmp_path, form, key):
    files = export(labelled, tmp_path / "out", form)
    names = {f"half.{form}", f"full.{form}", "ids.txt", "labels.csv"}
    assert {path.name for path in files} == names
    for name in labelled:
        values = read_array(tmp_path / "out" / f"{name}.{form}", key)
        np.testing.assert_array_equal(values, labelled[name][:])
    ids = (tmp_path / "out" / "ids.txt").read_text().splitlines()
    assert ids == labelled.ids == sorted(IDS)
    labels = read_labels(tmp_path / "out" / "labels.csv")
    assert labels.tolist() == labelled.join().labels.tolist()


def test_tables_name_their_rows(labelled, tmp_path):
    export(labelled, tmp_path / "csv", "csv")
    for name in labelled:
        with (tmp_path / "csv" / f"{name}.csv").open(newline="") as file:
            header, *rows = csv.reader(file)
        assert header == ["id", *(f"f{i}" for i in range(labelled[name].shape[1]))]
        assert [row[0] for row in rows] == labelled.ids
        values = np.array([row[1:] for row in rows]).astype(labelled[name].dtype)
        np.testing.assert_array_equal(values, labelled[name][:])
    export(labelled, tmp_path / "npz", "npz")
    with np.load(tmp_path / "npz" / "half.npz") as archive:
        assert archive["ids"].tolist() == labelled.ids
    export(labelled, tmp_path / "parquet", "parquet")
    table = pq.read_table(tmp_path / "parquet" / "half.parquet")
    assert table.column("id").to_pylist() == labelled.ids


def test_large_views_are_written_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("sagl.features.store_tools._BLOCK_ROWS", 7)
    features = np.arange(60, dtype=np.float32).reshape(20, 3)
    write_view(tmp_path / "s", "v", [f"{i:02d}" for i in range(20)], features)
    labelled = FeatureStore.open(tmp_path / "s")
    for form, key in (("npy", None), ("npz", "features"), ("parquet", "features")):
        export(labelled, tmp_path / form, form)
        values = read_array(tmp_path / form / f"v.{form}", key)
        np.testing.assert_array_equal(values, features)
    assert not (tmp_path / "npy" / "labels.csv").exists()


def test_some_views_and_their_common_samples(labelled, tmp_path):
    write_view(labelled.path, "few", ["d"], np.ones((1, 2), np.float32))
    labelled = FeatureStore.open(labelled.path)
    with pytest.raises(ValueError, match="different samples"):
        export(labelled, tmp_path / "out")
    with pytest.warns(UserWarning, match="1 are in all"):
        export(labelled, tmp_path / "out", names=["few", "half"], join="inner")
    assert (tmp_path / "out" / "ids.txt").read_text() == "d\n"
    assert np.load(tmp_path / "out" / "half.npy").shape == (1, 4)


def test_nothing_is_overwritten_and_forms_are_known(labelled, tmp_path):
    (tmp_path / "labels.csv").write_text("mine")
    with pytest.raises(ValueError, match=r"labels\.csv is there already"):
        export(labelled, tmp_path)
    assert not (tmp_path / "half.npy").exists()
    with pytest.raises(ValueError, match="not as 'xlsx'"):
        export(labelled, tmp_path / "out", "xlsx")
