"""Strings in one block of memory come back as they were."""

from __future__ import annotations

import os
import pickle

from hypothesis import given, settings
from hypothesis import strategies as st

from sagl.features.samples import pack, unpack

checked = settings(max_examples=60, deadline=None, derandomize=True, database=None)


@checked
@given(st.lists(st.text(), min_size=1))
def test_every_string_comes_back_in_a_copy(strings):
    packed = pickle.loads(pickle.dumps(pack(strings)))
    assert [unpack(packed, row) for row in range(len(strings))] == strings


def test_what_is_missing_is_empty():
    assert unpack(pack(["a", None]), 1) == ""


def test_file_names_that_are_not_utf8():
    name = os.fsdecode(b"caf\xe9.jpg")
    assert os.fsencode(unpack(pack([name]), 0)) == b"caf\xe9.jpg"


def test_a_million_names_pickle_to_little_more_than_their_letters():
    names = [f"train/n{i % 1000:08d}/image_{i:07d}.JPEG" for i in range(100_000)]
    size = len(pickle.dumps(pack(names), protocol=5))
    assert size < sum(map(len, names)) + 9 * len(names)
