"""Views are joined by id, never by position; what is damaged is named.

A matrix in several files answers like the same matrix in one.
"""

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sagl.views
from sagl import SAGL, Views
from sagl.features.manifest import Manifest
from sagl.features.samples import FileFormatError
from sagl.features.split import open_input
from sagl.features.store import (
    FeatureStore,
    OverlapWarning,
    ShardedArray,
    is_store,
    read_skipped,
    write_view,
)
from sagl.features.store_tools import verify
from sagl.features.store_write import begin
from tests.conftest import QUICK, clustered_views
from tests.features.toy_extraction import tree

DATA = Path(__file__).parents[1] / "data"


def numbers(rows, dim, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, dim)).astype(np.float32)


@pytest.fixture
def store(tmp_path):
    """Two views whose rows were given in different orders."""
    ids = [f"{i}.jpg" for i in range(9)]
    a, b = numbers(9, 4), numbers(9, 2, 1)
    other = [4, 0, 8, 7, 1, 3, 2, 6, 5]
    labels = [f"class {i % 2}" for i in range(9)]
    write_view(tmp_path / "store", "a", ids, a, labels=labels)
    write_view(tmp_path / "store", "b", [ids[i] for i in other], b[other])
    return tmp_path / "store", a, b


def test_a_store_of_the_first_version_opens(tmp_path):
    """Written by sagl 0.1: its files are not cut where they would be today."""
    old = DATA / "store_0_1"
    joined = FeatureStore.open(old).join()
    assert joined.ids == [str(i) for i in range(1, 10)]
    assert joined.labels.tolist() == ["odd", "even"] * 4 + ["odd"]
    lengths = [2 * (i % 5) + i for i in range(1, 10)]
    assert joined.views["lengths"][:, 0].tolist() == lengths
    assert joined.views["letters"][:, 2].tolist() == [i / 4 for i in range(1, 10)]
    assert read_skipped(old) == [("0", "the text is blank")]
    assert verify(old) == []
    # The same extraction today finds it complete, and another view can be added.
    path = shutil.copytree(old, tmp_path / "store")
    plan = Manifest.read(path).views["letters"].plan
    ids = [str(i) for i in range(10)]
    assert begin(path, "letters", plan, ids, None, {}) is None
    write_view(path, "more", joined.ids, numbers(9, 2))
    assert len(FeatureStore.open(path).views()) == 9


def test_rows_are_joined_by_id(store):
    path, a, b = store
    opened = FeatureStore.open(path)
    assert opened.ids == [f"{i}.jpg" for i in range(9)]
    views = opened.views()
    assert views.names == ("a", "b")
    np.testing.assert_array_equal(views["a"], a)
    np.testing.assert_array_equal(views["b"], b)
    assert opened.views(["b"]).names == ("b",)
    assert opened.views(["b", "a"]).names == ("b", "a")


def test_labels_belong_to_the_samples(store):
    joined = FeatureStore.open(store[0]).join(["b", "a"])
    assert joined.labels.tolist() == [f"class {i % 2}" for i in range(9)]
    write_view(store[0].parent / "other", "a", ["x"], numbers(1, 2))
    assert FeatureStore.open(store[0].parent / "other").join().labels is None


def test_adding_a_view_touches_no_other(store):
    before = tree(store[0])
    write_view(store[0], "c", ["7.jpg", "nobody"], numbers(2, 3))
    after = tree(store[0])
    changed = {name for name in before if after[name] != before[name]}
    assert changed == {"manifest.json"}
    views = json.loads(before["manifest.json"])["views"]
    assert json.loads(after["manifest.json"])["views"].items() >= views.items()


