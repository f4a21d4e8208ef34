"""Merged stores hold what their parts held, under the same ids."""

import numpy as np
import pytest

from sagl.features.extraction import extract
from sagl.features.store import FeatureStore, merge, read_skipped, verify, write_view
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
    with pytest.raises(ValueError, match=r"view 'a' .* have the same id, 'x'"):
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


def test_places(tmp_path):
    write_view(tmp_path / "0", "a", ["x"], numbers(1, 3))
    (tmp_path / "there").mkdir()
    with pytest.raises(ValueError, match="there is there already"):
        merge([tmp_path / "0"], tmp_path / "there")
    with pytest.raises(ValueError, match="there is not a feature store"):
        merge([tmp_path / "0", tmp_path / "there"], tmp_path / "all")
    with pytest.raises(ValueError, match="2 stores need a place"):
        merge([tmp_path / "0", tmp_path / "0"])
