"""Every kind of damage to a store is found, and named by file and row."""

import json

import numpy as np
import pytest

from sagl.features.store import verify, write_view


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr("sagl.features.store_write._PIECE_ROWS", 4)
    features = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)
    ids = [f"{i}" for i in range(10)]
    write_view(tmp_path / "s", "v", ids, features, labels=ids)
    return tmp_path / "s"


def test_a_whole_store_has_no_fault(store):
    assert verify(store) == []


def test_one_flipped_bit(store):
    path = store / "v" / "00001.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    [fault] = verify(store)
    assert fault.startswith(f"{path}: its content is not what was written")


def test_values_that_are_not_finite_even_if_the_checksum_fits(tmp_path):
    features = np.ones((5, 3), np.float32)
    features[3, 1] = np.inf
    features[4, 0] = np.nan
    write_view(tmp_path / "s", "v", list("abcde"), features)
    [fault] = verify(tmp_path / "s")
    assert "00000.npy: row 3, column 1 is inf; 2 of its rows" in fault


def test_missing_and_cut_files(store):
    (store / "v" / "00000.npy").unlink()
    path = store / "v" / "00002.npy"
    path.write_bytes(path.read_bytes()[:-4])
    missing, cut = verify(store)
    assert "00000.npy: is missing" in missing
    assert "00002.npy: is cut short" in cut


def test_ids_and_labels(store):
    [ids] = store.glob("ids-*.txt")
    [labels] = store.glob("labels-*.txt")
    ids.write_text(ids.read_text().replace("3", "33"))
    labels.write_text(labels.read_text()[:-2])
    first, second = verify(store)
    assert f"{ids}: its content is not what was written" in first
    assert f"{labels}: holds 9 lines, expected 10" in second


def test_rows_that_do_not_add_up(store):
    manifest = json.loads((store / "manifest.json").read_text())
    manifest["views"]["v"]["shards"].pop()
    manifest["views"]["v"]["rows"] = 8
    (store / "manifest.json").write_text(json.dumps(manifest))
    [fault] = verify(store)
    assert "view 'v' has 8 rows and 10 ids" in fault


def test_an_unfinished_view(store):
    from sagl.features.manifest import Manifest
    from sagl.features.store_write import begin

    plan = Manifest.read(store).views["v"].plan
    begin(store, "w", plan, [f"{i}" for i in range(10)], None, {})
    [fault] = verify(store)
    assert "view 'w' is not finished: 3 of 3 pieces are missing" in fault