def test_partial_overlap_is_refused_or_resolved(store):
    path, a, _ = store
    c = numbers(3, 3)
    write_view(path, "c", ["7.jpg", "nobody", "2.jpg"], c)
    opened = FeatureStore.open(path)
    with pytest.raises(ValueError, match=r"a 9, b 9, c 3; 2 are in all"):
        opened.views()
    with pytest.raises(ValueError, match="different samples"):
        opened["a"]
    assert len(opened.views(["a", "b"])) == 9
    with pytest.warns(OverlapWarning, match="2 are in all of them and taken"):
        joined = opened.join(join="inner")
    assert joined.ids == ["2.jpg", "7.jpg"]
    assert opened.ids == joined.ids
    np.testing.assert_array_equal(joined.views["a"], a[[2, 7]])
    np.testing.assert_array_equal(joined.views["c"], c[[2, 0]])
    assert joined.labels.tolist() == ["class 0", "class 1"]


def test_an_outer_join_keeps_what_some_views_miss(store):
    path, a, _ = store
    c = numbers(3, 3)
    write_view(path, "c", ["7.jpg", "nobody", "2.jpg"], c, labels=["", "new", ""])
    joined = FeatureStore.open(path).join(join="outer")
    assert joined.ids == sorted(joined.ids)
    assert len(joined.ids) == 10
    nobody, seven = joined.ids.index("nobody"), joined.ids.index("7.jpg")
    there = np.array([[True, True, one in ("2.jpg", "7.jpg")] for one in joined.ids])
    there[nobody] = [False, False, True]
    np.testing.assert_array_equal(joined.views.present, there)
    assert joined.views.counts == (9, 9, 3)
    np.testing.assert_array_equal(joined.views["c"][seven], c[0])
    np.testing.assert_array_equal(joined.views["c"][nobody], c[1])
    np.testing.assert_array_equal(joined.views["a"][seven], a[7])
    assert joined.labels[[nobody, seven]].tolist() == ["new", "class 1"]
    backwards = joined.views[::-1]
    np.testing.assert_array_equal(backwards["c"], joined.views["c"][:][::-1])
    joined.views.check_values(missing=True)


def test_an_outer_join_has_labels_if_each_sample_has_one(store):
    write_view(store[0], "c", ["nobody"], numbers(1, 3))
    opened = FeatureStore.open(store[0])
    assert opened.join(join="outer").labels is None
    assert opened.join(["a", "b"], "outer").labels is not None


def test_nothing_in_common(store):
    write_view(store[0], "c", ["nobody"], numbers(1, 3))
    with pytest.raises(ValueError, match="nothing can be joined"):
        FeatureStore.open(store[0]).views(join="inner")


@given(
    st.lists(st.sets(st.sampled_from("abcdefgh"), min_size=1), min_size=2, max_size=3)
)
@settings(deadline=None, max_examples=12)
def test_an_inner_join_is_the_intersection(tmp_path_factory, sets):
    path = tmp_path_factory.mktemp("join") / "store"
    value = {letter: i + 1.0 for i, letter in enumerate("abcdefgh")}
    for number, ids in enumerate(sets):
        ids = sorted(ids, reverse=number % 2 == 0)
        rows = np.array([[value[i], number] for i in ids])
        write_view(path, f"v{number}", ids, rows)
    common = sorted(set.intersection(*sets))
    opened = FeatureStore.open(path)
    if not common:
        with pytest.raises(ValueError, match="different samples"):
            opened.views(join="inner")
        return
    if len({frozenset(ids) for ids in sets}) == 1:
        joined = opened.join()
    else:
        with pytest.warns(OverlapWarning):
            joined = opened.join(join="inner")
    assert joined.ids == common
    for number in range(len(sets)):
        expected = [[value[i], number] for i in common]
        np.testing.assert_array_equal(joined.views[f"v{number}"], expected)


def test_views_stay_on_disk(store):
    views = FeatureStore.open(store[0]).views()
    assert isinstance(views["a"], ShardedArray)
    assert isinstance(Views(views)["a"], ShardedArray)


def test_a_model_is_fitted_on_a_store(tmp_path):
    views, _ = clustered_views()
    ids = [f"{i:03d}" for i in range(len(views))]
    for name in ("narrow", "wide"):
        write_view(tmp_path / "s", name, ids, views[name])
    store = FeatureStore.open(tmp_path / "s")
    arrays = {name: views[name] for name in ("narrow", "wide")}
    expected = SAGL(4, steps=5, search=QUICK, random_state=0).fit(arrays)
    model = SAGL(4, steps=5, search=QUICK, random_state=0).fit(store)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_array_equal(
        model.predict_proba(store), expected.predict_proba(arrays)
    )


