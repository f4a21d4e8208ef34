"""Strings in one block of memory behave as a list of them does."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl.features.readers.packed import PackedStrings

checked = settings(max_examples=60, deadline=None, derandomize=True, database=None)

STRINGS = st.lists(st.text())


@checked
@given(STRINGS)
def test_the_same_as_a_list(strings):
    packed = PackedStrings(strings)
    assert list(packed) == strings
    assert [packed[i] for i in range(len(packed))] == strings
    assert [packed[-i - 1] for i in range(len(packed))] == strings[::-1]
    assert packed[1:4] == strings[1:4]
    assert packed[::-2] == strings[::-2]
    assert packed == strings
    assert packed == PackedStrings(strings)
    assert list(pickle.loads(pickle.dumps(packed))) == strings


@checked
@given(STRINGS, STRINGS)
def test_equal_only_to_equal_strings(one, other):
    assert (PackedStrings(one) == PackedStrings(other)) == (one == other)
    assert (PackedStrings(one) == other) == (one == other)


def test_rows_that_are_not_there():
    packed = PackedStrings(["a", "b"])
    for row in (2, -3):
        with pytest.raises(IndexError, match=f"row {row} of 2"):
            packed[row]
    with pytest.raises(IndexError):
        PackedStrings([])[0]


def test_numpy_integers_are_rows():
    assert PackedStrings(["a", "b"])[np.int64(1)] == "b"


def test_file_names_that_are_not_utf8():
    name = os.fsdecode(b"caf\xe9.jpg")
    assert os.fsencode(PackedStrings([name])[0]) == b"caf\xe9.jpg"


def test_a_million_names_pickle_to_little_more_than_their_letters():
    names = [f"train/n{i % 1000:08d}/image_{i:07d}.JPEG" for i in range(100_000)]
    size = len(pickle.dumps(PackedStrings(names), protocol=5))
    assert size < sum(map(len, names)) + 9 * len(names)
