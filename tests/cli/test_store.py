"""``sagl store``: what it shows, checks, merges and exports."""

import json
from functools import partial

import numpy as np
import pytest

from sagl.features.store import FeatureStore, write_view


@pytest.fixture
def sagl(sagl_cli):
    return partial(sagl_cli, "store")


@pytest.fixture
def store(tmp_path):
    rng = np.random.default_rng(0)
    ids = [f"{i}.jpg" for i in range(6)]
    write_view(
        tmp_path / "store",
        "dino",
        ids,
        rng.normal(size=(6, 8)).astype(np.float16),
        labels=["x", "y"] * 3,
        backbone={"model": "facebook/dino", "revision": "abc"},
    )
    write_view(tmp_path / "store", "clip", ids[1:], rng.normal(size=(5, 4)))
    return tmp_path / "store"


def test_info(sagl, store):
    code, out, _ = sagl("info", store, "--json")
    assert code == 0
    facts = json.loads(out)
    assert facts["samples"] == 5
    assert facts["labelled"]
    assert facts["views"]["dino"]["backbone"]["revision"] == "abc"
    assert facts["views"]["clip"]["bytes"] == 5 * 4 * 8
    code, out, _ = sagl("info", store)
    assert code == 0
    assert "facebook/dino" in out
    assert "5 samples are in every view, with labels" in out
    code, _, err = sagl("info", store / "dino")
    assert code == 2
    assert "is not a feature store" in err


def test_verify(sagl, store):
    code, out, _ = sagl("verify", store)
    assert code == 0
    assert "is whole" in out
    path = store / "clip" / "00000.npy"
    path.write_bytes(path.read_bytes()[:-8] + np.float64(np.nan).tobytes())
    code, out, _ = sagl("verify", store)
    assert code == 1
    assert "00000.npy: its content is not what was written" in out
    assert "row 4, column 3 is nan" in out
    code, out, _ = sagl("verify", store, "--json")
    assert code == 1
    assert len(json.loads(out)["faults"]) == 2


def test_merge(sagl, store, tmp_path):
    write_view(tmp_path / "other", "siglip", ["1.jpg"], np.ones((1, 2)))
    arguments = ["merge", store, tmp_path / "other", "--out", tmp_path / "all"]
    code, out, _ = sagl(*arguments, "--json")
    assert code == 0
    assert set(json.loads(out)["views"]) == {"dino", "clip", "siglip"}
    code, _, err = sagl(*arguments)
    assert code == 2
    assert "is there already" in err
    assert sagl("merge", store)[0] == 0  # nothing to finish


def test_export(sagl, store, tmp_path):
    code, _, err = sagl("export", store, "--out", tmp_path / "out")
    assert code == 2
    assert "dino 6" in err
    code, out, _ = sagl(
        *("export", store, "--out", tmp_path / "out", "--format", "csv"),
        *("--views", "dino", "--json"),
    )
    assert code == 0
    names = [tmp_path / "out" / name for name in ("dino.csv", "ids.txt", "labels.csv")]
    assert json.loads(out)["files"] == [str(name) for name in names]
    code, _, _ = sagl("export", store, "--out", tmp_path / "in", "--join", "inner")
    assert code == 0
    expected = FeatureStore.open(store).views(join="inner")["clip"]
    np.testing.assert_array_equal(np.load(tmp_path / "in" / "clip.npy"), expected)