def test_values_are_looked_at_once(tmp_path, monkeypatch):
    """However often views of a store are asked about."""
    views, _ = clustered_views()
    for name in ("narrow", "wide"):
        write_view(
            tmp_path / "s", name, [f"{i:03d}" for i in range(len(views))], views[name]
        )
    looked = []
    scan = sagl.views._scan
    monkeypatch.setattr(
        sagl.views, "_scan", lambda x: looked.append(x.shape) or scan(x)
    )
    given = FeatureStore.open(tmp_path / "s").views()
    given.check_values()
    assert len(looked) == 2
    model = SAGL(4, steps=5, search=QUICK, random_state=0).fit(given)
    model.predict(given)
    assert len(looked) == 4  # whether a view is constant is seen in its first rows


def test_many_files_read_like_one(tmp_path, monkeypatch):
    monkeypatch.setattr("sagl.features.store_write._FILES", 2)
    n = 2500  # five pieces in three files
    ids = [f"{i:05d}" for i in range(n)]
    features = numbers(n, 3)
    order = np.random.default_rng(1).permutation(n)
    write_view(tmp_path / "s", "v", [ids[i] for i in order], features[order])
    opened = FeatureStore.open(tmp_path / "s")
    assert [shard.rows for shard in opened.manifest.views["v"].shards] == [
        1024,
        1024,
        452,
    ]
    np.testing.assert_array_equal(opened["v"], features)
    rows = np.random.default_rng(2).integers(0, n, 300)
    np.testing.assert_array_equal(opened.views().take(rows)[0], features[rows])


def test_the_same_view_again_is_no_change_and_another_is_refused(store):
    before = tree(store[0])
    ids = [f"{i}.jpg" for i in range(9)]
    write_view(store[0], "a", ids, store[1])
    assert tree(store[0]) == before
    with pytest.raises(ValueError, match=r"a view 'a' already, with n_samples 9"):
        write_view(store[0], "a", ["x"], numbers(1, 4))
    with pytest.raises(ValueError, match=r"with dtype 'float32' \(now 'float16'\)"):
        write_view(store[0], "a", ids, store[1], dtype="float16")
    with pytest.raises(ValueError, match="with model None \\(now 'x'\\)"):
        write_view(store[0], "a", ids, store[1], backbone={"model": "x"})
    assert tree(store[0]) == before


def test_other_labels_of_the_same_samples_are_refused(store):
    ids = [f"{i}.jpg" for i in range(9)]
    with pytest.raises(ValueError, match="the same samples have other labels now"):
        write_view(store[0], "c", ids, numbers(9, 2), labels=ids)
    assert FeatureStore.open(store[0]).names == ("a", "b")


def test_bad_input_is_refused_before_anything_is_written(tmp_path):
    path = tmp_path / "s"

    def refused(match, name="v", ids=("a", "b"), features=None, **more):
        features = numbers(2, 3) if features is None else features
        with pytest.raises(ValueError, match=match):
            write_view(path, name, list(ids), features, **more)
        assert not path.exists()

    refused("2 ids for features of shape", features=numbers(3, 3))
    refused("samples 0 and 1 .* the same id 'a'", ids="aa")
    refused("row 1, 'a\\\\nb': it holds a line break", ids=["a", "a\nb"])
    refused("cannot be a view's name", name="../v")
    refused(
        "kept as float16, float32, float64; not as int64", features=np.ones((2, 3), int)
    )
    refused("the label 'x\\\\ny' cannot be kept", labels=["x\ny", "z"])
    refused("there are no samples", ids=[], features=numbers(0, 3))


