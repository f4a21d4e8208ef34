"""Exported files hold the same numbers, and can be read back."""

import csv

import numpy as np
import pytest

from sagl.features.files import read_array, read_labels
from sagl.features.store import FeatureStore, export, write_view

IDS = ["a,b", 'say "c"', "d"]


@pytest.fixture
def store(tmp_path):
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
def test_numbers_come_back(store, tmp_path, form, key):
    files = export(store, tmp_path / "out", form)
    names = {f"half.{form}", f"full.{form}", "ids.txt", "labels.csv"}
    assert {path.name for path in files} == names
    for name in store:
        found = read_array(tmp_path / "out" / f"{name}.{form}", key)
        np.testing.assert_array_equal(found, store[name][:])
    ids = (tmp_path / "out" / "ids.txt").read_text().splitlines()
    assert ids == store.ids == sorted(IDS)
    labels = read_labels(tmp_path / "out" / "labels.csv")
    assert labels.tolist() == store.join().labels.tolist()


def test_tables_name_their_rows(store, tmp_path):
    export(store, tmp_path / "csv", "csv")
    for name in store:
        with (tmp_path / "csv" / f"{name}.csv").open(newline="") as file:
            header, *rows = csv.reader(file)
        assert header == ["id", *(f"f{i}" for i in range(store[name].shape[1]))]
        assert [row[0] for row in rows] == store.ids
        found = np.array([row[1:] for row in rows]).astype(store[name].dtype)
        np.testing.assert_array_equal(found, store[name][:])
    export(store, tmp_path / "npz", "npz")
    with np.load(tmp_path / "npz" / "half.npz") as archive:
        assert archive["ids"].tolist() == store.ids
    pq = pytest.importorskip("pyarrow.parquet")
    export(store, tmp_path / "parquet", "parquet")
    table = pq.read_table(tmp_path / "parquet" / "half.parquet")
    assert table.column("id").to_pylist() == store.ids


def test_large_views_are_written_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("sagl.features.store_tools._BLOCK_ROWS", 7)
    features = np.arange(60, dtype=np.float32).reshape(20, 3)
    write_view(tmp_path / "s", "v", [f"{i:02d}" for i in range(20)], features)
    store = FeatureStore.open(tmp_path / "s")
    for form, key in (("npy", None), ("npz", "features"), ("parquet", "features")):
        export(store, tmp_path / form, form)
        found = read_array(tmp_path / form / f"v.{form}", key)
        np.testing.assert_array_equal(found, features)
    assert not (tmp_path / "npy" / "labels.csv").exists()


def test_some_views_and_their_common_samples(store, tmp_path):
    write_view(store.path, "few", ["d"], np.ones((1, 2), np.float32))
    store = FeatureStore.open(store.path)
    with pytest.raises(ValueError, match="different samples"):
        export(store, tmp_path / "out")
    with pytest.warns(UserWarning, match="1 are in all"):
        export(store, tmp_path / "out", names=["few", "half"], join="inner")
    assert (tmp_path / "out" / "ids.txt").read_text() == "d\n"
    assert np.load(tmp_path / "out" / "half.npy").shape == (1, 4)


def test_nothing_is_overwritten_and_forms_are_known(store, tmp_path):
    (tmp_path / "labels.csv").write_text("mine")
    with pytest.raises(ValueError, match=r"labels\.csv is there already"):
        export(store, tmp_path)
    assert not (tmp_path / "half.npy").exists()
    with pytest.raises(ValueError, match="not as 'xlsx'"):
        export(store, tmp_path / "out", "xlsx")
