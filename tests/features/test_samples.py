"""Strings in one block of memory behave as a list of them does."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl.features.samples import Strings

checked = settings(max_examples=60, deadline=None, derandomize=True, database=None)

STRINGS = st.lists(st.text())


@checked
@given(STRINGS)
def test_the_same_as_a_list(strings):
    kept = Strings(strings)
    assert list(kept) == strings
    assert [kept[i] for i in range(len(kept))] == strings
    assert [kept[-i - 1] for i in range(len(kept))] == strings[::-1]
    assert kept[1:4] == strings[1:4]
    assert kept[::-2] == strings[::-2]
    assert kept == strings
    assert kept == Strings(strings)
    assert list(pickle.loads(pickle.dumps(kept))) == strings


@checked
@given(STRINGS, STRINGS)
def test_equal_only_to_equal_strings(one, other):
    assert (Strings(one) == Strings(other)) == (one == other)
    assert (Strings(one) == other) == (one == other)


def test_rows_that_are_not_there():
    kept = Strings(["a", "b"])
    for row in (2, -3):
        with pytest.raises(IndexError):
            kept[row]
    with pytest.raises(IndexError):
        Strings([])[0]


def test_numpy_integers_are_rows():
    assert Strings(["a", "b"])[np.int64(1)] == "b"


def test_file_names_that_are_not_utf8():
    name = os.fsdecode(b"caf\xe9.jpg")
    assert os.fsencode(Strings([name])[0]) == b"caf\xe9.jpg"


def test_a_million_names_pickle_to_little_more_than_their_letters():
    names = [f"train/n{i % 1000:08d}/image_{i:07d}.JPEG" for i in range(100_000)]
    size = len(pickle.dumps(Strings(names), protocol=5))
    assert size < sum(map(len, names)) + 9 * len(names)