def test_other_peoples_files_are_left_alone(tmp_path):
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "00001.npy").write_text("precious")
    with pytest.raises(ValueError, match=r"00001\.npy is a file; a feature store is"):
        write_view(tmp_path / "v" / "00001.npy", "v", ["a"], numbers(1, 2))
    with pytest.raises(ValueError, match="holds files and is no feature store"):
        write_view(tmp_path, "v", ["a"], numbers(1, 2))
    assert tree(tmp_path) == {"v/00001.npy": b"precious"}
    write_view(tmp_path / "s", "w", ["a"], numbers(1, 2))
    (tmp_path / "s" / "v").mkdir()
    (tmp_path / "s" / "v" / "mine.txt").write_text("precious")
    with pytest.raises(ValueError, match=r"mine\.txt is in the way"):
        write_view(tmp_path / "s", "v", ["a"], numbers(1, 2))
    assert (tmp_path / "s" / "v" / "mine.txt").read_text() == "precious"


def test_what_is_no_store_is_refused(store, tmp_path):
    path = store[0]
    with pytest.raises(ValueError, match="is not a feature store"):
        FeatureStore.open(tmp_path)
    assert not is_store(tmp_path)
    assert is_store(path)
    good = json.loads((path / "manifest.json").read_text())

    def refused(match, text):
        (path / "manifest.json").write_text(text)
        with pytest.raises(ValueError, match=match):
            FeatureStore.open(path)

    refused("format 9; this sagl .* upgrade", json.dumps(good | {"format": 9}))
    refused("is cut short, damaged or not", "{")
    refused("is cut short, damaged or not", json.dumps({"format": 1}))
    refused(
        "no manifest.json names a view",
        json.dumps({"format": 1, "views": {}, "samples": {}}),
    )
    good["views"]["a"]["rows"] = 8
    refused("its content is not what was written", json.dumps(good))
    del good["checksum"]  # as in stores of 0.1
    refused("a: 8 rows, 9 in its files, 9 ids", json.dumps(good))
    refused("'checksun' is not known", json.dumps(good | {"checksun": ""}))


def test_unknown_views_and_joins_are_refused(store):
    opened = FeatureStore.open(store[0])
    with pytest.raises(ValueError, match="no view 'x'; there are a, b"):
        opened.views(["x"])
    with pytest.raises(KeyError, match="no view 'x'; there are a, b"):
        opened["x"]
    with pytest.raises(ValueError, match="each view once; got a, a"):
        opened.views(["a", "a"])
    with pytest.raises(ValueError, match="error, inner or outer; got 'left'"):
        opened.views(join="left")


def test_ids_of_another_number_are_refused(store):
    [ids] = store[0].glob("ids-*.txt")
    ids.write_text("0.jpg\n")
    with pytest.raises(ValueError, match=r"ids-.*\.txt: .* holds 1 lines, expected 9"):
        _ = FeatureStore.open(store[0]).ids


def test_files_of_a_store_that_were_altered_are_refused(store):
    """Ids and labels whenever they are read; features by commands, which ask for it."""
    path = store[0]
    FeatureStore.open(path).check_files(["a", "b"])
    for pattern, old, new in (("ids-*.txt", "3.", "x."), ("labels-*.txt", "1", "2")):
        [file] = path.glob(pattern)
        before = file.read_text()
        file.write_text(before.replace(old, new))
        with pytest.raises(ValueError, match=f"{file.name}: .* is not what was writ"):
            FeatureStore.open(path).join()
        file.write_text(before)
    shard = path / "b" / "00000.npy"
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    opened = FeatureStore.open(path)
    opened.check_files(["a"])
    with pytest.raises(ValueError, match=r"b/00000\.npy: .* is not what was written"):
        opened.check_files(["a", "b"])
    with pytest.raises(ValueError, match=r"b/00000\.npy: .* is not what was written"):
        open_input(path, None, "error")


