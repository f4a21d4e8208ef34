"""A matrix in several files answers like the same matrix in one."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl.features.samples import FileFormatError
from sagl.features.sharded_array import ShardedArray, ShardFile

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
        files.append(ShardFile(path, rows))
        start += rows
    return ShardedArray(files, 3, "float16"), whole


def same(found, expected):
    assert type(found) is np.ndarray
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


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
    found = array[key]
    if np.ndim(whole[key]) == 0:
        assert found == whole[key]
    else:
        same(found, whole[key])


@given(st.lists(st.integers(-16, 15), max_size=40))
@settings(deadline=None)
def test_any_rows_in_any_order(both, rows):
    array, whole = both
    rows = np.array(rows, dtype=np.int64)
    same(array[rows], whole[rows])
    same(array.select(rows)[:], whole[rows])
    same(array.select(rows)[::-1], whole[rows][::-1])


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


def test_a_piece_of_one_file_is_not_copied(both):
    array, _ = both
    piece = array[7:10]
    assert not piece.flags.owndata
    assert not piece.flags.writeable


def test_rows_that_are_not_there(both):
    array, _ = both
    for key in ([16], [-17], 16, np.ones(15, dtype=bool), [0.5], [[1]]):
        with pytest.raises(IndexError):
            array[key]


def test_only_files_with_wanted_rows_are_opened(both, tmp_path):
    files = list(both[0].files)
    files[2] = ShardFile(tmp_path / "absent.npy", 7)
    array = ShardedArray(files, 3, "float16")
    same(array[[15, 0]], both[1][[15, 0]])
    with pytest.raises(FileFormatError, match=r"absent\.npy: is missing"):
        array[[6]]


@pytest.mark.parametrize(
    ("rows", "dim", "dtype"), [(4, 3, "f2"), (5, 2, "f2"), (5, 3, "f4")]
)
def test_a_file_of_another_form_is_refused(both, rows, dim, dtype):
    path = both[0].files[0].path
    with pytest.raises(
        FileFormatError, match=r"0\.npy: holds float16 of shape \(5, 3\)"
    ):
        ShardedArray([ShardFile(path, rows)], dim, dtype)[:1]


def test_pickles_travel_without_the_numbers(both):
    array, whole = both
    array[:]
    text = pickle.dumps(array)
    assert len(text) < 2000
    same(pickle.loads(text)[:], whole)