def test_opening_reads_no_features(tmp_path):
    """A store larger than this process may hold is opened, and rows are read."""
    n, dim = 24_000, 1024
    features = np.broadcast_to(np.float16(0.5), (n, dim))
    write_view(tmp_path / "s", "v", [f"{i:06d}" for i in range(n)], features)
    code = f"""
import resource, sys
import numpy as np
from sagl.features.store import FeatureStore
views = FeatureStore.open({str(tmp_path / "s")!r}).views()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert views.take(np.arange(0, {n}, 240))[0].shape == (100, {dim})
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, stdout=-1)
    assert int(run.stdout) < 20_000, "KiB; all rows are 48,000"


ROWS = (5, 1, 7, 3)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The same numbers in four files and in one array."""
    directory = tmp_path_factory.mktemp("shards")
    whole = np.random.default_rng(0).normal(size=(sum(ROWS), 3)).astype(np.float16)
    files, start = [], 0
    for i, rows in enumerate(ROWS):
        path = directory / f"{i}.npy"
        np.save(path, whole[start : start + rows])
        files.append((path, rows))
        start += rows
    return ShardedArray(files, 3, "float16"), whole


def same(values, expected):
    assert type(values) is np.ndarray
    assert values.dtype == expected.dtype
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize(
    "key",
    [
        slice(None),
        slice(1, 4),
        slice(4, 9),
        slice(6, 13),
        slice(12, 2, -3),
        slice(9, 9),
        slice(-4, None),
        slice(0, 100),
        [3, 3, 15, 0, -1],
        np.array([], dtype=np.int64),
        [],
        np.arange(16) % 3 == 0,
        7,
        -2,
        np.int64(5),
        (slice(2, 8), 1),
        (8, 2),
        (slice(None), slice(0, 2)),
        (np.array([9, 1]), [2, 0]),
        ...,
    ],
    ids=repr,
)
def test_indexing_is_numpys(both, key):
    array, whole = both
    values = array[key]
    if np.ndim(whole[key]) == 0:
        assert values == whole[key]
    else:
        same(values, whole[key])


@given(st.lists(st.integers(-16, 15), max_size=40))
@settings(deadline=None)
def test_any_rows_in_any_order(both, rows):
    array, whole = both
    rows = np.array(rows, dtype=np.int64)
    same(array[rows], whole[rows])
    chosen = ShardedArray(array.files, 3, "float16", rows % 16)
    same(chosen[:], whole[rows])
    same(chosen[::-1], whole[rows][::-1])


@given(st.integers(-20, 20), st.integers(-20, 20), st.sampled_from([1, 2, -1, None]))
@settings(deadline=None)
def test_any_slice(both, start, stop, step):
    array, whole = both
    same(array[start:stop:step], whole[start:stop:step])


def test_it_is_an_array_to_numpy(both):
    array, whole = both
    assert array.shape == whole.shape
    assert len(array) == 16
    assert array.dtype == np.float16
    same(np.asarray(array), whole)
    same(np.asarray(array, dtype=np.float32), whole.astype(np.float32))
    with pytest.raises(ValueError, match="without a copy"):
        np.array(array, copy=False)


def test_rows_that_are_not_there(both):
    array, _ = both
    for key in ([16], [-17], 16, np.ones(15, dtype=bool), [0.5], [[1]]):
        with pytest.raises(IndexError):
            array[key]


def test_only_files_with_wanted_rows_are_opened(both, tmp_path):
    files = list(both[0].files)
    files[2] = (tmp_path / "absent.npy", 7)
    array = ShardedArray(files, 3, "float16")
    same(array[[15, 0]], both[1][[15, 0]])
    with pytest.raises(FileFormatError, match=r"absent\.npy: is missing"):
        array[[6]]


@pytest.mark.parametrize(
    ("rows", "dim", "dtype"), [(4, 3, "f2"), (5, 2, "f2"), (5, 3, "f4")]
)
def test_a_file_of_another_form_is_refused(both, rows, dim, dtype):
    path = both[0].files[0][0]
    with pytest.raises(
        FileFormatError, match=r"0\.npy: holds float16 of shape \(5, 3\)"
    ):
        ShardedArray([(path, rows)], dim, dtype)[:1]


def test_pickles_travel_without_the_numbers(both):
    array, whole = both
    array[:]
    text = pickle.dumps(array)
    assert len(text) < 2000
    same(pickle.loads(text)[:], whole)
